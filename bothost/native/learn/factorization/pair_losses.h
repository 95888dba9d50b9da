// What the pair terms of a factorization machine are worth: the loss without them.
#pragma once
#include <vector>

#include "learn/factorization/machine.h"

namespace bothost::fm {

enum class Reading {
  pair,      ///< one model: without <i, j>
  nested,    ///< without <i, j>; without <i, j> and w_i; without <i, j> and w_j
  separate,  ///< without <i, j>; without w_i; without w_j
};

struct PairLosses {
  /// Mean cross-entropy of the machine itself.
  double base = 0;
  /// Pairs i < j that are set together in some sample, ascending.
  std::vector<std::int32_t> first, second;
  /// Mean cross-entropy of each ablated model over all samples, a value per pair; one model or three.
  std::vector<double> losses[3];
};

/// Exact for all pairs, in one pass over the pairs that samples set together. What depends on one feature
/// alone is computed once: with p the cached softmax of a sample and X_r = exp(-<i, j>_r), taking the pair
/// term away adds log(sum_r p_r X_r) + <i, j>_y to its loss, and only where both features are set.
PairLosses pair_losses(const Machine& machine, const Samples& samples, Reading reading);

}  // namespace bothost::fm
