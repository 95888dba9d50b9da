#include "learn/networks/mlp.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/types.h"

namespace bothost::network {

Mlp::Mlp(std::vector<int> widths, bool bf16, const Kernels& kernels, ScorerSizes scorer)
    : widths_(std::move(widths)), bf16_(bf16), kernels_(kernels), scorer_(scorer) {
  if (widths_.size() < 3)
    throw InvalidInput("widths: inputs, at least one hidden layer, and outputs are needed");
  if (widths_.back() < 2 || widths_.back() > kMostActions)
    throw InvalidInput("widths: outputs must be within 2 and " + std::to_string(kMostActions));
  check_widths(std::span(widths_).first(widths_.size() - 1), "widths");

  if (scorer_.features < 0 || scorer_.features > kMostHidden || scorer_.hidden < 0 ||
      scorer_.hidden % kWidest != 0 || (scorer_.features == 0) != (scorer_.hidden == 0) || actions() < 1)
    throw InvalidInput("scorer: its hidden width must be a multiple of 16, beside at least one action");
  scorer_weight_.resize(size_of(scorer_.features, scorer_.hidden));
  scorer_gradient_.resize(scorer_weight_.size());
  scorer_out_.resize(at(scorer_.hidden));
  units_.resize(size_of(actions(), scorer_.hidden));

  for (std::size_t l = 0; l + 1 < widths_.size(); ++l) {
    shapes_.push_back({at(widths_[l + 1]), at(widths_[l])});
    shapes_.push_back({at(widths_[l + 1])});
  }
  if (scorer_.features) {
    shapes_.push_back({at(scorer_.hidden), at(scorer_.features)});
    shapes_.push_back({at(scorer_.hidden)});
  }
  const int hidden = widths_[1];
  first_stride_ = (hidden + 2 * kWidest - 1) / (2 * kWidest) * (2 * kWidest);
  first_.resize(size_of(inputs(), first_stride_));
  if (bf16_) first_folded_.resize(first_.size() / 2);
  first_gradient_.resize(size_of(inputs(), hidden));
  first_bias_.resize(at(first_stride_));
  hidden_gradient_.resize(size_of(kChunk, stride_of(hidden)));
  for (std::size_t l = 1; l + 1 < widths_.size(); ++l) {
    Dense layer{};
    layer.in = widths_[l];
    layer.out = widths_[l + 1];
    layer.bias.resize(at(padded(layer.out)));
    layer.inputs.resize(size_of(kChunk, layer.in_stride()));
    layer.outputs.resize(size_of(kChunk, layer.out_stride()));
    if (bf16_) {
      layer.narrow.resize(size_of(layer.out, layer.in_stride()));
      layer.forward_pairs.resize(size_of(layer.in / 2, layer.out_stride()));
      layer.backward_pairs.resize(size_of((layer.out + 1) / 2, layer.in_stride()));
      layer.narrow_inputs.resize(size_of(kChunk, layer.in_stride()));
      layer.input_pairs.resize(size_of(kChunk / 2, layer.in_stride()));
      layer.narrow_outputs.resize(size_of(kChunk, layer.out_stride()));
      layer.output_pairs.resize(size_of(kChunk / 2, layer.out_stride()));
    } else {
      layer.forward.resize(size_of(layer.in, layer.out_stride()));
      layer.backward.resize(size_of(layer.out, layer.in_stride()));
    }
    dense_.push_back(std::move(layer));
  }
}

void Mlp::load(std::span<const float* const> parameters) {
  if (scorer_.features) {
    transpose(parameters[parameters.size() - 2], scorer_.features, scorer_.hidden, scorer_.features,
              scorer_weight_.data(), scorer_.hidden);
    std::copy_n(parameters.back(), scorer_.hidden, scorer_out_.data());
  }
  const int hidden = widths_[1];
  transpose(parameters[0], inputs(), hidden, inputs(), first_.data(), first_stride_);
  std::copy_n(parameters[1], hidden, first_bias_.data());
  if (bf16_)
    for (int j = 0; j < inputs(); ++j)
      kernels_.fold(first_.data() + j * first_stride_, first_stride_,
                    first_folded_.data() + j * (first_stride_ / 2));
  for (std::size_t l = 0; l < dense_.size(); ++l)
    load_dense(dense_[l], parameters[2 * l + 2], parameters[2 * l + 3]);
}

void Mlp::load_dense(Dense& layer, const float* weight, const float* bias) {
  std::copy_n(bias, layer.out, layer.bias.data());
  if (!bf16_) {
    load_weight(weight, layer.in, layer.out, layer.forward.data(), layer.backward.data());
    return;
  }
  kernels_.narrow(weight, layer.in, layer.out, layer.in, layer.narrow.data(), layer.backward_pairs.data(),
                  layer.in_stride());
  // Two consecutive bfloat16 of a row are the pair that a term of the forward product needs.
  transpose(reinterpret_cast<const std::uint32_t*>(layer.narrow.data()), layer.in_stride() / 2, layer.out,
            layer.in / 2, layer.forward_pairs.data(), layer.out_stride());
}

void Mlp::forward_chunk(const float* observations, int n) {
  nonzeros_.find(kernels_, observations, n, inputs(), row());
  Dense& second = dense_.front();
  for (int i = 0; i < n; ++i) {
    const auto start = nonzeros_.begin[at(i)];
    const int found = nonzeros_.begin[at(i) + 1] - start;
    const std::uint16_t* const index = nonzeros_.input.data() + start;
    const float* const value = nonzeros_.value.data() + start;
    float* sums = second.inputs.data() + i * second.in_stride();  // rows have room for first_stride_
    if (bf16_)
      kernels_.gather_folded(index, value, found, first_folded_.data(), first_stride_ / 2, first_bias_.data(),
                             sums, first_stride_);
    else
      kernels_.gather(index, value, found, first_.data(), first_stride_, first_bias_.data(), sums,
                      widths_[1]);
  }
  for (std::size_t l = 0; l < dense_.size(); ++l) {
    Dense& layer = dense_[l];
    const bool last = l + 1 == dense_.size();
    Product product = forward_product(n, layer.in, layer.out);
    product.bias = layer.bias.data();
    product.rectify = !last;
    // A hidden layer's outputs are the next one's inputs, with the same stride.
    product.c = last ? layer.outputs.data() : dense_[l + 1].inputs.data();
    if (bf16_) {
      kernels_.narrow(layer.inputs.data(), layer.in_stride(), n, layer.in, layer.narrow_inputs.data(),
                      layer.input_pairs.data(), layer.in_stride());
      product.terms /= 2;
      product.a_row /= 2;
      multiply(kernels_, product, layer.narrow_inputs.data(), layer.forward_pairs.data());
    } else {
      multiply(kernels_, product, layer.inputs.data(), layer.forward.data());
    }
  }
}

void Mlp::backward_chunk(int n, std::span<float* const> into) {
  for (std::size_t l = dense_.size(); l-- > 0;) {
    Dense& layer = dense_[l];
    float *const weight = into[2 * l + 2], *const bias = into[2 * l + 3];
    std::array<float, kMostHidden + kWidest> sums;
    std::fill_n(sums.data(), padded(layer.out), 0.0f);
    kernels_.sum_rows(layer.outputs.data(), layer.out_stride(), n, sums.data(), padded(layer.out));
    for (int j = 0; j < layer.out; ++j) bias[j] += sums[at(j)];

    Product weights = weight_product(n, layer.in, layer.out);
    weights.c = weight;
    Product inputs = input_product(n, layer.in, layer.out);
    inputs.gate = layer.inputs.data();
    // The gradient of the layer's inputs belongs to the sums that made them, in the layer before.
    inputs.c = l > 0 ? dense_[l - 1].outputs.data() : hidden_gradient_.data();
    if (bf16_) {
      kernels_.narrow(layer.outputs.data(), layer.out_stride(), n, padded(layer.out),
                      layer.narrow_outputs.data(), layer.output_pairs.data(), layer.out_stride());
      weights.terms = (n + 1) / 2;
      multiply(kernels_, weights, layer.output_pairs.data(), layer.input_pairs.data());
      inputs.terms = (layer.out + 1) / 2;
      inputs.a_row /= 2;
      multiply(kernels_, inputs, layer.narrow_outputs.data(), layer.backward_pairs.data());
    } else {
      multiply(kernels_, weights, layer.outputs.data(), layer.inputs.data());
      multiply(kernels_, inputs, layer.outputs.data(), layer.backward.data());
    }
  }
  const int hidden = widths_[1];
  const std::ptrdiff_t stride = dense_.front().in_stride();
  kernels_.sum_rows(hidden_gradient_.data(), stride, n, into[1], hidden);
  nonzeros_.scatter(kernels_, hidden_gradient_.data(), stride, n, inputs(), first_gradient_.data(), hidden);
}

void Mlp::score(const float* observation, const bool* legal, float* outputs) {
  const int features = scorer_.features, hidden = scorer_.hidden;
  const float* context = outputs + actions() + 1;
  std::array<std::uint16_t, kMostHidden + kWidest> index;
  std::array<float, kMostHidden + kWidest> value;
  for (int action = 0; features && action < actions(); ++action) {
    if (legal && !legal[action]) continue;
    const int found =
        kernels_.nonzeros(observation + inputs() + action * features, features, index.data(), value.data());
    float* units = units_.data() + action * hidden;
    kernels_.gather(index.data(), value.data(), found, scorer_weight_.data(), hidden, context, units, hidden);
    float sum = 0.0f;
    for (int j = 0; j < hidden; ++j) sum += units[j] * scorer_out_[at(j)];
    outputs[action] += sum;
  }
}

void Mlp::score_backward(const float* observation, const bool* legal, float* outputs, float* into_out) {
  const int features = scorer_.features, hidden = scorer_.hidden;
  float* context = outputs + actions() + 1;
  std::fill_n(context, hidden, 0.0f);
  std::array<float, kMostHidden> slope;
  for (int action = 0; features && action < actions(); ++action) {
    if (!legal[action]) continue;
    const float* units = units_.data() + action * hidden;
    const float* x = observation + inputs() + action * features;
    for (int j = 0; j < hidden; ++j) {
      into_out[j] += outputs[action] * units[j];
      slope[at(j)] = units[j] > 0.0f ? outputs[action] * scorer_out_[at(j)] : 0.0f;
      context[j] += slope[at(j)];
    }
    for (int f = 0; f < features; ++f) {
      if (x[f] == 0.0f) continue;
      float* gradient = scorer_gradient_.data() + f * hidden;
      for (int j = 0; j < hidden; ++j) gradient[j] += x[f] * slope[at(j)];
    }
  }
}

void Mlp::forward(const float* observations, std::size_t n, float* outputs) {
  for (std::size_t i = 0; i < n; i += kChunk) {
    const int some = static_cast<int>(std::min<std::size_t>(kChunk, n - i));
    const float* rows = observations + i * at(row());
    forward_chunk(rows, some);
    for (int k = 0; k < some; ++k, outputs += actions() + 1) {
      score(rows + static_cast<std::ptrdiff_t>(k) * row(), nullptr, outputs_of(k));
      std::copy_n(outputs_of(k), actions() + 1, outputs);
    }
  }
}

void Mlp::act(const float* observations, const bool* masks, const float* uniform, std::size_t n,
              std::int64_t* chosen, float* chosen_log_probs, float* values) {
  const auto width = at(actions());
  std::array<float, kMostActions + kWidest> log_probs;
  for (std::size_t i = 0; i < n; ++i) {
    const auto within = static_cast<int>(i % kChunk);
    if (within == 0)
      forward_chunk(observations + i * at(row()), static_cast<int>(std::min<std::size_t>(kChunk, n - i)));
    const bool* legal = masks + i * width;
    float* outputs = outputs_of(within);
    score(observations + i * at(row()), legal, outputs);
    const int action = kernels_.draw(outputs, legal, actions(), uniform[i], log_probs.data());
    chosen[i] = action;
    chosen_log_probs[i] = log_probs[at(action)];
    values[i] = outputs[width];
  }
}

Terms Mlp::gradients(const Minibatch& batch, const Objective& objective, std::span<float* const> into) {
  const auto width = at(actions());
  const float weight = 1.0f / static_cast<float>(batch.samples);
  std::array<double, 5> sums{};
  std::ranges::fill(first_gradient_, 0.0f);
  std::ranges::fill(scorer_gradient_, 0.0f);
  for (std::size_t i = 0; i < batch.samples; i += kChunk) {
    const int n = static_cast<int>(std::min<std::size_t>(kChunk, batch.samples - i));
    forward_chunk(batch.observations + i * at(row()), n);
    for (int k = 0; k < n; ++k) {
      const std::size_t own = i + at(k);
      const Sample sample{batch.masks + own * width, static_cast<int>(batch.actions[own]),
                          batch.log_probs[own], batch.advantages[own], batch.returns[own]};
      const float* observation = batch.observations + own * at(row());
      score(observation, sample.legal, outputs_of(k));
      const Terms terms = kernels_.objective(outputs_of(k), actions(), sample, objective, weight);
      score_backward(observation, sample.legal, outputs_of(k), into.back());
      const float parts[] = {terms.policy, terms.value, terms.entropy, terms.approx_kl, terms.clipped};
      for (std::size_t t = 0; t < sums.size(); ++t) sums[t] += static_cast<double>(parts[t]);
    }
    backward_chunk(n, into);
  }
  transpose<true>(first_gradient_.data(), widths_[1], inputs(), widths_[1], into[0], inputs());
  if (scorer_.features)
    transpose<true>(scorer_gradient_.data(), scorer_.hidden, scorer_.features, scorer_.hidden,
                    into[into.size() - 2], scorer_.features);
  const auto mean = [&](std::size_t t) {
    return static_cast<float>(sums[t] / static_cast<double>(batch.samples));
  };
  return {mean(0), mean(1), mean(2), mean(3), mean(4)};
}

}  // namespace bothost::network
