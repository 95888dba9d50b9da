// Multinomial logistic regression over binary features, with softmax over the legal classes: the convex last
// layer.
//
//   y_r(x) = b_r + sum_i w_ir        over the features i that are set
//
// What an optimizer needs of it: the loss of all samples, and its gradient.
#pragma once
#include <span>

#include "fm/samples.h"

namespace bothost::fm {

/// Weights (T, R) and bias (R), or their gradient.
struct LinearView {
  std::span<float> weights, bias;
};

/// Sum of the samples' cross-entropies (nats); `gradient` is set to the gradient of this sum.
double linear_loss(std::span<const float> weights, std::span<const float> bias, const Samples& samples,
                   const LinearView& gradient);

}  // namespace bothost::fm
