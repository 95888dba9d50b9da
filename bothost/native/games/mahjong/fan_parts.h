// Fans by the parts of a hand: each set and pair says which fans it allows, and tables hold the fans of
// chows. A reading of a hand is scored without looking at its tiles again.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"
#include "mahjong/fan_list.h"

namespace bothost::mahjong {

/// Sets by index: 0-20 chows (suit * 7 + rank of the lowest tile), 21-54 pungs (21 + tile).
inline constexpr std::size_t kChowSets = 21, kSets = kChowSets + kKinds;
constexpr std::size_t set_index(const Meld& set) {
  return at(set.kind == Meld::chow ? suit_of(set.tile) * 7 + rank_of(set.tile) - 1 : 21 + set.tile);
}
constexpr Meld set_at(std::size_t index) {
  const int i = static_cast<int>(index);
  if (i >= 21) return {Meld::pung, static_cast<Tile>(i - 21), false};
  return {Meld::chow, static_cast<Tile>(i / 7 * 9 + i % 7 + 1), false};
}
/// The kinds of a set.
constexpr TileMask tiles_of(const Meld& set) {
  return set.kind == Meld::chow ? TileMask{7} << (set.tile - 1) : bit(set.tile);
}

/// Adds the tiles of a meld.
inline void add_tiles(const Meld& meld, Counts& counts) {
  const int copies = meld.kind == Meld::chow ? 1 : meld.kind == Meld::pung ? 3 : 4;
  for (auto kinds = tiles_of(meld); kinds; kinds &= kinds - 1) add(counts[lowest(kinds)], copies);
}

/// The tiles that look the same upside down.
inline constexpr TileMask kReversible =
    TileMask{0b110111010} << 9 | TileMask{0b110011111} << 18 | bit(kDragonWhite);

/// Suit 0-2, winds 3, dragons 4.
constexpr int type_of(int tile) { return is_dragon(tile) ? 4 : suit_of(tile); }

/// What each part of a hand allows, and the fans of every combination of chows. Immutable.
class FanTables {
 public:
  static const FanTables& get();

  struct Part {
    FanSet allows;
    /// Suits, winds and dragons, as bits of `type_of`.
    unsigned types;
  };
  std::array<Part, kSets> set;
  std::array<Part, kKinds> pair;
  /// Fans by the types of all tiles.
  std::array<FanSet, 32> of_types;

  struct Chows {
    Tally fans;
    /// With a pair of fives of this suit, `with_fives` counts instead; -1: none.
    int suit_of_fives = -1;
    Fan with_fives = kNoFan;
    bool operator==(const Chows&) const = default;
  };
  const Chows& of(unsigned chows) const { return outcomes_[outcome_[chows]]; }
  /// The combination with one more chow. Combinations are numbered by their size; 0 is the empty one.
  unsigned with_chow(unsigned chows, std::size_t chow) const { return next_[chows][chow]; }

 private:
  FanTables();
  /// Combinations of up to four chows, and those of fewer than four, which can grow.
  static constexpr std::size_t kCombinations = 12650, kGrowing = 2024;
  std::array<std::array<std::uint16_t, kChowSets>, kGrowing> next_;
  std::array<std::uint8_t, kCombinations> outcome_;
  std::vector<Chows> outcomes_;
};

/// What decides the fans of the parts of a hand that were added.
struct HandParts {
  /// Fans that all parts allow, such as all simples.
  FanSet allowed = FanSet::all();
  unsigned types = 0;
  TileMask pungs = 0;
  /// The combination of chows, as FanTables numbers them.
  unsigned chows = 0;

  void add_set(const FanTables& tables, std::size_t set) {
    add(tables.set[set]);
    if (set < kChowSets)
      chows = tables.with_chow(chows, set);
    else
      pungs |= bit(set - kChowSets);
  }
  void add_pair(const FanTables& tables, int tile) { add(tables.pair[at(tile)]); }
  /// Tiles that form no set: those of a knitted straight, beside which all other sets may be chows, or those
  /// of seven pairs.
  void add_tiles(TileMask tiles, bool knitted);

 private:
  void add(const FanTables::Part& part) {
    allowed = allowed & part.allows;
    types |= part.types;
  }
};

/// What decides the fans besides the reading.
class Circumstances {
 public:
  Circumstances(std::span<const Meld> melds, const WinContext& win);

  std::uint8_t seat_wind, prevalent_wind;
  /// Open melds, and concealed ones.
  int melded = 0, concealed = 0;
  bool self_drawn, two_concealed_kongs = false;
  /// The winning tile makes nine gates.
  bool nine_gates = false;
  /// Fans of the kongs and of the winning tile.
  FanSet fans;
};

/// Whether the winning tile makes nine gates of 14 standing tiles.
bool nine_gates(const Counts& standing, Tile win);

/// The fans of four sets and a pair, or of a knitted straight with the rest, without those of the wait.
/// `hogs`: kinds of which the hand holds four copies outside kongs; `concealed`: concealed pungs and kongs.
Tally tally_of(const FanTables& tables, const HandParts& parts, int pair, int hogs, int concealed,
               bool knitted, const Circumstances& how);
/// The fans of the kinds of tiles alone.
Tally tally_of_kinds(const FanTables& tables, const HandParts& parts, int hogs);
/// Adds the fans of a concealed, melded or drawn hand. `inherent`: other fans say already that it is
/// concealed.
void add_concealment(Tally& tally, const Circumstances& how, bool inherent);

}  // namespace bothost::mahjong
