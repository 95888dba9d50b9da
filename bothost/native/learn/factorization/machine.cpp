#include "learn/factorization/machine.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "core/types.h"
#include "learn/factorization/softmax.h"

namespace bothost::fm {
namespace {

constexpr float kTiny = 1e-8f;

float squared_norm(const float* a, std::size_t n) { return dot(a, a, n); }

void adagrad(float& parameter, float& squares, float gradient, float rate) {
  squares += gradient * gradient;
  parameter -= rate * gradient / (std::sqrt(squares) + kTiny);
}

}  // namespace

struct Machine::Scratch {
  explicit Scratch(const Shape& shape)
      : scores(at(shape.classes)),
        sums(at(shape.classes) * at(shape.factors)),
        pairs(at(shape.factors)),
        gradient(at(shape.factors)) {}
  /// Scores of the legal classes, then their probabilities, then the gradient of the loss by the scores.
  std::vector<float> scores;
  /// Per-class factors: the sum over the features, a row for each legal class. Shared: one row.
  std::vector<float> sums;
  /// Shared factors: sum over pairs of v_i v_j.
  std::vector<float> pairs;
  std::vector<float> gradient;
};

Machine::Machine(const Shape& shape, std::uint64_t seed, float deviation) : shape_(shape) {
  const auto t = at(shape.features), r = classes();
  bias.assign(r, 0);
  weights.assign(t * r, 0);
  factors.assign(shape.shared ? t * k() : t * r * k(), 0);
  if (shape.shared) mixing.assign(r * k(), 1);
  Rng rng(seed);
  for (std::size_t n = 0; n < factors.size(); n += 2) {
    const auto [a, b] = rng.normals();
    factors[n] = deviation * static_cast<float>(a);
    if (n + 1 < factors.size()) factors[n + 1] = deviation * static_cast<float>(b);
  }
  bias_squares.assign(r, 0);
  weight_squares.assign(t * r, 0);
  factor_squares.assign(k() ? factors.size() / k() : 0, 0);
  mixing_squares.assign(k() ? mixing.size() / k() : 0, 0);
}

void Machine::forward(std::span<const std::int32_t> features, std::span<const std::int32_t> legal,
                      Scratch& scratch) const {
  const std::size_t n = legal.size();
  float* const scores = scratch.scores.data();
  for (std::size_t q = 0; q < n; ++q) scores[q] = bias[at(legal[q])];
  for (const auto i : features) {
    const float* const w = &weights[at(i) * classes()];
    for (std::size_t q = 0; q < n; ++q) scores[q] += w[legal[q]];
  }
  if (!k()) return;
  float* const sums = scratch.sums.data();
  if (shape_.shared) {
    std::fill_n(sums, k(), 0.0f);
    float* const pairs = scratch.pairs.data();
    std::fill_n(pairs, k(), 0.0f);
    for (const auto i : features) {
      const float* const v = &factors[at(i) * k()];
      for (std::size_t f = 0; f < k(); ++f) {
        pairs[f] += sums[f] * v[f];
        sums[f] += v[f];
      }
    }
    for (std::size_t q = 0; q < n; ++q) scores[q] += dot(pairs, &mixing[at(legal[q]) * k()], k());
    return;
  }
  std::fill_n(sums, n * k(), 0.0f);
  for (std::size_t q = 0; q < n; ++q) {
    float* const sum = sums + q * k();
    float squares = 0;
    for (const auto i : features) {
      const float* const v = row(i, legal[q]);
      squares += squared_norm(v, k());
      for (std::size_t f = 0; f < k(); ++f) sum[f] += v[f];
    }
    scores[q] += (squared_norm(sum, k()) - squares) / 2;
  }
}

double Machine::train(const Samples& samples, std::span<const std::int64_t> order, const Steps& steps) {
  for (const auto index : order)  // before the first step
    if (index < 0 || at(index) >= samples.size()) throw InvalidInput("order: an index is out of range");
  Scratch scratch(shape_);
  double loss = 0;
  for (const auto index : order) {
    const auto s = at(index);
    const auto features = samples.features[s], legal = samples.legal[s];
    forward(features, legal, scratch);
    loss += differentiate(samples, s, scratch.scores.data());
    step(features, legal, steps, scratch);
  }
  return order.empty() ? 0 : loss / static_cast<double>(order.size());
}

void Machine::step(std::span<const std::int32_t> features, std::span<const std::int32_t> legal,
                   const Steps& steps, Scratch& scratch) {
  const float* const gradient = scratch.scores.data();
  for (std::size_t q = 0; q < legal.size(); ++q) {
    const auto r = at(legal[q]);
    adagrad(bias[r], bias_squares[r], gradient[q], steps.rate);
  }
  for (const auto i : features) {
    const std::size_t start = at(i) * classes();
    for (std::size_t q = 0; q < legal.size(); ++q) {
      const std::size_t own = start + at(legal[q]);
      adagrad(weights[own], weight_squares[own], gradient[q] + steps.weight_decay * weights[own], steps.rate);
    }
  }
  if (!k()) return;
  if (shape_.shared) return step_shared(features, legal, steps, scratch);
  float* const g = scratch.gradient.data();
  for (std::size_t q = 0; q < legal.size(); ++q) {
    const float* const sum = &scratch.sums[q * k()];
    for (const auto i : features) {
      const std::size_t own = at(i) * classes() + at(legal[q]);
      float* const v = &factors[own * k()];
      for (std::size_t f = 0; f < k(); ++f) g[f] = gradient[q] * (sum[f] - v[f]) + steps.factor_decay * v[f];
      float& squares = factor_squares[own];
      squares += squared_norm(g, k()) / static_cast<float>(k());
      const float rate = steps.rate / (std::sqrt(squares) + kTiny);
      for (std::size_t f = 0; f < k(); ++f) v[f] -= rate * g[f];
    }
  }
}

void Machine::step_shared(std::span<const std::int32_t> features, std::span<const std::int32_t> legal,
                          const Steps& steps, Scratch& scratch) {
  const auto per_row = static_cast<float>(k());
  std::vector<float>& by_pairs = scratch.gradient;
  std::ranges::fill(by_pairs, 0.0f);
  const float* const pairs = scratch.pairs.data();
  for (std::size_t q = 0; q < legal.size(); ++q) {
    const auto r = at(legal[q]);
    float* const u = &mixing[r * k()];
    const float g = scratch.scores[q];
    for (std::size_t f = 0; f < k(); ++f) by_pairs[f] += g * u[f];
    float& squares = mixing_squares[r];
    squares += g * g * squared_norm(pairs, k()) / per_row;
    const float rate = steps.rate / (std::sqrt(squares) + kTiny);
    for (std::size_t f = 0; f < k(); ++f) u[f] -= rate * g * pairs[f];
  }
  const float* const sum = scratch.sums.data();
  for (const auto i : features) {
    float* const v = &factors[at(i) * k()];
    float total = 0;
    const auto gradient = [&](std::size_t f) {
      return by_pairs[f] * (sum[f] - v[f]) + steps.factor_decay * v[f];
    };
    for (std::size_t f = 0; f < k(); ++f) total += gradient(f) * gradient(f);
    float& squares = factor_squares[at(i)];
    squares += total / per_row;
    const float rate = steps.rate / (std::sqrt(squares) + kTiny);
    for (std::size_t f = 0; f < k(); ++f) v[f] -= rate * gradient(f);
  }
}

double Machine::probabilities(const Samples& samples, float* out) const {
  if (!shape_.shared && k()) return probabilities_by_class(samples, out);
  Scratch scratch(shape_);
  double loss = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto legal = samples.legal[s];
    forward(samples.features[s], legal, scratch);
    std::copy_n(scratch.scores.data(), legal.size(), out);
    loss += normalize(samples, s, out);
    out += legal.size();
  }
  return samples.size() ? loss / static_cast<double>(samples.size()) : 0;
}

/// The factors of one class after the other: those of all features stay in a core's cache.
double Machine::probabilities_by_class(const Samples& samples, float* out) const {
  const Places places(samples, classes());
  const auto features = at(shape_.features);
  std::vector<float> sum(k()), own(features * k()), alone(features);
  for (std::size_t r = 0; r < classes(); ++r) {
    if (places[r].empty()) continue;
    // Close together, for those of one class lie a row of all classes apart; and what each feature adds
    // alone.
    for (std::size_t i = 0; i < features; ++i) {
      const float* const v = row(static_cast<std::int32_t>(i), static_cast<std::int32_t>(r));
      std::copy_n(v, k(), &own[i * k()]);
      alone[i] = weights[i * classes() + r] - squared_norm(v, k()) / 2;
    }
    for (const auto [sample, place] : places[r]) {
      std::ranges::fill(sum, 0.0f);
      float score = bias[r];
      for (const auto i : samples.features[sample]) {
        const float* const v = &own[at(i) * k()];
        score += alone[at(i)];
        for (std::size_t f = 0; f < k(); ++f) sum[f] += v[f];
      }
      out[place] = score + squared_norm(sum.data(), k()) / 2;
    }
  }
  double loss = 0;
  for (std::size_t s = 0; s < samples.size(); ++s)
    loss += normalize(samples, s, out + samples.legal.offsets[s]);
  return samples.size() ? loss / static_cast<double>(samples.size()) : 0;
}

}  // namespace bothost::fm
