// A guard for objects that release the GIL while they work: a second thread could enter meanwhile.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "bindings/convert.h"
#include "core/types.h"

namespace bothost::python {

class Exclusive {
  struct Clear {
    void operator()(std::atomic_flag* flag) const { flag->clear(); }
  };

 public:
  using Hold = std::unique_ptr<std::atomic_flag, Clear>;
  explicit Exclusive(const char* what) : what_(what) {}
  /// While it lives, no other thread holds it. Throws InvalidInput if one does.
  [[nodiscard]] Hold hold() {
    if (busy_.test_and_set())
      throw InvalidInput("this " + std::string(what_) + " is being used by another thread");
    return Hold(&busy_);
  }
  /// What `work` returns, computed without the GIL while no other thread holds it.
  template <class Work>
  auto run(Work&& work) {
    const auto held = hold();
    return without_gil(work);
  }

 private:
  const char* what_;
  std::atomic_flag busy_;
};

}  // namespace bothost::python
