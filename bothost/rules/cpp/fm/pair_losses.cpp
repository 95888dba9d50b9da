#include "fm/pair_losses.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "fm/vector_math.h"

namespace bothost::fm {
namespace {

/// Features whose pairs are computed together: the factors of the others are read once for all of them.
constexpr std::size_t kTogether = 8;
/// Sums of products that stay in registers: rows, and columns of each.
constexpr std::size_t kRows = 4, kColumns = 16;

/// A sample in one piece of memory, for samples are visited once for each of their features.
struct Packed {
  std::uint32_t num_features, num_legal, label;
  /// Ranks, ascending.
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

/// Features go by rank, the most frequent first, and a pair is looked at from the rarer of its two: so what a
/// feature meets lies close together in memory.
class Scorer {
 public:
  Scorer(const Machine& machine, const Samples& samples, Reading reading)
      : m_(machine),
        s_(samples),
        reading_(reading),
        features_(static_cast<std::size_t>(machine.shape().features)),
        classes_(static_cast<std::size_t>(machine.shape().classes)),
        k_(static_cast<std::size_t>(machine.shape().factors)),
        padded_((features_ + kColumns - 1) / kColumns * kColumns),
        cell_(reading == Reading::nested ? 2 : 1),
        row_(padded_ * cell_) {}

  PairLosses run() {
    probabilities_.resize(s_.legal.items.size());
    out_.base = m_.probabilities(s_, probabilities_.data());
    rank();
    if (reading_ != Reading::pair) without_weights();
    pack();
    transpose();
    exponentials_.resize(kTogether * classes_ * row_);
    for (std::size_t i = 0; i < features_; i += kTogether) score(i, std::min(i + kTogether, features_));
    ascend();
    return std::move(out_);
  }

 private:
  bool nested() const { return reading_ == Reading::nested; }

  static std::size_t at_offset(const Rows& rows, std::size_t row) {
    return static_cast<std::size_t>(rows.offsets[row]);
  }
  std::size_t feature(std::size_t rank) const { return static_cast<std::size_t>(feature_of_[rank]); }

  void rank() {
    std::vector<std::size_t> uses(features_, 0);
    for (const auto item : s_.features.items) ++uses[static_cast<std::size_t>(item)];
    feature_of_.resize(features_);
    std::iota(feature_of_.begin(), feature_of_.end(), 0);
    std::stable_sort(feature_of_.begin(), feature_of_.end(), [&](auto a, auto b) {
      return uses[static_cast<std::size_t>(a)] > uses[static_cast<std::size_t>(b)];
    });
    rank_of_.resize(features_);
    for (std::size_t r = 0; r < features_; ++r) rank_of_[feature(r)] = static_cast<std::int32_t>(r);
  }

  /// For every feature alone: the loss that taking away w_i adds, in all and, as a factor, in each sample.
  void without_weights() {
    factors_.assign(classes_ * padded_, 1.0f);
    for (std::size_t i = 0; i < features_; ++i)
      for (std::size_t r = 0; r < classes_; ++r)
        factors_[r * padded_ + i] = std::exp(-m_.weights[feature(i) * classes_ + r]);
    alone_.assign(features_, 0);
    kept_.resize(s_.features.items.size());
    for (std::size_t s = 0; s < s_.size(); ++s) {
      const auto row = s_.features[s], legal = s_.legal[s];
      const float* const p = &probabilities_[at_offset(s_.legal, s)];
      const float* const label = &factors_[static_cast<std::size_t>(s_.labels[s]) * padded_];
      for (std::size_t place = 0; place < row.size(); ++place) {
        const auto i = static_cast<std::size_t>(rank_of_[static_cast<std::size_t>(row[place])]);
        float kept = 0;
        for (std::size_t q = 0; q < legal.size(); ++q)
          kept += p[q] * factors_[static_cast<std::size_t>(legal[q]) * padded_ + i];
        kept_[at_offset(s_.features, s) + place] = kept;
        alone_[i] += std::log(static_cast<double>(kept) / static_cast<double>(label[i]));
      }
    }
  }

  void pack() {
    uses_.resize(features_);
    std::vector<std::pair<std::int32_t, float>> row;
    for (std::size_t s = 0; s < s_.size(); ++s) {
      const auto legal = s_.legal[s];
      row.clear();
      for (std::size_t n = at_offset(s_.features, s); n < at_offset(s_.features, s + 1); ++n)
        row.emplace_back(rank_of_[static_cast<std::size_t>(s_.features.items[n])],
                         nested() ? kept_[n] : 0.0f);
      std::sort(row.begin(), row.end());
      const std::uint64_t start = packed_.size();
      for (std::size_t place = 1; place < row.size(); ++place)
        uses_[static_cast<std::size_t>(row[place].first)].push_back(
            {start, static_cast<std::uint32_t>(place)});
      packed_.push_back(static_cast<std::int32_t>(row.size()));
      packed_.push_back(static_cast<std::int32_t>(legal.size()));
      packed_.push_back(s_.labels[s]);
      packed_.insert(packed_.end(), legal.begin(), legal.end());
      const float* const p = &probabilities_[at_offset(s_.legal, s)];
      for (std::size_t q = 0; q < legal.size(); ++q) packed_.push_back(std::bit_cast<std::int32_t>(p[q]));
      for (const auto& [rank, kept] : row) packed_.push_back(rank);
      if (nested())
        for (const auto& [rank, kept] : row) packed_.push_back(std::bit_cast<std::int32_t>(kept));
      longest_ = std::max(longest_, row.size());
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

  /// Factors with the features last, so that the terms of neighbours are computed together: (R, k, T) per
  /// class, (k, T) shared.
  void transpose() {
    const std::size_t sets = m_.shape().shared ? 1 : classes_;
    by_feature_.assign(sets * k_ * padded_, 0.0f);
    for (std::size_t i = 0; i < features_; ++i)
      for (std::size_t r = 0; r < sets; ++r)
        for (std::size_t f = 0; f < k_; ++f)
          by_feature_[(r * k_ + f) * padded_ + i] = m_.factors[(feature(i) * sets + r) * k_ + f];
  }

  /// All pairs of which the rarer feature is one of the ranks i0 .. i1 - 1.
  void score(std::size_t i0, std::size_t i1) {
    exponentiate(i0, i1);
    for (std::size_t i = i0; i < i1; ++i) {
      sums_.assign(i + 1, {});
      if (nested())
        visit<true>(i, cells(i - i0, 0));
      else
        visit<false>(i, cells(i - i0, 0));
      collect(i);
    }
  }

  float* cells(std::size_t first, std::size_t cls) { return &exponentials_[(first * classes_ + cls) * row_]; }

  /// Classes that are legal somewhere where a feature is set.
  void mark_classes(std::size_t i0, std::size_t i1) {
    wanted_.assign(classes_, 0);
    for (std::size_t i = i0; i < i1; ++i)
      for (const Use use : uses_[i]) {
        const Packed s = unpack(use.start);
        for (std::uint32_t q = 0; q < s.num_legal; ++q) wanted_[static_cast<std::size_t>(s.legal[q])] = 1;
      }
  }

  /// exp(-<i, j>_r) for all r and all j of smaller rank; nested, beside each the same times exp(-w_j).
  void exponentiate(std::size_t i0, std::size_t i1) {
    mark_classes(i0, i1);
    if (m_.shape().shared) return exponentiate_shared(i0, i1);
    for (std::size_t r = 0; r < classes_; ++r) {
      if (!wanted_[r]) continue;
      for (std::size_t i = i0; i < i1; i += kRows) {
        Products of{};
        for (std::size_t n = 0; n < kRows; ++n) {
          const std::size_t own = std::min(i + n, i1 - 1);
          of.rows[n] = m_.factors.data() + (feature(own) * classes_ + r) * k_;
          of.cls[n] = r;
          of.out[n] = cells(own - i0, r);
        }
        products(of, by_feature_.data() + r * k_ * padded_, i1);
      }
    }
  }

  void exponentiate_shared(std::size_t i0, std::size_t i1) {
    std::vector<std::size_t> classes;
    for (std::size_t r = 0; r < classes_; ++r)
      if (wanted_[r]) classes.push_back(r);
    mixed_.resize(kRows * std::max<std::size_t>(k_, 1));
    for (std::size_t i = i0; i < i1; ++i)
      for (std::size_t c = 0; c < classes.size(); c += kRows) {
        Products of{};
        for (std::size_t n = 0; n < kRows; ++n) {
          const std::size_t r = classes[std::min(c + n, classes.size() - 1)];
          float* const mixed = &mixed_[n * k_];
          for (std::size_t f = 0; f < k_; ++f)
            mixed[f] = m_.factors[feature(i) * k_ + f] * m_.mixing[r * k_ + f];
          of.rows[n] = mixed;
          of.cls[n] = r;
          of.out[n] = cells(i - i0, r);
        }
        products(of, by_feature_.data(), i);
      }
  }

  struct Products {
    const float* rows[kRows];
    std::size_t cls[kRows];
    float* out[kRows];
  };

  /// For each of the rows of k numbers: exp(- its product with each of the first `until` columns).
  void products(const Products& of, const float* columns, std::size_t until) const {
    for (std::size_t start = 0; start < until; start += kColumns) {
      float sums[kRows][kColumns] = {};
      for (std::size_t f = 0; f < k_; ++f) {
        const float* const column = columns + f * padded_ + start;
        for (std::size_t n = 0; n < kRows; ++n)
          for (std::size_t lane = 0; lane < kColumns; ++lane) sums[n][lane] += of.rows[n][f] * column[lane];
      }
      for (std::size_t n = 0; n < kRows; ++n) {
        for (std::size_t lane = 0; lane < kColumns; ++lane) sums[n][lane] = exp_of(-sums[n][lane]);
        if (!nested()) {
          std::copy_n(sums[n], kColumns, of.out[n] + start);
          continue;
        }
        const float* const factor = &factors_[of.cls[n] * padded_ + start];
        float* const to = of.out[n] + 2 * start;
        for (std::size_t lane = 0; lane < kColumns; ++lane) {
          to[2 * lane] = sums[n][lane];
          to[2 * lane + 1] = sums[n][lane] * factor[lane];
        }
      }
    }
  }

  /// Of the pairs of one use, a number for each: without the pair; without w_i too; without w_j too.
  struct Row {
    std::vector<float> none, first, second, label;
  };

  /// Adds what every sample that sets i says of its pairs; `x` are the exponentials of i.
  template <bool kNested>
  void visit(std::size_t i, const float* x) {
    for (auto* each : {&part_.none, &part_.first, &part_.second, &part_.label}) each->resize(longest_);
    const auto& uses = uses_[i];
    std::vector<float> scaled(classes_);
    for (std::size_t n = 0; n < uses.size(); ++n) {
      if (n + 4 < uses.size()) __builtin_prefetch(&packed_[uses[n + 4].start]);
      const Packed s = unpack(uses[n].start);
      const std::uint32_t count = uses[n].place;
      if constexpr (kNested)
        for (std::uint32_t q = 0; q < s.num_legal; ++q)
          scaled[q] = s.probabilities[q] * factors_[static_cast<std::size_t>(s.legal[q]) * padded_ + i];
      std::uint32_t q = 0;
      for (; q + 4 <= s.num_legal; q += 4) add<kNested, 4>(s, q, count, x, scaled.data());
      if (s.num_legal - q == 3) add<kNested, 3>(s, q, count, x, scaled.data());
      if (s.num_legal - q == 2) add<kNested, 2>(s, q, count, x, scaled.data());
      if (s.num_legal - q == 1) add<kNested, 1>(s, q, count, x, scaled.data());
      const float* const label = x + s.label * row_;
      for (std::uint32_t place = 0; place < count; ++place)
        part_.label[place] = label[static_cast<std::size_t>(s.features[place]) * (kNested ? 2 : 1)];
      add_logarithms<kNested>(s, count, uses[n].place);
    }
  }

  /// The terms of kClasses legal classes, from number q on; those of q = 0 begin the sums.
  template <bool kNested, std::uint32_t kClasses>
  void add(const Packed& s, std::uint32_t q, std::uint32_t count, const float* x, const float* scaled) {
    constexpr std::size_t kCell = kNested ? 2 : 1;
    const float* cell[kClasses];
    float p[kClasses], ps[kClasses];
    for (std::uint32_t c = 0; c < kClasses; ++c) {
      cell[c] = x + static_cast<std::size_t>(s.legal[q + c]) * row_;
      p[c] = s.probabilities[q + c];
      ps[c] = kNested ? scaled[q + c] : 0.0f;
    }
    float* const none = part_.none.data();
    float* const first = part_.first.data();
    float* const second = part_.second.data();
    const std::int32_t* const features = s.features;
    for (std::uint32_t place = 0; place < count; ++place) {
      const std::size_t j = static_cast<std::size_t>(features[place]) * kCell;
      float a = q ? none[place] : 0.0f;
      for (std::uint32_t c = 0; c < kClasses; ++c) a += p[c] * cell[c][j];
      none[place] = a;
      if constexpr (kNested) {
        float b = q ? first[place] : 0.0f, d = q ? second[place] : 0.0f;
        for (std::uint32_t c = 0; c < kClasses; ++c) {
          b += ps[c] * cell[c][j];
          d += p[c] * cell[c][j + 1];
        }
        first[place] = b;
        second[place] = d;
      }
    }
  }

  template <bool kNested>
  void add_logarithms(const Packed& s, std::uint32_t count, std::uint32_t own) {
    float* const none = part_.none.data();
    float* const first = part_.first.data();
    float* const second = part_.second.data();
    const float* const label = part_.label.data();
#pragma omp simd
    for (std::uint32_t place = 0; place < count; ++place) none[place] = log_of(none[place] / label[place]);
    if constexpr (kNested) {
      // The loss without w_i alone stands in alone_[i] for every sample that sets i: exchange it here.
      const float kept = s.kept[own];
#pragma omp simd
      for (std::uint32_t place = 0; place < count; ++place) {
        first[place] = log_of(first[place] / (label[place] * kept));
        second[place] = log_of(second[place] / (label[place] * s.kept[place]));
      }
    }
    for (std::uint32_t place = 0; place < count; ++place) {
      Sums& sums = sums_[static_cast<std::size_t>(s.features[place])];
      ++sums.samples;
      sums.pair += static_cast<double>(none[place]);
      if constexpr (kNested) {
        sums.first += static_cast<double>(first[place]);
        sums.second += static_cast<double>(second[place]);
      }
    }
  }

  void collect(std::size_t i) {
    const auto n = static_cast<double>(std::max<std::size_t>(s_.size(), 1));
    for (std::size_t j = 0; j < i; ++j) {
      const Sums& sums = sums_[j];
      if (!sums.samples) continue;
      const bool ascending = feature_of_[i] < feature_of_[j];
      out_.first.push_back(ascending ? feature_of_[i] : feature_of_[j]);
      out_.second.push_back(ascending ? feature_of_[j] : feature_of_[i]);
      out_.losses[0].push_back(out_.base + sums.pair / n);
      if (reading_ == Reading::pair) continue;
      const double rarer = out_.base + (alone_[i] + (nested() ? sums.first : 0)) / n;
      const double other = out_.base + (alone_[j] + (nested() ? sums.second : 0)) / n;
      out_.losses[1].push_back(ascending ? rarer : other);
      out_.losses[2].push_back(ascending ? other : rarer);
    }
  }

  /// Put the pairs in order.
  void ascend() {
    std::vector<std::size_t> order(out_.first.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(out_.first[a], out_.second[a]) < std::pair(out_.first[b], out_.second[b]);
    });
    const auto arrange = [&](auto& values) {
      auto arranged = values;
      for (std::size_t n = 0; n < values.size(); ++n) arranged[n] = values[order[n]];
      values = std::move(arranged);
    };
    arrange(out_.first);
    arrange(out_.second);
    for (auto& each : out_.losses) arrange(each);
  }

  struct Sums {
    double pair = 0, first = 0, second = 0;
    std::uint64_t samples = 0;
  };

  const Machine& m_;
  const Samples& s_;
  const Reading reading_;
  const std::size_t features_, classes_, k_, padded_, cell_, row_;
  std::size_t longest_ = 0;
  PairLosses out_;
  std::vector<std::int32_t> feature_of_, rank_of_;
  std::vector<float> probabilities_, factors_, kept_, by_feature_, exponentials_, mixed_;
  std::vector<double> alone_;
  std::vector<std::uint8_t> wanted_;
  std::vector<std::int32_t> packed_;
  std::vector<std::vector<Use>> uses_;
  std::vector<Sums> sums_;
  Row part_;
};

}  // namespace

PairLosses pair_losses(const Machine& machine, const Samples& samples, Reading reading) {
  return Scorer(machine, samples, reading).run();
}

}  // namespace bothost::fm
