// Distance of a hand from the winning shapes of Chinese Official mahjong, and the tiles that shorten it.
//
// `needed` is the number of tiles that must still come; shanten = needed - 1 (-1 complete, 0 waiting). A
// target never holds more than four copies of a kind, so a hand that could only wait for a fifth copy does
// not count as waiting.
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <vector>

#include "mahjong/tiles.h"

namespace bothost::mahjong {

/// needed[p][m]: fewest tiles to add to one suit (or the honours) so that it contains m melds and p pairs.
/// Lane m: no pair; lane 8 + m: with a pair; m = 0..4. GCC and Clang turn these into single instructions.
using SuitDistance = std::uint8_t __attribute__((vector_size(16)));

/// For each lane the ranks (bits) of which one more tile lowers that distance.
using SuitUseful = std::uint16_t __attribute__((vector_size(32)));

/// Distances and useful ranks of every suit of at most 14 tiles, 405,350 of them, and of the honours: 23 MB.
/// Made once, on first use, in about 0.1 s; immutable afterwards.
class DistanceTable {
 public:
  static const DistanceTable& get();

  /// Of the suits 0..2 and of the honours, 3.
  const SuitDistance& distance(const Counts& hand, std::size_t group) const {
    const auto* const c = hand.data() + 9 * group;
    return group < 3 ? suits_.distance[suit_index(c)] : honours_.distance[honour_index(c)];
  }
  const SuitUseful& useful(const Counts& hand, std::size_t group) const {
    const auto* const c = hand.data() + 9 * group;
    return group < 3 ? suits_.useful[suit_index(c)] : honours_.useful[honour_index(c)];
  }

 private:
  DistanceTable();
  struct Table {
    std::vector<SuitDistance> distance;
    std::vector<SuitUseful> useful;
  };
  void relax(Table& table, int kinds) const;
  std::size_t suit_index(const std::uint8_t* c) const {
    return hi_base_[quad(c + 5)] + lo_rank_[quad(c) + 625u * c[4]];
  }
  static std::size_t honour_index(const std::uint8_t* c) {
    return quad(c) + 625u * (c[4] + 5u * (c[5] + 5u * c[6]));
  }
  /// Four counts of 0..4 as a number in base 5, the first least.
  static std::uint32_t quad(const std::uint8_t* c) {
    const std::uint32_t x = static_cast<std::uint32_t>(c[0]) | static_cast<std::uint32_t>(c[1]) << 8 |
                            static_cast<std::uint32_t>(c[2]) << 16 | static_cast<std::uint32_t>(c[3]) << 24;
    const std::uint32_t pairs = (x & 0x00ff00ffu) + 5u * ((x >> 8) & 0x00ff00ffu);
    return (pairs & 0xffffu) + 25u * (pairs >> 16);
  }

  // A suit is split into its ranks 1-5 (lo) and 6-9 (hi). lo_rank_ orders the lo parts by their number of
  // tiles, so that for each hi part exactly the lo parts that leave at most 14 tiles form a prefix: the index
  // has no holes.
  std::vector<std::uint16_t> lo_rank_;
  std::vector<std::uint32_t> hi_base_;
  Table suits_, honours_;
};

enum class Shape : std::uint8_t {
  standard,
  seven_pairs,
  thirteen_orphans,
  knitted_straight,
  honours_and_knitted
};
inline constexpr std::size_t kShapes = 5;
/// Tiles still needed for each shape; kNever where the melds rule it out.
using Distances = std::array<int, kShapes>;
inline constexpr int kNever = 100;

/// The tiles 0..33 as bits.
using TileMask = std::uint64_t;
constexpr TileMask bit(std::integral auto tile) { return TileMask{1} << tile; }
/// The first tile of a mask that is not empty.
constexpr std::size_t lowest(TileMask tiles) { return at(std::countr_zero(tiles)); }

/// The six ways to lay 147, 258, 369 over the three suits.
inline constexpr auto kKnitted = [] {
  constexpr TileMask step = 0b1001001;
  std::array<TileMask, 6> out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    for (int suit = 0; suit < 3; ++suit) out[i] |= step << (9 * suit + kSuitOrders[i][suit]);
  return out;
}();
/// The tiles of these ranks (bits 0-8) in all suits.
constexpr TileMask ranks(TileMask r) { return r | r << 9 | r << 18; }
inline constexpr TileMask kHonourMask = TileMask{0x7f} << 27;
inline constexpr TileMask kOrphanMask = kHonourMask | ranks(0x101);

/// Kinds of which the hand holds at least `copies` (1..4).
TileMask kinds_with(const Counts& hand, int copies);
/// The hand without one of each of `tiles` that it holds.
inline Counts without(const Counts& hand, TileMask tiles) {
  Counts rest = hand;
  for (; tiles; tiles &= tiles - 1) {
    auto& c = rest[lowest(tiles)];
    add(c, -(c > 0));
  }
  return rest;
}

/// `hand`: the standing tiles, at most 14 and at most four of a kind (the caller checks); `melds`: 0..4.
/// Works for any number of tiles, not only 13 or 14 less three per meld.
Distances distances(const Counts& hand, int melds);

/// Fewest tiles needed over all shapes.
int needed_tiles(const Counts& hand, int melds);
inline int shanten(const Counts& hand, int melds) { return needed_tiles(hand, melds) - 1; }
/// The standard shape only: four melds and a pair.
int needed_standard(const Counts& hand, int melds);

struct Useful {
  int shanten;
  /// Kinds any of which lowers the shanten; kinds that the hand already holds four times are never among
  /// them.
  TileMask tiles;
};
/// Shanten over all shapes and the tiles that lower it.
Useful useful_tiles(const Counts& hand, int melds);
/// Of one shape.
Useful useful_tiles_of(const Counts& hand, int melds, Shape shape);

/// Throws InvalidInput unless every kind is held at most four times, there are at most 14 tiles, and 0 <=
/// melds <= 4.
void check_hand(const Counts& hand, int melds);

}  // namespace bothost::mahjong
