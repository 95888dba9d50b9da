#include "learn/networks/action_values.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/types.h"

namespace bothost::network {
namespace {

/// Positions evaluated at a time: what is computed of them and their moves stays in the second-level cache.
constexpr std::size_t kEvaluated = 64;

float dot(const float* a, const float* b, int n) {
  float sums[8] = {};
  for (int i = 0; i < n; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

void ActionValues::Activations::resize(std::size_t rows, bool gradients) {
  const std::size_t room = rows * at(stride());
  if (out.size() < room) out.resize(room);
  if (gradients && gradient.size() < room) gradient.resize(room);
}

ActionValues::ActionValues(std::vector<int> trunk, std::vector<int> head, const Kernels& kernels)
    : trunk_widths_(std::move(trunk)), head_widths_(std::move(head)), kernels_(kernels) {
  check_widths(trunk_widths_, "trunk");
  check_widths(head_widths_, "head");
  const auto table = [&](const std::vector<int>& widths) {
    shapes_.push_back({at(widths[0]), at(widths[1])});
    return Table{widths[1], std::vector<float>(network::size_of(widths[0], widths[1]))};
  };
  const auto dense = [&](int in, int out) {
    shapes_.push_back({at(out), at(in)});
    shapes_.push_back({at(out)});
    return Dense{in, out, std::vector<float>(network::size_of(in, stride_of(out))),
                 std::vector<float>(network::size_of(out, stride_of(in))), std::vector<float>(at(out))};
  };
  trunk_table_ = table(trunk_widths_);
  trunk_bias_.resize(at(trunk_widths_[1]));
  shapes_.push_back({trunk_bias_.size()});
  for (std::size_t l = 2; l < trunk_widths_.size(); ++l)
    trunk_.push_back(dense(trunk_widths_[l - 1], trunk_widths_[l]));
  join_ = dense(trunk_widths_.back(), head_widths_[1]);
  head_table_ = table(head_widths_);
  for (std::size_t l = 2; l < head_widths_.size(); ++l)
    head_.push_back(dense(head_widths_[l - 1], head_widths_[l]));
  value_weight_.resize(at(head_widths_.back()));
  shapes_.push_back({1, value_weight_.size()});
  shapes_.push_back({1});
  for (std::size_t l = 1; l < trunk_widths_.size(); ++l) trunk_out_.push_back({trunk_widths_[l], {}, {}});
  for (std::size_t l = 1; l < head_widths_.size(); ++l) head_out_.push_back({head_widths_[l], {}, {}});
  joined_.width = head_widths_[1];
}

void ActionValues::load(std::span<const float* const> parameters) {
  auto next = parameters.begin();
  const auto take = [&](std::vector<float>& into) { std::copy_n(*next++, into.size(), into.data()); };
  const auto take_dense = [&](Dense& layer) {
    load_weight(*next++, layer.in, layer.out, layer.forward.data(), layer.backward.data());
    take(layer.bias);
  };
  take(trunk_table_.rows);
  take(trunk_bias_);
  for (Dense& layer : trunk_) take_dense(layer);
  take_dense(join_);
  take(head_table_.rows);
  for (Dense& layer : head_) take_dense(layer);
  take(value_weight_);
  value_bias_ = **next;
}

void ActionValues::multiply(const Dense& layer, const Activations& from, Activations& to, int rows,
                            bool rectify) const {
  Product product = forward_product(rows, layer.in, layer.out);
  product.c = to.out.data();
  product.bias = layer.bias.data();
  product.rectify = rectify;
  network::multiply(kernels_, product, from.out.data(), layer.forward.data());
}

void ActionValues::compute(const float* positions, int n, const float* moves, const std::int64_t* offsets,
                           float* values) {
  const std::int64_t first = offsets[0];
  const int count = static_cast<int>(offsets[n] - first);
  for (Activations& layer : trunk_out_) layer.resize(at(n), false);
  for (Activations& layer : head_out_) layer.resize(at(count), false);
  joined_.resize(at(n), false);
  const auto gather = [&](const Nonzeros& x, const Table& table, std::int64_t row, const float* begin,
                          Activations& to) {
    const auto start = x.begin[at(row)];
    kernels_.gather(x.input.data() + start, x.value.data() + start, x.begin[at(row) + 1] - start,
                    table.rows.data(), table.width, begin, to.row(row), table.width);
  };

  position_inputs_.find(kernels_, positions, n, inputs(), inputs());
  for (int i = 0; i < n; ++i) gather(position_inputs_, trunk_table_, i, trunk_bias_.data(), trunk_out_[0]);
  for (std::size_t l = 0; l < trunk_.size(); ++l)
    multiply(trunk_[l], trunk_out_[l], trunk_out_[l + 1], n, true);
  multiply(join_, trunk_out_.back(), joined_, n, false);

  move_inputs_.find(kernels_, moves, count, features(), features());
  for (int i = 0; i < n; ++i)
    for (auto move = offsets[i] - first; move < offsets[i + 1] - first; ++move)
      gather(move_inputs_, head_table_, move, joined_.row(i), head_out_[0]);
  for (std::size_t l = 0; l < head_.size(); ++l)
    multiply(head_[l], head_out_[l], head_out_[l + 1], count, true);
  for (int move = 0; move < count; ++move)
    values[move] = value_bias_ + dot(head_out_.back().row(move), value_weight_.data(), representation());
}

void ActionValues::evaluate(const Candidates& all, float* values) {
  positions_ = moves_ = 0;  // there is nothing to go back through
  for (std::size_t i = 0; i < all.n; i += kEvaluated) {
    const std::size_t n = std::min(kEvaluated, all.n - i);
    const auto first = at(all.offsets[i]);
    compute(all.positions + i * at(inputs()), static_cast<int>(n), all.moves + first * at(features()),
            all.offsets + i, values + first);
  }
}

void ActionValues::forward(const Candidates& all, float* values, float* representations) {
  if (all.offsets[all.n] > kMostMoves || all.n > at(kMostMoves))
    throw InvalidInput("at most " + std::to_string(kMostMoves) + " moves can be learnt from at once");
  compute(all.positions, static_cast<int>(all.n), all.moves, all.offsets, values);
  positions_ = static_cast<int>(all.n);
  moves_ = static_cast<int>(all.offsets[all.n]);
  offsets_.assign(all.offsets, all.offsets + all.n + 1);
  for (int move = 0; move < moves_; ++move)
    std::copy_n(head_out_.back().row(move), representation(),
                representations + static_cast<std::ptrdiff_t>(move) * representation());
}

void ActionValues::back(const Dense& layer, Activations& from, const Activations& to, int rows,
                        std::span<float* const>::iterator& next) {
  kernels_.sum_rows(to.gradient.data(), to.stride(), rows, *--next, to.width);
  Product by_weight = weight_product(rows, layer.in, layer.out);
  by_weight.c = *--next;
  network::multiply(kernels_, by_weight, to.gradient.data(), from.out.data());
  Product by_inputs = input_product(rows, layer.in, layer.out);
  by_inputs.c = from.gradient.data();
  by_inputs.gate = from.out.data();
  network::multiply(kernels_, by_inputs, to.gradient.data(), layer.backward.data());
}

void ActionValues::backward(const float* values, const float* representations, std::span<float* const> into) {
  for (Activations& layer : trunk_out_) layer.resize(at(positions_), true);
  for (Activations& layer : head_out_) layer.resize(at(moves_), true);
  joined_.resize(at(positions_), true);

  auto next = into.end();
  **--next += static_cast<float>(std::accumulate(values, values + moves_, 0.0));
  float* const value_weight = *--next;
  Activations& top = head_out_.back();
  for (int move = 0; move < moves_; ++move) {
    const float* const out = top.row(move);
    const float* const own = representations + static_cast<std::ptrdiff_t>(move) * representation();
    float* const gradient = top.gradient.data() + move * top.stride();
    for (int j = 0; j < representation(); ++j) {
      value_weight[j] += values[move] * out[j];
      gradient[j] = out[j] > 0 ? own[j] + values[move] * value_weight_[at(j)] : 0.0f;
    }
  }
  for (std::size_t l = head_.size(); l-- > 0;) back(head_[l], head_out_[l], head_out_[l + 1], moves_, next);
  const Activations& moves = head_out_[0];
  move_inputs_.scatter(kernels_, moves.gradient.data(), moves.stride(), moves_, features(), *--next,
                       moves.width);
  for (std::size_t i = 0; i < at(positions_); ++i) {
    float* const sums = joined_.gradient.data() + static_cast<std::ptrdiff_t>(i) * joined_.stride();
    std::fill_n(sums, joined_.width, 0.0f);
    kernels_.sum_rows(moves.gradient.data() + offsets_[i] * moves.stride(), moves.stride(),
                      static_cast<int>(offsets_[i + 1] - offsets_[i]), sums, joined_.width);
  }
  back(join_, trunk_out_.back(), joined_, positions_, next);
  for (std::size_t l = trunk_.size(); l-- > 0;)
    back(trunk_[l], trunk_out_[l], trunk_out_[l + 1], positions_, next);
  const Activations& first = trunk_out_[0];
  kernels_.sum_rows(first.gradient.data(), first.stride(), positions_, *--next, first.width);
  position_inputs_.scatter(kernels_, first.gradient.data(), first.stride(), positions_, inputs(), *--next,
                           first.width);
}

}  // namespace bothost::network
