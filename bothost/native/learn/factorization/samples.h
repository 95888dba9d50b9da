// Decisions as sparse rows: which binary features were set, which classes were legal, which one was chosen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"

namespace bothost::fm {

/// Rows of indices one after the other: row s is items[offsets[s]] .. items[offsets[s + 1] - 1].
struct Rows {
  std::span<const std::int64_t> offsets;
  std::span<const std::int32_t> items;

  std::size_t size() const { return offsets.size() - 1; }
  /// Throws InvalidInput, which begins with `what`, unless rows lie one after the other, and the indices of
  /// each ascend within 0 .. limit - 1.
  void check(int limit, const char* what) const;
  std::span<const std::int32_t> operator[](std::size_t row) const {
    return items.subspan(at(offsets[row]), at(offsets[row + 1] - offsets[row]));
  }
};

/// Rows that are made here, one after the other.
struct OwnedRows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> items;
  /// The items since the last row are a row.
  void end_row() { offsets.push_back(static_cast<std::int64_t>(items.size())); }
};

struct Samples {
  /// Set features, ascending and distinct.
  Rows features;
  /// Legal classes, ascending and distinct.
  Rows legal;
  /// Chosen class of each sample, one of its legal ones; empty where only probabilities are wanted.
  std::span<const std::int32_t> labels;

  std::size_t size() const { return features.size(); }
  /// Throws InvalidInput unless everything above holds for so many features and classes.
  void check(int num_features, int num_classes) const;
};

/// The samples that each class is legal in, ascending.
class Places {
 public:
  struct Place {
    std::size_t sample, at;  // `at`: among the legal classes of all samples
  };

  Places(const Samples& samples, std::size_t classes);
  std::span<const Place> operator[](std::size_t r) const {
    return std::span(places_).subspan(first_[r], first_[r + 1] - first_[r]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<Place> places_;
};

}  // namespace bothost::fm
