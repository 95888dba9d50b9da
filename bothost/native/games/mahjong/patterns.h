// What sets and pairs go together in hands that reach eight points by themselves or nearly so.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "mahjong/fan_parts.h"

namespace bothost::mahjong {

/// A set of patterns.
struct PatternSet {
  using Words = std::uint64_t __attribute__((vector_size(32)));
  Words word{};
  friend PatternSet operator&(PatternSet a, const PatternSet& b) { return {a.word & b.word}; }
  friend PatternSet operator|(PatternSet a, const PatternSet& b) { return {a.word | b.word}; }
  PatternSet without(const PatternSet& b) const { return {word & ~b.word}; }
  bool any() const {
#ifdef __AVX__
    using Signed = long long __attribute__((vector_size(32)));
    return !__builtin_ia32_ptestz256(reinterpret_cast<Signed>(word), reinterpret_cast<Signed>(word));
#else
    return ((word[0] | word[1]) | (word[2] | word[3])) != 0;
#endif
  }
  bool contains(std::size_t i) const { return (word[i / 64] >> i % 64 & 1) != 0; }
  void insert(std::size_t i) { word[i / 64] |= std::uint64_t{1} << i % 64; }
  void erase(std::size_t i) { word[i / 64] &= ~(std::uint64_t{1} << i % 64); }
  static constexpr std::size_t kMost = 256;
};

/// Which patterns the sets chosen so far still follow, by how many more sets outside its core a pattern may
/// have.
struct Following {
  std::array<PatternSet, 3> free;
  /// Suits, winds and dragons (bits 0-4) that have a set.
  unsigned types = 0;
  PatternSet all() const { return free[0] | free[1] | free[2]; }
};

class Patterns {
 public:
  static const Patterns& get();
  /// Before any set is chosen.
  const Following& start() const { return start_; }
  /// With one more set. `any_hand`: whether the pattern of every hand is kept.
  Following with(const Following& f, std::size_t set, bool any_hand) const {
    Following next;
    next.free[0] = nearest(f, set, any_hand);
    next.free[1] = (f.free[1] & in_[set]) | f.free[2].without(in_[set]);
    next.free[2] = f.free[2] & in_[set];
    next.types = f.types | type_[set];
    return next;
  }
  /// All patterns that are followed with one more set, the last.
  PatternSet with_last(const Following& f, std::size_t set, bool any_hand) const {
    return nearest(f, set, any_hand) | f.free[1] | f.free[2];
  }
  /// The sets that may come next if the pattern of every hand does not count, by their indices as bits.
  std::uint64_t sets(const Following& f) const {
    if ((f.free[1] | f.free[2]).any()) return ~std::uint64_t{0};
    auto all = allowed(f.free[0] & cores_, sets_);
    if (f.free[0].contains(kAllTypes)) all |= sets_of_types_[~f.types & 31];
    return all;
  }
  /// The pairs that one of the patterns but kAny allows, by their tiles as bits.
  TileMask pairs(const PatternSet& patterns) const {
    return (patterns & any_pair_).any() ? ~TileMask{0} : allowed(patterns & not_any_, pairs_);
  }

  /// The pattern that every hand follows.
  static constexpr std::size_t kAny = 0;

 private:
  Patterns();
  static std::uint64_t allowed(const PatternSet& patterns,
                               const std::array<std::uint64_t, PatternSet::kMost>& by_pattern) {
    std::uint64_t all = 0;
    for (std::size_t w = 0; w < 4; ++w)
      for (auto bits = patterns.word[w]; bits; bits &= bits - 1)
        all |= by_pattern[64 * w + at(std::countr_zero(bits))];
    return all;
  }
  /// A pattern of at least 4 - `free` sets for which `allows` and a pair for which `allows_pair`.
  template <class Allows, class AllowsPair>
  void add(int free, Allows allows, AllowsPair allows_pair);
  void add_core(std::initializer_list<std::size_t> core, int free);
  void add_chows();
  void add_pungs();
  void add_kinds();

  static constexpr std::size_t kAllTypes = 1;
  /// Patterns that have no more sets outside their core.
  PatternSet nearest(const Following& f, std::size_t set, bool any_hand) const {
    auto patterns = (f.free[0] & in_[set]) | f.free[1].without(in_[set]);
    if (!any_hand) patterns = patterns & not_any_;
    return f.types & type_[set] ? patterns & not_all_types_ : patterns;
  }
  Following start_;
  std::array<PatternSet, kSets> in_{};
  /// Of each set, as in Following::types.
  std::array<std::uint8_t, kSets> type_{};
  /// By pattern, the sets and the pairs that it allows, as bits.
  std::array<std::uint64_t, PatternSet::kMost> sets_{}, pairs_{};
  /// Sets by suits, winds and dragons.
  std::array<std::uint64_t, 32> sets_of_types_{};
  /// Patterns but kAny that allow every pair; all but kAny, but kAllTypes, and but both.
  PatternSet any_pair_, not_any_, not_all_types_, cores_;
  std::size_t size_ = 0;
};

}  // namespace bothost::mahjong
