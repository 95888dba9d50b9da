// What sets and pairs go together in hands that reach eight points by themselves or nearly so.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "mahjong/fan.h"
#include "mahjong/tiles.h"

namespace bothost::mahjong {

/// Sets by index: 0-20 chows (suit * 7 + rank of the lowest tile), 21-54 pungs (21 + tile).
inline constexpr std::size_t kSets = 21 + kKinds;
constexpr std::size_t set_index(Meld::Kind kind, int tile) {
  return static_cast<std::size_t>(kind == Meld::chow ? suit_of(tile) * 7 + rank_of(tile) - 1 : 21 + tile);
}
constexpr Meld set_at(std::size_t index) {
  const int i = static_cast<int>(index);
  if (i >= 21) return {Meld::pung, static_cast<Tile>(i - 21), false};
  return {Meld::chow, static_cast<Tile>(i / 7 * 9 + i % 7 + 1), false};
}

/// A set of patterns.
struct PatternSet {
  std::array<std::uint64_t, 3> word{};
  friend PatternSet operator&(PatternSet a, const PatternSet& b) {
    for (std::size_t i = 0; i < 3; ++i) a.word[i] &= b.word[i];
    return a;
  }
  friend PatternSet operator|(PatternSet a, const PatternSet& b) {
    for (std::size_t i = 0; i < 3; ++i) a.word[i] |= b.word[i];
    return a;
  }
  PatternSet without(const PatternSet& b) const {
    PatternSet r = *this;
    for (std::size_t i = 0; i < 3; ++i) r.word[i] &= ~b.word[i];
    return r;
  }
  bool any() const { return (word[0] | word[1] | word[2]) != 0; }
  void insert(std::size_t i) { word[i / 64] |= std::uint64_t{1} << i % 64; }
  void erase(std::size_t i) { word[i / 64] &= ~(std::uint64_t{1} << i % 64); }
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
  /// With one more set.
  Following with(const Following& f, std::size_t set) const {
    const auto& in = in_[set];
    Following next;
    next.free[0] = (f.free[0] & in) | f.free[1].without(in);
    next.free[1] = (f.free[1] & in) | f.free[2].without(in);
    next.free[2] = f.free[2] & in;
    const unsigned type = type_[set];
    if (f.types & type) next.free[0].erase(kAllTypes);
    next.types = f.types | type;
    return next;
  }
  /// Patterns that allow a pair of this tile.
  const PatternSet& pair(int tile) const { return pair_[static_cast<std::size_t>(tile)]; }

  /// The pattern that every hand follows.
  static constexpr std::size_t kAny = 0;

 private:
  Patterns();
  /// A pattern of at least 4 - `free` sets for which `allows` and a pair for which `allows_pair`.
  template <class Allows, class AllowsPair>
  void add(int free, Allows allows, AllowsPair allows_pair);
  void add_core(std::initializer_list<std::size_t> core, int free);
  void add_chows();
  void add_pungs();
  void add_kinds();

  static constexpr std::size_t kAllTypes = 1;
  Following start_;
  std::array<PatternSet, kSets> in_{};
  /// Of each set, as in Following::types.
  std::array<std::uint8_t, kSets> type_{};
  std::array<PatternSet, kKinds> pair_{};
  std::size_t size_ = 0;
};

/// Suit 0-2, winds 3, dragons 4.
constexpr int type_of(int tile) { return is_dragon(tile) ? 4 : suit_of(tile); }

}  // namespace bothost::mahjong
