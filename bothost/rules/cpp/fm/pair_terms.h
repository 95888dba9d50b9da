// The inner loops of pair_losses.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bothost::fm {

/// Exponentials of products are computed for so many rows at once, and for a multiple of so many columns.
constexpr std::size_t kRows = 8, kColumns = 16;

/// So many features more than there are may be read.
constexpr std::size_t kPadding = 16;

/// exp(- the product of each row with each of the first `until` columns), rounded up to a multiple of
/// kColumns.
struct Products {
  /// Numbers of a row, and of a column.
  std::size_t terms = 0;
  const float* rows[kRows];
  /// Number f of column j: columns[f * stride + j].
  const float* columns = nullptr;
  std::size_t stride = 0, until = 0;
  /// Null, or for each row a factor per column: then a cell of `out` is the exponential, and the same times
  /// the factor.
  const float* factors[kRows] = {};
  float* out[kRows];
};

/// What one sample says of the pairs of one feature that it sets, i.
struct PairTerms {
  /// exp(-<i, j>_r) for class r and rank j: cells[r * row + j]; nested: pairs of numbers, cells[r * row + 2 *
  /// j].
  const float* cells;
  std::size_t row;
  /// Ranks of the features to pair i with, and how many; kPadding more ranks may be read, and numbers of
  /// `kept`.
  const std::uint16_t* features;
  std::uint32_t count;
  /// Legal classes with their probabilities; the place of the label among them.
  std::uint32_t num_legal, label;
  const std::int32_t* legal;
  const float* probabilities;
  /// Nested: the probabilities times exp(-w_i); sum_r p_r exp(-w_r) of i, and of each of the features.
  const float* scaled;
  float kept_of_i;
  const float* kept;
  /// By rank, what is added to: the loss without the pair; without w_i too; without w_j too.
  float *pair, *first, *second;
};

void exponentials(const Products& of);
void add_pair(const PairTerms& terms);
void add_nested(const PairTerms& terms);

}  // namespace bothost::fm
