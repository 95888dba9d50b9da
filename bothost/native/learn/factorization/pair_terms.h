// The inner loops of pair_losses.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bothost::fm {

/// Exponentials of products are computed for so many rows at once, and for a multiple of so many columns.
constexpr std::size_t kRows = 8, kColumns = 16;

/// Features whose terms are computed together, by rank: a block. A sample's features are given by the blocks
/// that hold any and a bit for each feature in them. What is not set is computed with what is, and not added:
/// that takes less time than gathering what is set, for most of a sample's features have small ranks.
#ifdef __AVX2__
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
/// A block's number above, the bits of its features below.
using BlockBits = std::uint32_t;
constexpr unsigned kBlockShift = 8;

/// exp(- the product of each row with each of the first `until` columns), rounded up to a multiple of
/// kColumns.
struct Products {
  /// Numbers of a row, and of a column.
  std::size_t terms = 0;
  const float* rows[kRows];
  /// Number f of column j: columns[f * stride + j].
  const float* columns = nullptr;
  std::size_t stride = 0, until = 0;
  /// Null, or for each row a factor per column: then `out` has for each block of columns the exponentials,
  /// and the same times the factors.
  const float* factors[kRows] = {};
  float* out[kRows];
};

/// What one sample says of the pairs of one feature that it sets, i.
struct PairTerms {
  /// For each legal class exp(-<i, j>_r) by the rank of j; nested: for each block of ranks those, and the
  /// same times exp(-w_j).
  const float* const* rows;
  /// Probabilities of the legal classes; the place of the label among them.
  const float* probabilities;
  std::uint32_t num_legal, label;
  /// The features to pair i with; how many blocks, the last of which has these features only.
  const BlockBits* blocks;
  std::uint32_t count, last;
  /// Nested: the probabilities times exp(-w_i); sum_r p_r exp(-w_r) of i, and of each of the features, by
  /// rank, with kLanes numbers after them that may be read.
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
