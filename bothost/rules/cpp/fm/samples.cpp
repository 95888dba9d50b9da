#include "fm/samples.h"

#include <algorithm>
#include <string>

#include "core/types.h"

namespace bothost::fm {
namespace {

void check_rows(const Rows& rows, int limit, const char* what) {
  const auto fail = [&](const char* why) { throw InvalidInput(std::string(what) + ": " + why); };
  if (rows.offsets.empty() || rows.offsets.front() != 0) fail("offsets must begin with 0");
  if (rows.offsets.back() != static_cast<std::int64_t>(rows.items.size()))
    fail("the last offset must be the number of indices");
  if (!std::is_sorted(rows.offsets.begin(), rows.offsets.end())) fail("offsets must ascend");
  for (std::size_t s = 0; s < rows.size(); ++s) {
    std::int32_t last = -1;
    for (const std::int32_t item : rows[s]) {
      if (item <= last) fail("the indices of a row must ascend and not be negative");
      last = item;
    }
    if (last >= limit) fail("an index is too large");
  }
}

}  // namespace

void Samples::check(int num_features, int num_classes) const {
  check_rows(features, num_features, "features");
  check_rows(legal, num_classes, "legal classes");
  if (legal.size() != size()) throw InvalidInput("features and legal classes differ in length");
  if (labels.empty()) return;
  if (labels.size() != size()) throw InvalidInput("features and labels differ in length");
  for (std::size_t s = 0; s < size(); ++s) {
    const auto row = legal[s];
    if (!std::binary_search(row.begin(), row.end(), labels[s]))
      throw InvalidInput("the label of sample " + std::to_string(s) + " is not legal");
  }
}

}  // namespace bothost::fm
