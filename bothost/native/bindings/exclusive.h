// A guard for objects that release the GIL while they work: a second thread could enter meanwhile.
#pragma once
#include <atomic>
#include <string>

#include "bindings/convert.h"
#include "core/types.h"

namespace bothost::python {

class Exclusive {
 public:
  class Hold {
   public:
    Hold(std::atomic_flag& flag, const char* what) : flag_(flag) {
      if (flag.test_and_set())
        throw InvalidInput("this " + std::string(what) + " is being used by another thread");
    }
    ~Hold() { flag_.clear(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    std::atomic_flag& flag_;
  };

  explicit Exclusive(const char* what) : what_(what) {}
  /// While it lives, no other thread holds it. Throws InvalidInput if one does.
  [[nodiscard]] Hold hold() { return Hold(busy_, what_); }
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
