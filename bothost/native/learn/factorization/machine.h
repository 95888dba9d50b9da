// A multi-class factorization machine over binary features, with softmax over the legal classes:
//
//   y_r(x) = b_r + sum_i w_ir + sum_{i<j} <i, j>_r        over the features i, j that are set
//
// Per-class factors (Rendle 2010, one machine a class): <i, j>_r = sum_f v_irf v_jrf.
// Shared factors: <i, j>_r = sum_f u_rf v_if v_jf, fewer parameters and one sum over the features for all
// classes. Without factors it is multinomial logistic regression.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "learn/factorization/samples.h"

namespace bothost::fm {

struct Shape {
  int features, classes, factors;
  /// Whether the factors are shared by the classes.
  bool shared;
};

/// Step sizes of AdaGrad (Duchi et al. 2011), for factors with one accumulator a row, and weight decay, which
/// acts on a row whenever it is used.
struct Steps {
  float rate, factor_decay, weight_decay;
};

class Machine {
 public:
  /// Factors are drawn from a normal distribution of this deviation, all else is 0.
  Machine(const Shape& shape, std::uint64_t seed, float deviation);

  const Shape& shape() const { return shape_; }

  /// One step a sample, in this order. Returns the mean cross-entropy, each sample's before its own step.
  double train(const Samples& samples, std::span<const std::int64_t> order, const Steps& steps);
  /// Probability of each legal class, laid out as samples.legal.items. Returns the mean cross-entropy, 0
  /// without labels.
  double probabilities(const Samples& samples, float* out) const;

  /// Parameters and their accumulators; the sizes are fixed by the shape.
  /// bias (R), weights (T, R), factors (T, R, k) or shared (T, k), mixing (R, k) or empty.
  std::vector<float> bias, weights, factors, mixing;
  std::vector<float> bias_squares, weight_squares, factor_squares, mixing_squares;

 private:
  struct Scratch;
  void forward(std::span<const std::int32_t> features, std::span<const std::int32_t> legal,
               Scratch& scratch) const;
  void step(std::span<const std::int32_t> features, std::span<const std::int32_t> legal, const Steps& steps,
            Scratch& scratch);
  void step_shared(std::span<const std::int32_t> features, std::span<const std::int32_t> legal,
                   const Steps& steps, Scratch& scratch);

  double probabilities_by_class(const Samples& samples, float* out) const;

  std::size_t k() const { return at(shape_.factors); }
  std::size_t classes() const { return at(shape_.classes); }
  const float* row(std::int32_t feature, std::int32_t cls) const {
    return &factors[(at(feature) * classes() + at(cls)) * k()];
  }

  Shape shape_;
};

}  // namespace bothost::fm
