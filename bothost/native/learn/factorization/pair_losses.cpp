#include "learn/factorization/pair_losses.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "learn/factorization/pair_terms.h"

namespace bothost::fm {
namespace {

/// Features whose pairs are computed together: the factors of the others are read once for all of them.
constexpr std::size_t kTogether = kRows;
/// Samples that are looked at for all of these features, one after the other, before the next ones are; then
/// their sums of 32 bits are added to those of 64.
constexpr std::size_t kBlock = 1024;

/// A class of a smaller probability is left out, where it is not the label: to count for 1e-5 of a loss it
/// takes a pair term below -57. Numbers so small that processors take long for them do not come up then.
constexpr float kNothing = 1e-30f;

/// Cache lines of a sample that are asked for before it is looked at.
constexpr std::size_t kAhead = 4;

/// A sample in one piece of memory, for samples are visited once for each of their features.
struct Packed {
  std::uint32_t num_blocks, num_legal;
  /// Place of the label among the legal classes.
  std::uint32_t label;
  /// The features that are set, ascending.
  const BlockBits* blocks;
  const std::int32_t* legal;
  const float* probabilities;
  /// For each feature sum_r p_r exp(-w_r); with three models only.
  const float* kept;
};

/// Where a feature is set, with others of smaller rank: the start of the packed sample, and the place of the
/// feature in it.
struct Use {
  std::uint64_t start;
  std::uint32_t place;
  /// How many blocks there are of the features until it.
  std::uint32_t blocks;
};

/// What the samples say of the pairs of one feature, by the rank of the other.
struct Sums {
  /// For each block of ranks the bits of those that a sample sets with the feature.
  std::vector<std::uint8_t> met;
  /// For each model the losses added up, and those of so many samples.
  std::vector<double> totals[3];
  std::vector<float> block[3];
  /// The next use to look at.
  std::size_t next;
};

/// Features go by rank, the most frequent first, and a pair is looked at from the rarer of its two: so what a
/// feature meets lies close together in memory. Samples go by their legal classes: so one after the other
/// reads the exponentials of the same classes.
class Scorer {
 public:
  Scorer(const Machine& machine, const Samples& samples, Reading reading)
      : m_(machine),
        s_(samples),
        reading_(reading),
        features_(at(machine.shape().features)),
        classes_(at(machine.shape().classes)),
        k_(at(machine.shape().factors)),
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

  static std::size_t at_offset(const Rows& rows, std::size_t row) { return at(rows.offsets[row]); }
  std::size_t feature(std::size_t rank) const { return at(feature_of_[rank]); }

  void rank() {
    std::vector<std::size_t> uses(features_, 0);
    for (const auto item : s_.features.items) ++uses[at(item)];
    feature_of_.resize(features_);
    std::iota(feature_of_.begin(), feature_of_.end(), 0);
    std::ranges::stable_sort(feature_of_, [&](auto a, auto b) { return uses[at(a)] > uses[at(b)]; });
    rank_of_.resize(features_);
    for (std::size_t r = 0; r < features_; ++r) rank_of_[feature(r)] = static_cast<std::uint16_t>(r);
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
      const float* const label = &factors_[at(s_.labels[s]) * padded_];
      for (std::size_t place = 0; place < row.size(); ++place) {
        const std::size_t i = rank_of_[at(row[place])];
        float kept = 0;
        for (std::size_t q = 0; q < legal.size(); ++q) kept += p[q] * factors_[at(legal[q]) * padded_ + i];
        kept_[at_offset(s_.features, s) + place] = kept;
        alone_[i] += std::log(static_cast<double>(kept) / static_cast<double>(label[i]));
      }
    }
  }

  void pack() {
    uses_.resize(features_);
    wanted_.assign(features_ * words(), 0);
    std::vector<std::size_t> order(s_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::ranges::lexicographical_compare(s_.legal[a], s_.legal[b]);
    });
    std::vector<std::pair<std::uint16_t, float>> row;
    for (std::size_t n = 0; n < order.size(); ++n) {
      row.clear();
      for (std::size_t m = at_offset(s_.features, order[n]); m < at_offset(s_.features, order[n] + 1); ++m)
        row.emplace_back(rank_of_[at(s_.features.items[m])], nested() ? kept_[m] : 0.0f);
      std::ranges::sort(row);
      choose(order[n]);
      want(row);
      pack(row);
      if (n % kBlock == kBlock - 1 || n + 1 == order.size()) block_ends_.push_back(packed_.size());
    }
    packed_.resize(packed_.size() + kLanes);
  }

  /// The classes of a sample that count, with their probabilities, and the place of the label among them.
  void choose(std::size_t s) {
    const auto legal = s_.legal[s];
    const float* const p = &probabilities_[at_offset(s_.legal, s)];
    chosen_.clear();
    for (std::size_t q = 0; q < legal.size(); ++q) {
      if (legal[q] == s_.labels[s]) label_ = static_cast<std::int32_t>(chosen_.size());
      if (legal[q] == s_.labels[s] || p[q] >= kNothing) chosen_.emplace_back(legal[q], p[q]);
    }
  }

  /// Append the sample whose classes were chosen, and whose features have these ranks.
  void pack(const std::vector<std::pair<std::uint16_t, float>>& row) {
    const std::size_t start = packed_.size();
    packed_.push_back(0);
    packed_.push_back(static_cast<std::int32_t>(chosen_.size()));
    packed_.push_back(label_);
    for (const auto& [cls, p] : chosen_) packed_.push_back(cls);
    for (const auto& [cls, p] : chosen_) packed_.push_back(std::bit_cast<std::int32_t>(p));
    packed_[start] = static_cast<std::int32_t>(pack_blocks(start, row));
    if (nested())
      for (const auto& [rank, kept] : row) packed_.push_back(std::bit_cast<std::int32_t>(kept));
  }

  /// Append the blocks of a sample's features, and note where each of these is set. Returns how many blocks.
  std::uint32_t pack_blocks(std::size_t start, const std::vector<std::pair<std::uint16_t, float>>& row) {
    std::uint32_t count = 0;
    BlockBits bits = 0;
    for (std::uint32_t place = 0; place < row.size(); ++place) {
      const std::size_t rank = row[place].first;
      if (place == 0 || rank / kLanes != bits >> kBlockShift) {
        if (count++) packed_.push_back(std::bit_cast<std::int32_t>(bits));
        bits = static_cast<BlockBits>(rank / kLanes) << kBlockShift;
      }
      bits |= 1u << rank % kLanes;
      if (place) uses_[rank].push_back({start, place, count});
    }
    if (count) packed_.push_back(std::bit_cast<std::int32_t>(bits));
    return count;
  }

  /// Words of a set of classes.
  std::size_t words() const { return (classes_ + 63) / 64; }

  /// Mark the classes that were chosen as wanted where each of these features is set.
  void want(const std::vector<std::pair<std::uint16_t, float>>& row) {
    std::vector<std::uint64_t>& set = set_;
    set.assign(words(), 0);
    for (const auto& [r, p] : chosen_) set[at(r) / 64] |= std::uint64_t{1} << (r % 64);
    for (const auto& [rank, kept] : row)
      for (std::size_t word = 0; word < words(); ++word) wanted_[rank * words() + word] |= set[word];
  }

  bool wants(std::size_t i, std::size_t r) const { return wanted_[i * words() + r / 64] >> (r % 64) & 1; }

  Packed unpack(std::uint64_t start) const {
    const std::int32_t* const head = &packed_[start];
    const auto num_blocks = static_cast<std::uint32_t>(head[0]),
               num_legal = static_cast<std::uint32_t>(head[1]);
    const std::int32_t *const legal = head + 3, *const blocks = legal + 2 * num_legal;
    return {.num_blocks = num_blocks,
            .num_legal = num_legal,
            .label = static_cast<std::uint32_t>(head[2]),
            .blocks = reinterpret_cast<const BlockBits*>(blocks),
            .legal = legal,
            .probabilities = reinterpret_cast<const float*>(legal + num_legal),
            .kept = reinterpret_cast<const float*>(blocks + num_blocks)};
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
    for (std::size_t i = i0; i < i1; ++i) begin(sums_[i - i0], i);
    for (const std::uint64_t end : block_ends_)
      for (std::size_t i = i0; i < i1; ++i) visit(i, cells(i - i0, 0), end, sums_[i - i0]);
    for (std::size_t i = i0; i < i1; ++i) collect(i, sums_[i - i0]);
  }

  float* cells(std::size_t first, std::size_t cls) { return &exponentials_[(first * classes_ + cls) * row_]; }

  /// exp(-<i, j>_r) for all r and all j of smaller rank; nested, beside each the same times exp(-w_j).
  void exponentiate(std::size_t i0, std::size_t i1) {
    if (m_.shape().shared) return exponentiate_shared(i0, i1);
    for (std::size_t r = 0; r < classes_; ++r) {
      bool wanted = false;
      for (std::size_t i = i0; i < i1; ++i) wanted = wanted || wants(i, r);
      if (!wanted) continue;
      Products of = products(by_feature_.data() + r * k_ * padded_, i1);
      for (std::size_t n = 0; n < kRows; ++n) {
        const std::size_t own = std::min(i0 + n, i1 - 1);
        of.rows[n] = m_.factors.data() + (feature(own) * classes_ + r) * k_;
        to_class(of, n, own - i0, r);
      }
      exponentials(of);
    }
  }

  void exponentiate_shared(std::size_t i0, std::size_t i1) {
    std::vector<std::size_t> classes;
    mixed_.resize(kRows * k_);
    for (std::size_t i = i0; i < i1; ++i) {
      classes.clear();
      for (std::size_t r = 0; r < classes_; ++r)
        if (wants(i, r)) classes.push_back(r);
      for (std::size_t c = 0; c < classes.size(); c += kRows) {
        Products of = products(by_feature_.data(), i);
        for (std::size_t n = 0; n < kRows; ++n) {
          const std::size_t r = classes[std::min(c + n, classes.size() - 1)];
          float* const mixed = mixed_.data() + n * k_;
          for (std::size_t f = 0; f < k_; ++f)
            mixed[f] = m_.factors[feature(i) * k_ + f] * m_.mixing[r * k_ + f];
          of.rows[n] = mixed;
          to_class(of, n, i - i0, r);
        }
        exponentials(of);
      }
    }
  }

  Products products(const float* columns, std::size_t until) const {
    Products of;
    of.terms = k_, of.columns = columns, of.stride = padded_, of.until = until;
    return of;
  }

  /// Row n of the products goes to the exponentials of a feature and a class.
  void to_class(Products& of, std::size_t n, std::size_t first, std::size_t r) {
    of.out[n] = cells(first, r);
    if (nested()) of.factors[n] = &factors_[r * padded_];
  }

  void begin(Sums& sums, std::size_t i) const {
    sums.met.assign(i / kLanes + 1, 0);
    for (std::size_t m = 0; m < models(); ++m) {
      sums.totals[m].assign(i, 0);
      sums.block[m].assign((i / kLanes + 1) * kLanes, 0);
    }
    sums.next = 0;
  }

  /// Adds up what the samples of a block that set i say of its pairs; `x` are the exponentials of i.
  void visit(std::size_t i, const float* x, std::uint64_t end, Sums& sums) {
    const auto& uses = uses_[i];
    if (sums.next == uses.size() || uses[sums.next].start >= end) return;
    scaled_.resize(classes_);
    rows_.resize(classes_);
    PairTerms terms{};
    terms.rows = rows_.data(), terms.scaled = scaled_.data();
    terms.pair = sums.block[0].data(), terms.first = sums.block[1].data(),
    terms.second = sums.block[2].data();
    for (; sums.next < uses.size() && uses[sums.next].start < end; ++sums.next) {
      const Use use = uses[sums.next];
      prefetch(uses, sums.next + 1);
      const Packed s = unpack(use.start);
      pair_with(terms, s, use, i);
      for (std::uint32_t n = 0; n < terms.count; ++n)
        sums.met[s.blocks[n] >> kBlockShift] |=
            static_cast<std::uint8_t>(n + 1 < terms.count ? s.blocks[n] : terms.last);
      terms.num_legal = s.num_legal, terms.label = s.label, terms.probabilities = s.probabilities;
      for (std::uint32_t q = 0; q < s.num_legal; ++q) rows_[q] = x + at(s.legal[q]) * row_;
      if (!nested()) {
        add_pair(terms);
        continue;
      }
      terms.kept = s.kept, terms.kept_of_i = s.kept[use.place];
      for (std::uint32_t q = 0; q < s.num_legal; ++q)
        scaled_[q] = s.probabilities[q] * factors_[at(s.legal[q]) * padded_ + i];
      add_nested(terms);
    }
    for (std::size_t m = 0; m < models(); ++m)
      for (std::size_t j = 0; j < i; ++j) {
        sums.totals[m][j] += static_cast<double>(sums.block[m][j]);
        sums.block[m][j] = 0;
      }
  }

  /// Ask for the sample of a use, if there is one: it lies anywhere after the one before.
  void prefetch(const std::vector<Use>& uses, std::size_t next) const {
    if (next == uses.size()) return;
    for (std::size_t line = 0; line < kAhead; ++line)
      __builtin_prefetch(&packed_[uses[next].start] + 16 * line);
  }

  /// The features of smaller rank than i.
  static void pair_with(PairTerms& terms, const Packed& s, const Use& use, std::size_t i) {
    constexpr BlockBits kSet = (1u << kBlockShift) - 1;
    terms.blocks = s.blocks, terms.count = use.blocks;
    terms.last = s.blocks[use.blocks - 1] & ((1u << i % kLanes) - 1);
    if (terms.last) return;
    // Of its own block i is the first that is set.
    --terms.count;
    terms.last = s.blocks[terms.count - 1] & kSet;
  }

  /// Models whose losses a visit adds up.
  std::size_t models() const { return nested() ? 3 : 1; }

  void collect(std::size_t i, const Sums& sums) {
    const auto n = static_cast<double>(std::max<std::size_t>(s_.size(), 1));
    for (std::size_t j = 0; j < i; ++j) {
      if (!(sums.met[j / kLanes] >> (j % kLanes) & 1)) continue;
      const bool ascending = feature_of_[i] < feature_of_[j];
      out_.first.push_back(ascending ? feature_of_[i] : feature_of_[j]);
      out_.second.push_back(ascending ? feature_of_[j] : feature_of_[i]);
      out_.losses[0].push_back(out_.base + sums.totals[0][j] / n);
      if (reading_ == Reading::pair) continue;
      const double rarer = out_.base + (alone_[i] + (nested() ? sums.totals[1][j] : 0)) / n;
      const double other = out_.base + (alone_[j] + (nested() ? sums.totals[2][j] : 0)) / n;
      out_.losses[1].push_back(ascending ? rarer : other);
      out_.losses[2].push_back(ascending ? other : rarer);
    }
  }

  /// Put the pairs in order.
  void ascend() {
    std::vector<std::size_t> order(out_.first.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
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

  const Machine& m_;
  const Samples& s_;
  const Reading reading_;
  const std::size_t features_, classes_, k_, padded_, cell_, row_;
  PairLosses out_;
  std::vector<std::int32_t> feature_of_;
  std::vector<std::uint16_t> rank_of_;
  std::vector<const float*> rows_;
  std::vector<std::pair<std::int32_t, float>> chosen_;
  std::int32_t label_ = 0;
  std::vector<float> probabilities_, factors_, kept_, by_feature_, exponentials_, mixed_, scaled_;
  std::vector<double> alone_;
  /// For each rank a set of classes, as bits; and one more, to work with.
  std::vector<std::uint64_t> wanted_, set_;
  Sums sums_[kTogether];
  std::vector<std::int32_t> packed_;
  std::vector<std::uint64_t> block_ends_;
  std::vector<std::vector<Use>> uses_;
};

}  // namespace

PairLosses pair_losses(const Machine& machine, const Samples& samples, Reading reading) {
  return Scorer(machine, samples, reading).run();
}

}  // namespace bothost::fm
