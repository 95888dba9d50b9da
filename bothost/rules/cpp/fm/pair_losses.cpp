#include "fm/pair_losses.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace bothost::fm {
namespace {

/// First features whose pairs are computed together: the factors of the second are read once for all.
constexpr std::int32_t kFirsts = 4;

/// exp(x) to about 2e-7 relative, in a form that compilers vectorize.
inline float exp_of(float x) {
  x = std::clamp(x, -87.0f, 88.0f);
  const float n = std::nearbyint(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float y = 1.9875691500e-4f;  // the minimax polynomial of Cephes' expf
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  const auto bits = static_cast<std::int32_t>(n) + 127;
  return y * std::bit_cast<float>(bits << 23);
}

/// A sum of logarithms as one product, whose logarithm is taken before it leaves the range of doubles.
class LogSum {
 public:
  void add(float factor) {
    product_ *= static_cast<double>(factor);
    if (!(product_ > 1e-200 && product_ < 1e200)) fold();
  }
  double value() {
    fold();
    return sum_;
  }

 private:
  void fold() {
    sum_ += std::log(product_);
    product_ = 1;
  }
  double product_ = 1, sum_ = 0;
};

/// A sample in one piece of memory, for samples are visited once for each of their features.
struct Packed {
  std::uint32_t num_features, num_legal, label;
  const std::int32_t* features;
  const std::int32_t* legal;
  const float* probabilities;
  /// For each feature sum_r p_r exp(-w_r); with three models only.
  const float* kept;
};

/// Where a feature is set: the start of the packed sample, and the place of the feature in it.
struct Use {
  std::uint64_t start;
  std::uint32_t place;
};

class Scorer {
 public:
  Scorer(const Machine& machine, const Samples& samples, Reading reading)
      : m_(machine),
        s_(samples),
        reading_(reading),
        features_(machine.shape().features),
        classes_(static_cast<std::size_t>(machine.shape().classes)),
        k_(static_cast<std::size_t>(machine.shape().factors)),
        padded_((classes_ + 31) / 32 * 32),
        width_(padded_ * (reading == Reading::nested ? 2 : 1)) {}

  PairLosses run() {
    probabilities_.resize(s_.legal.items.size());
    out_.base = m_.probabilities(s_, probabilities_.data());
    if (nested() || reading_ == Reading::separate) without_weights();
    pack();
    transpose();
    const auto rows = static_cast<std::size_t>(kFirsts) * at(features_);
    exponentials_.resize(rows * width_);
    for (std::int32_t i = 0; i < features_; i += kFirsts) score(i, std::min(i + kFirsts, features_));
    return std::move(out_);
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  bool nested() const { return reading_ == Reading::nested; }

  /// For every feature alone: the loss that taking away w_i adds, in all and, as a factor, in each sample.
  void without_weights() {
    factors_.resize(at(features_) * padded_);
    for (std::int32_t i = 0; i < features_; ++i)
      for (std::size_t r = 0; r < classes_; ++r)
        factors_[at(i) * padded_ + r] = std::exp(-m_.weights[at(i) * classes_ + r]);
    alone_.assign(at(features_), 0);
    kept_.resize(s_.features.items.size());
    for (std::size_t s = 0; s < s_.size(); ++s) {
      const auto row = s_.features[s], legal = s_.legal[s];
      const float* const p = &probabilities_[at_offset(s_.legal, s)];
      for (std::size_t place = 0; place < row.size(); ++place) {
        const float* const factor = &factors_[at(row[place]) * padded_];
        float kept = 0;
        for (std::size_t q = 0; q < legal.size(); ++q) kept += p[q] * factor[legal[q]];
        kept_[at_offset(s_.features, s) + place] = kept;
        alone_[at(row[place])] +=
            std::log(static_cast<double>(kept)) +
            static_cast<double>(m_.weights[at(row[place]) * classes_ + at(s_.labels[s])]);
      }
    }
  }

  static std::size_t at_offset(const Rows& rows, std::size_t row) {
    return static_cast<std::size_t>(rows.offsets[row]);
  }

  void pack() {
    uses_.resize(at(features_));
    for (std::size_t s = 0; s < s_.size(); ++s) {
      const auto row = s_.features[s], legal = s_.legal[s];
      const std::uint64_t start = packed_.size();
      for (std::size_t place = 0; place + 1 < row.size(); ++place)
        uses_[at(row[place])].push_back({start, static_cast<std::uint32_t>(place)});
      packed_.push_back(static_cast<std::int32_t>(row.size()));
      packed_.push_back(static_cast<std::int32_t>(legal.size()));
      packed_.push_back(s_.labels[s]);
      packed_.insert(packed_.end(), legal.begin(), legal.end());
      const float* const p = &probabilities_[at_offset(s_.legal, s)];
      for (std::size_t q = 0; q < legal.size(); ++q) packed_.push_back(std::bit_cast<std::int32_t>(p[q]));
      packed_.insert(packed_.end(), row.begin(), row.end());
      if (nested())
        for (std::size_t n = 0; n < row.size(); ++n)
          packed_.push_back(std::bit_cast<std::int32_t>(kept_[at_offset(s_.features, s) + n]));
    }
  }

  Packed unpack(std::uint64_t start) const {
    const std::int32_t* const head = &packed_[start];
    Packed out{static_cast<std::uint32_t>(head[0]),
               static_cast<std::uint32_t>(head[1]),
               static_cast<std::uint32_t>(head[2]),
               nullptr,
               head + 3,
               nullptr,
               nullptr};
    out.probabilities = reinterpret_cast<const float*>(out.legal + out.num_legal);
    out.features = out.legal + 2 * out.num_legal;
    out.kept = reinterpret_cast<const float*>(out.features + out.num_features);
    return out;
  }

  /// Per-class factors as (T, k, R), so that a pair's terms of neighbouring classes are computed together.
  void transpose() {
    if (m_.shape().shared || !k_) return;
    by_class_.assign(at(features_) * k_ * padded_, 0.0f);
    for (std::size_t t = 0; t < at(features_); ++t)
      for (std::size_t r = 0; r < classes_; ++r)
        for (std::size_t f = 0; f < k_; ++f)
          by_class_[(t * k_ + f) * padded_ + r] = m_.factors[(t * classes_ + r) * k_ + f];
  }

  /// <i, j>_r for all r.
  void terms(std::int32_t i, std::int32_t j, float* out) const {
    if (m_.shape().shared || !k_) return m_.pair_term(i, j, out);
    const float* const a = &by_class_[at(i) * k_ * padded_];
    const float* const b = &by_class_[at(j) * k_ * padded_];
    constexpr std::size_t kLanes = 32;
    for (std::size_t start = 0; start < padded_; start += kLanes) {
      float sum[kLanes] = {};
      for (std::size_t f = 0; f < k_; ++f)
        for (std::size_t r = 0; r < kLanes; ++r)
          sum[r] += a[f * padded_ + start + r] * b[f * padded_ + start + r];
      std::copy_n(sum, kLanes, out + start);
    }
  }

  /// All pairs of which the first feature is one of i0 .. i1 - 1.
  void score(std::int32_t i0, std::int32_t i1) {
    std::vector<std::uint32_t> together[kFirsts];
    for (std::int32_t i = i0; i < i1; ++i) count(i, together[i - i0]);
    for (std::int32_t j = i0 + 1; j < features_; ++j)
      for (std::int32_t i = i0; i < std::min(i1, j); ++i)
        if (together[i - i0][at(j)]) exponentiate(i, j, row(i - i0, j));
    for (std::int32_t i = i0; i < i1; ++i) {
      sums_.assign(at(features_), {});
      if (nested())
        visit<true>(i, row(i - i0, 0));
      else
        visit<false>(i, row(i - i0, 0));
      collect(i, together[i - i0]);
    }
  }

  float* row(std::int32_t first, std::int32_t j) {
    return &exponentials_[(at(first) * at(features_) + at(j)) * width_];
  }

  void count(std::int32_t i, std::vector<std::uint32_t>& together) const {
    together.assign(at(features_), 0);
    for (const Use use : uses_[at(i)]) {
      const Packed s = unpack(use.start);
      for (std::uint32_t place = use.place + 1; place < s.num_features; ++place)
        ++together[at(s.features[place])];
    }
  }

  /// exp(-<i, j>_r) for all r; nested, beside each the same times exp(-w_j).
  void exponentiate(std::int32_t i, std::int32_t j, float* out) {
    term_.resize(padded_);
    terms(i, j, term_.data());
    if (!nested()) {
      for (std::size_t r = 0; r < padded_; ++r) out[r] = exp_of(-term_[r]);
      return;
    }
    const float* const factor = &factors_[at(j) * padded_];
    for (std::size_t r = 0; r < padded_; ++r) {
      const float x = exp_of(-term_[r]);
      out[2 * r] = x;
      out[2 * r + 1] = x * factor[r];
    }
  }

  /// Adds what every sample that sets i says of its pairs; `x` are the exponentials of i.
  template <bool kNested>
  void visit(std::int32_t i, const float* x) {
    constexpr std::size_t step = kNested ? 2 : 1;
    const auto& uses = uses_[at(i)];
    scaled_.resize(classes_);
    for (std::size_t n = 0; n < uses.size(); ++n) {
      if (n + 4 < uses.size()) __builtin_prefetch(&packed_[uses[n + 4].start]);
      const Packed s = unpack(uses[n].start);
      const float* const p = s.probabilities;
      if constexpr (kNested) {
        const float* const factor = &factors_[at(i) * padded_];
        for (std::uint32_t q = 0; q < s.num_legal; ++q) scaled_[q] = p[q] * factor[s.legal[q]];
      }
      for (std::uint32_t place = uses[n].place + 1; place < s.num_features; ++place) {
        const std::size_t j = at(s.features[place]);
        const float* const cells = x + j * width_;
        float none = 0, no_first = 0, no_second = 0;
        for (std::uint32_t q = 0; q < s.num_legal; ++q) {
          const float* const cell = cells + at(s.legal[q]) * step;
          none += p[q] * cell[0];
          if constexpr (kNested) {
            no_first += scaled_[q] * cell[0];
            no_second += p[q] * cell[1];
          }
        }
        const float label = cells[s.label * step];
        sums_[j].pair.add(none / label);
        if constexpr (kNested) {
          // The loss without w_i alone stands in alone_[i] for every sample that sets i: exchange it here.
          sums_[j].first.add(no_first / (label * s.kept[uses[n].place]));
          sums_[j].second.add(no_second / (label * s.kept[place]));
        }
      }
    }
  }

  void collect(std::int32_t i, const std::vector<std::uint32_t>& together) {
    const auto n = static_cast<double>(std::max<std::size_t>(s_.size(), 1));
    for (std::int32_t j = i + 1; j < features_; ++j) {
      if (!together[at(j)]) continue;
      out_.first.push_back(i);
      out_.second.push_back(j);
      Sums& sums = sums_[at(j)];
      out_.losses[0].push_back(out_.base + sums.pair.value() / n);
      if (reading_ == Reading::pair) continue;
      out_.losses[1].push_back(out_.base + (alone_[at(i)] + (nested() ? sums.first.value() : 0)) / n);
      out_.losses[2].push_back(out_.base + (alone_[at(j)] + (nested() ? sums.second.value() : 0)) / n);
    }
  }

  struct Sums {
    LogSum pair, first, second;
  };

  const Machine& m_;
  const Samples& s_;
  const Reading reading_;
  const std::int32_t features_;
  const std::size_t classes_, k_, padded_, width_;
  PairLosses out_;
  std::vector<float> probabilities_, factors_, kept_, by_class_, exponentials_, term_, scaled_;
  std::vector<double> alone_;
  std::vector<std::int32_t> packed_;
  std::vector<std::vector<Use>> uses_;
  std::vector<Sums> sums_;
};

}  // namespace

PairLosses pair_losses(const Machine& machine, const Samples& samples, Reading reading) {
  return Scorer(machine, samples, reading).run();
}

}  // namespace bothost::fm
