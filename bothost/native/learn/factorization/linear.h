// Multinomial logistic regression over binary features, with softmax over the legal classes: the convex last
// layer.
//
//   y_r(x) = b_r + sum_i w_ir + sum_m a_mr    over the features i that are set, and over those m of the class
//   itself
//
// Features of a class are of a sample and a legal class of it (in discrete choice: of an alternative); there
// may be none. What an optimizer needs of it: the loss of all samples, and its gradient.
#pragma once
#include <span>

#include "learn/factorization/samples.h"

namespace bothost::fm {

/// Weights (T, R), bias (R) and weights of the classes' own features (M, R).
struct LinearModel {
  std::span<const float> weights, bias, alternatives;
};

/// The gradient by a model.
struct LinearView {
  std::span<float> weights, bias, alternatives;
};

/// Sum of the samples' cross-entropies (nats); `gradient` is set to the gradient of this sum. `alternatives`:
/// the features of each legal class, laid out as the samples' legal classes; read only where the model has
/// weights for them.
double linear_loss(const LinearModel& model, const Samples& samples, const Rows& alternatives,
                   const LinearView& gradient);

/// Probabilities, laid out as the samples' legal classes.
void linear_probabilities(const LinearModel& model, const Samples& samples, const Rows& alternatives,
                          float* out);

}  // namespace bothost::fm
