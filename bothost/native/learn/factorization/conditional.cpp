#include "learn/factorization/conditional.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "core/types.h"
#include "learn/factorization/softmax.h"

namespace bothost::fm {
namespace {

constexpr float kLeastSquare = 1e-8f;
/// Gradients by a score below this are left out.
constexpr float kNothing = 1e-5f;

void add(float* to, const float* from, std::size_t n) {
  for (std::size_t f = 0; f < n; ++f) to[f] += from[f];
}

/// Adds a scaled vector.
void accumulate(float* to, float scale, const float* from, std::size_t n) {
  for (std::size_t f = 0; f < n; ++f) to[f] += scale * from[f];
}

/// One AdaGrad step of a row of numbers.
void descend(float* values, float* squares, const float* gradient, std::size_t n, float rate) {
  for (std::size_t f = 0; f < n; ++f) {
    squares[f] += gradient[f] * gradient[f];
    values[f] -= rate * gradient[f] / (std::sqrt(squares[f]) + kLeastSquare);
  }
}

}  // namespace

void ChoiceSamples::check(const ConditionalShape& shape, int num_classes) const {
  samples.check(shape.positions, num_classes);
  choices.check(shape.choices, "features of classes");
  if (choices.size() != samples.legal.items.size())
    throw InvalidInput("legal classes and their features differ in length");
  if (!players.empty() && players.size() != size())
    throw InvalidInput("features and players differ in length");
  for (const auto player : players)
    if (player < -1 || player >= shape.players) throw InvalidInput("a player is out of range");
}

/// What a sample's pass needs, and the gradient of a batch.
struct ConditionalMachine::Scratch {
  explicit Scratch(const ConditionalShape& shape)
      : width(shape.width()),
        sum(width),
        shared(width),
        own(width),
        slots(shape.rows(), -1),
        seen(shape.rows(), 0) {
    const auto rectified = at(shape.rectified);
    bias.assign(rectified, 0);
    readout.assign(rectified, 0);
  }

  /// The gradient's row of a feature; begins at 0.
  float* of(std::size_t feature) {
    if (slots[feature] < 0) {
      slots[feature] = static_cast<std::int32_t>(touched.size());
      touched.push_back(feature);
      uses.push_back(0);
      weight.push_back(0);
      gradient.resize(gradient.size() + width, 0.0f);
    }
    return &gradient[at(slots[feature]) * width];
  }

  std::size_t width;
  std::vector<float> sum, scores, candidates, activations;
  std::vector<float> shared, own;
  /// Of the batch: which rows have a gradient, how often each was used, and the gradients.
  std::vector<std::int32_t> slots;
  /// Of each row the last sample that used it, counted from 1.
  std::vector<std::uint64_t> seen;
  std::uint64_t sample = 0;
  std::vector<std::size_t> touched;
  std::vector<float> uses, weight, gradient, bias, readout;
};

ConditionalMachine::ConditionalMachine(const ConditionalShape& shape, std::uint64_t seed, float deviation)
    : shape_(shape) {
  const auto rectified = at(shape.rectified);
  weights.assign(at(shape.choices), 0);
  factors.assign(shape.rows() * shape.width(), 0);
  bias.assign(rectified, 0);
  readout.assign(rectified, 0);
  Rng rng(seed);
  const auto drawn = at(shape.positions + shape.choices) * shape.width();
  for (std::size_t n = 0; n < drawn; ++n) factors[n] = deviation * static_cast<float>(rng.normals().first);
  for (auto& c : readout)
    c = static_cast<float>(rng.normals().first / std::sqrt(static_cast<double>(rectified)));
  weight_squares.assign(weights.size(), 0);
  factor_squares.assign(factors.size(), 0);
  bias_squares.assign(rectified, 0);
  readout_squares.assign(rectified, 0);
}

void ConditionalMachine::anchor() {
  anchor_weights_ = weights;
  anchor_factors_ = factors;
  for (auto* squares : {&weight_squares, &factor_squares, &bias_squares, &readout_squares})
    std::fill(squares->begin(), squares->end(), 0.0f);
}

void ConditionalMachine::forward(const ChoiceSamples& s, std::size_t index, Scratch& scratch) const {
  const std::size_t width = shape_.width(), k = at(shape_.quadratic), rectified = at(shape_.rectified),
                    base = at(shape_.positions);
  float* const sum = scratch.sum.data();
  std::fill_n(sum, width, 0.0f);
  for (const auto i : s.samples.features[index]) add(sum, row(at(i)), width);
  if (!s.players.empty() && s.players[index] >= 0)
    add(sum, row(base + at(shape_.choices + s.players[index])), width);
  const std::size_t n = s.samples.legal[index].size();
  const auto first = at(s.samples.legal.offsets[index]);
  scratch.scores.resize(n);
  scratch.candidates.resize(n * width);
  scratch.activations.resize(n * rectified);
  for (std::size_t q = 0; q < n; ++q) {
    float* const own = &scratch.candidates[q * width];
    std::fill_n(own, width, 0.0f);
    float score = 0, squares = 0;
    for (const auto j : s.choices[first + q]) {
      const float* const v = row(base + at(j));
      score += weights[at(j)];
      if (j >= shape_.embedded) continue;
      squares += dot(v, v, k);
      add(own, v, width);
    }
    score += dot(sum, own, k) + (dot(own, own, k) - squares) / 2;
    float* const active = scratch.activations.data() + q * rectified;
    for (std::size_t h = 0; h < rectified; ++h) active[h] = std::max(0.0f, bias[h] + sum[k + h] + own[k + h]);
    scratch.scores[q] = score + dot(active, readout.data(), rectified);
  }
}

void ConditionalMachine::backward(const ChoiceSamples& s, std::size_t index, bool players_only,
                                  Scratch& scratch) const {
  const std::size_t width = shape_.width(), k = at(shape_.quadratic), rectified = at(shape_.rectified),
                    base = at(shape_.positions);
  const auto first = at(s.samples.legal.offsets[index]);
  float *const shared = scratch.shared.data(), *const own = scratch.own.data();
  std::fill_n(shared, width, 0.0f);
  ++scratch.sample;
  const float* const sum = scratch.sum.data();
  for (std::size_t q = 0; q < s.samples.legal[index].size(); ++q) {
    const float g = scratch.scores[q];
    if (std::abs(g) < kNothing) continue;
    const float *const candidate = &scratch.candidates[q * width], *const active =
                                                                       scratch.activations.data() +
                                                                       q * rectified;
    for (std::size_t f = 0; f < k; ++f) {
      shared[f] += g * candidate[f];
      own[f] = g * (sum[f] + candidate[f]);
    }
    for (std::size_t h = 0; h < rectified; ++h) own[k + h] = active[h] > 0 ? g * readout[h] : 0.0f;
    add(shared + k, own + k, rectified);
    if (players_only) continue;
    add(scratch.bias.data(), own + k, rectified);
    accumulate(scratch.readout.data(), g, active, rectified);
    for (const auto j : s.choices[first + q]) {
      const std::size_t feature = base + at(j);
      float* const to = scratch.of(feature);
      const float* const v = row(feature);
      if (j < shape_.embedded) {
        for (std::size_t f = 0; f < k; ++f) to[f] += own[f] - g * v[f];
        add(to + k, own + k, rectified);
      }
      const auto slot = at(scratch.slots[feature]);
      scratch.weight[slot] += g;
      if (scratch.seen[feature] != scratch.sample) scratch.uses[slot] += 1;
      scratch.seen[feature] = scratch.sample;
    }
  }
  const auto give = [&](std::size_t feature) {
    add(scratch.of(feature), shared, width);
    scratch.uses[at(scratch.slots[feature])] += 1;
  };
  if (!s.players.empty() && s.players[index] >= 0) give(base + at(shape_.choices + s.players[index]));
  if (players_only) return;
  for (const auto i : s.samples.features[index]) give(at(i));
}

void ConditionalMachine::step(const ConditionalSteps& steps, Scratch& scratch) {
  const std::size_t width = shape_.width(), base = at(shape_.positions), choices = at(shape_.choices);
  for (std::size_t slot = 0; slot < scratch.touched.size(); ++slot) {
    const std::size_t feature = scratch.touched[slot];
    scratch.slots[feature] = -1;
    float *const gradient = &scratch.gradient[slot * width], *const values = &factors[feature * width];
    const float pull = steps.decay * scratch.uses[slot];
    if (anchor_factors_.empty()) {
      accumulate(gradient, pull, values, width);
    } else {
      const float* const to = &anchor_factors_[feature * width];
      for (std::size_t f = 0; f < width; ++f) gradient[f] += pull * (values[f] - to[f]);
    }
    descend(values, &factor_squares[feature * width], gradient, width, steps.rate);
    if (feature < base || feature >= base + choices) continue;
    const std::size_t j = feature - base;
    const float away = weights[j] - (anchor_weights_.empty() ? 0.0f : anchor_weights_[j]);
    const float by_weight = scratch.weight[slot] + pull * away;
    descend(&weights[j], &weight_squares[j], &by_weight, 1, steps.rate);
  }
  scratch.touched.clear();
  scratch.uses.clear();
  scratch.weight.clear();
  scratch.gradient.clear();
  if (steps.players_only) return;
  descend(bias.data(), bias_squares.data(), scratch.bias.data(), bias.size(), steps.rate);
  descend(readout.data(), readout_squares.data(), scratch.readout.data(), readout.size(), steps.rate);
  std::ranges::fill(scratch.bias, 0.0f);
  std::ranges::fill(scratch.readout, 0.0f);
}

double ConditionalMachine::train(const ChoiceSamples& samples, std::span<const std::int64_t> order,
                                 const ConditionalSteps& steps) {
  Scratch scratch(shape_);
  double loss = 0;
  int waiting = 0;
  for (const auto each : order)
    if (each < 0 || at(each) >= samples.size()) throw InvalidInput("order: an index is out of range");
  for (const auto each : order) {
    const auto s = at(each);
    forward(samples, s, scratch);
    loss += differentiate(samples.samples, s, scratch.scores.data());
    backward(samples, s, steps.players_only, scratch);
    if (++waiting < steps.batch) continue;
    step(steps, scratch);
    waiting = 0;
  }
  if (waiting) step(steps, scratch);
  return order.empty() ? 0 : loss / static_cast<double>(order.size());
}

double ConditionalMachine::probabilities(const ChoiceSamples& samples, float* out) const {
  Scratch scratch(shape_);
  double loss = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    forward(samples, s, scratch);
    std::ranges::copy(scratch.scores, out);
    loss += normalize(samples.samples, s, out);
    out += scratch.scores.size();
  }
  return samples.size() ? loss / static_cast<double>(samples.size()) : 0;
}

}  // namespace bothost::fm
