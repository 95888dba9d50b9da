#include "learn/factorization/samples.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/types.h"

namespace bothost::fm {

void Rows::check(int limit, const char* what) const {
  const auto fail = [&](const char* why) { throw InvalidInput(std::string(what) + ": " + why); };
  if (offsets.empty() || offsets.front() != 0) fail("offsets must begin with 0");
  if (offsets.back() != static_cast<std::int64_t>(items.size()))
    fail("the last offset must be the number of indices");
  if (!std::ranges::is_sorted(offsets)) fail("offsets must ascend");
  for (std::size_t s = 0; s < size(); ++s) {
    std::int32_t last = -1;
    for (const std::int32_t item : (*this)[s]) {
      if (item <= last) fail("the indices of a row must ascend and not be negative");
      last = item;
    }
    if (last >= limit) fail("an index is too large");
  }
}

void Samples::check(int num_features, int num_classes) const {
  features.check(num_features, "features");
  legal.check(num_classes, "legal classes");
  if (legal.size() != size()) throw InvalidInput("features and legal classes differ in length");
  if (labels.empty()) return;
  if (labels.size() != size()) throw InvalidInput("features and labels differ in length");
  for (std::size_t s = 0; s < size(); ++s) {
    const auto row = legal[s];
    if (!std::ranges::binary_search(row, labels[s]))
      throw InvalidInput("the label of sample " + std::to_string(s) + " is not legal");
  }
}

Places::Places(const Samples& samples, std::size_t classes)
    : first_(classes + 1), places_(samples.legal.items.size()) {
  for (const auto r : samples.legal.items) ++first_[at(r) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<std::size_t> next = first_;
  for (std::size_t s = 0, place = 0; s < samples.size(); ++s)
    for (const auto r : samples.legal[s]) places_[next[at(r)]++] = {s, place++};
}

}  // namespace bothost::fm
