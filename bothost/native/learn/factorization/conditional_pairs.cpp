#include <algorithm>
#include <cmath>

#include "core/types.h"
#include "learn/factorization/conditional.h"

namespace bothost::fm {
namespace {

/// A product of many factors as the sum of their logs: the log is taken only when it would leave the range of
/// a double.
class LogProduct {
 public:
  void times(double factor) {
    product_ *= factor;
    if (product_ > 1e200 || product_ < 1e-200) settle();
  }
  void plus(double log) { log_ += log; }
  double log() const { return log_ + std::log(product_); }

 private:
  void settle() {
    log_ += std::log(product_);
    product_ = 1;
  }
  double product_ = 1, log_ = 0;
};

/// The ablated models of a pair. Taking d away from the scores of the candidates in J, whose probabilities
/// sum to q, adds log(1 - q + q exp(-d)) to a sample's loss, and d if the chosen one is in J.
struct Ablated {
  double term = 0, drop = 0, drop_second = 0, drop_first = 0;
  LogProduct pair, second, first;
  std::int64_t uses = 0;
};

class PairTable {
 public:
  PairTable(const ConditionalMachine& machine, std::size_t candidates)
      : machine_(machine),
        positions_(at(machine.shape().positions)),
        candidates_(candidates),
        places_((positions_ + candidates) * candidates, -1) {}

  /// `i` as in extend_choices; `j`: of candidates, counted from 0.
  Ablated& of(std::size_t i, std::size_t j) {
    auto& place = places_[i * candidates_ + j];
    if (place < 0) {
      place = static_cast<std::int32_t>(all_.size());
      all_.push_back(made(i, j));
    }
    return all_[at(place)];
  }

  template <class Use>
  void each(Use use) const {
    for (std::size_t i = 0; i < positions_ + candidates_; ++i)
      for (std::size_t j = 0; j < candidates_; ++j)
        if (const auto place = places_[i * candidates_ + j]; place >= 0) use(i, j, all_[at(place)]);
  }

 private:
  Ablated made(std::size_t i, std::size_t j) const {
    const auto k = at(machine_.shape().quadratic);
    const float *const a = machine_.row(i), *const b = machine_.row(positions_ + j);
    Ablated out;
    for (std::size_t f = 0; f < k; ++f) out.term += static_cast<double>(a[f]) * static_cast<double>(b[f]);
    const double w_j = static_cast<double>(machine_.weights[j]);
    const double w_i = i < positions_ ? 0 : static_cast<double>(machine_.weights[i - positions_]);
    out.drop = std::exp(-out.term);
    out.drop_second = std::exp(-w_j);
    out.drop_first = std::exp(-w_i);
    return out;
  }

  const ConditionalMachine& machine_;
  std::size_t positions_, candidates_;
  std::vector<std::int32_t> places_;
  std::vector<Ablated> all_;
};

/// Of a sample: by features of candidates the probability of those that have one, and whether the chosen one
/// has it.
struct Mass {
  std::vector<float> sum;
  std::vector<std::uint8_t> chosen;
  std::vector<std::size_t> touched;

  explicit Mass(std::size_t size) : sum(size, 0), chosen(size, 0) {}
  void put(std::size_t at, float probability, bool is_chosen) {
    if (sum[at] == 0) touched.push_back(at);
    sum[at] += std::max(probability, 1e-30f);
    if (is_chosen) chosen[at] = 1;
  }
  void clear() {
    for (const auto at : touched) {
      sum[at] = 0;
      chosen[at] = 0;
    }
    touched.clear();
  }
};

/// Taking away `d` = -log(factor) where the probability of J is q, and w of another set that contains J,
/// whose probability is `all`: exp(-w) multiplies all of it, exp(-d) only q.
double ablated_both(double q, double all, double factor, double factor_of_all) {
  return 1 - all + factor_of_all * (all - q + q * factor);
}

}  // namespace

ConditionalPairs conditional_pair_losses(const ConditionalMachine& machine, const ChoiceSamples& s) {
  const auto& shape = machine.shape();
  const auto positions = at(shape.positions), choices = at(shape.choices);
  PairTable table(machine, choices);
  Mass alone(choices), together(choices * choices);
  std::vector<float> probabilities(s.samples.legal.items.size());
  // By feature of candidates: what the loss grows by without its weight.
  std::vector<double> without(choices, 0);
  ConditionalPairs out;
  out.base = machine.probabilities(s, probabilities.data());
  for (std::size_t index = 0; index < s.size(); ++index) {
    const auto legal = s.samples.legal[index];
    const auto first = at(s.samples.legal.offsets[index]);
    alone.clear();
    together.clear();
    for (std::size_t q = 0; q < legal.size(); ++q) {
      const float p = probabilities[first + q];
      const bool is_chosen = legal[q] == s.samples.labels[index];
      const auto own = s.choices[first + q];
      for (std::size_t m = 0; m < own.size(); ++m) {
        const auto j = at(own[m]);
        alone.put(j, p, is_chosen);
        for (std::size_t n = 0; n < m; ++n) together.put(at(own[n]) * choices + j, p, is_chosen);
      }
    }
    for (const auto j : alone.touched) {
      const double q = std::min(1.0, static_cast<double>(alone.sum[j])),
                   w = static_cast<double>(machine.weights[j]);
      without[j] += std::log(1 - q + q * std::exp(-w)) + (alone.chosen[j] ? w : 0.0);
    }
    for (const auto i : s.samples.features[index])
      for (const auto j : alone.touched) {
        Ablated& pair = table.of(at(i), j);
        const double q = std::min(1.0, static_cast<double>(alone.sum[j]));
        ++pair.uses;
        pair.pair.times(1 - q + q * pair.drop);
        // What w_j adds alone is the same for all i, but only where i holds is the pair's term gone, too.
        pair.second.times((1 - q + q * pair.drop * pair.drop_second) / (1 - q + q * pair.drop_second));
        if (alone.chosen[j]) pair.pair.plus(pair.term), pair.second.plus(pair.term);
      }
    for (const auto both : together.touched) {
      const std::size_t i = both / choices, j = both % choices;
      Ablated& pair = table.of(positions + i, j);
      const double q = std::min(1.0, static_cast<double>(together.sum[both]));
      const double by_i = std::min(1.0, static_cast<double>(alone.sum[i])),
                   by_j = std::min(1.0, static_cast<double>(alone.sum[j]));
      ++pair.uses;
      pair.pair.times(1 - q + q * pair.drop);
      pair.second.times(ablated_both(q, by_j, pair.drop, pair.drop_second) /
                        ablated_both(0, by_j, 1, pair.drop_second));
      pair.first.times(ablated_both(q, by_i, pair.drop, pair.drop_first) /
                       ablated_both(0, by_i, 1, pair.drop_first));
      if (together.chosen[both])
        pair.pair.plus(pair.term), pair.second.plus(pair.term), pair.first.plus(pair.term);
    }
  }
  const double count = static_cast<double>(std::max<std::size_t>(1, s.size()));
  table.each([&](std::size_t i, std::size_t j, const Ablated& pair) {
    double least = std::min(pair.pair.log(), pair.second.log() + without[j]);
    if (i >= positions) least = std::min(least, pair.first.log() + without[i - positions]);
    out.first.push_back(static_cast<std::int32_t>(i));
    out.second.push_back(static_cast<std::int32_t>(positions + j));
    out.smallest.push_back(out.base + least / count);
  });
  return out;
}

OwnedRows extend_choices(int positions, int choices, std::span<const std::int32_t> pairs,
                         const ChoiceSamples& s) {
  const auto base = at(positions + choices), count = pairs.size() / 2;
  for (std::size_t n = 0; n < count; ++n) {
    const auto first = pairs[2 * n], second = pairs[2 * n + 1];
    if (first < 0 || first >= second || second < positions || at(second) >= base + n)
      throw InvalidInput(
          "a combination must be of two features that come before it, in ascending order, the second of "
          "candidates");
  }
  std::vector<std::uint8_t> known(base + count, 0);
  OwnedRows out;
  auto& items = out.items;
  for (std::size_t index = 0; index < s.size(); ++index) {
    const auto first = at(s.samples.legal.offsets[index]);
    for (const auto i : s.samples.features[index]) known[at(i)] = 1;
    for (std::size_t q = 0; q < s.samples.legal[index].size(); ++q) {
      const auto own = s.choices[first + q];
      for (const auto j : own) known[at(positions + j)] = 1;
      items.insert(items.end(), own.begin(), own.end());
      const std::size_t begin = items.size();
      for (std::size_t n = 0; n < count; ++n)
        if (known[at(pairs[2 * n])] && known[at(pairs[2 * n + 1])]) {
          known[base + n] = 1;
          items.push_back(static_cast<std::int32_t>(choices + static_cast<int>(n)));
        }
      for (std::size_t n = begin; n < items.size(); ++n) known[at(positions + items[n])] = 0;
      for (const auto j : own) known[at(positions + j)] = 0;
      out.end_row();
    }
    for (const auto i : s.samples.features[index]) known[at(i)] = 0;
  }
  return out;
}

}  // namespace bothost::fm
