// Tiles of Chinese Official mahjong and their words.
//
// A tile is an index: 0-8 characters W1..W9, 9-17 bamboos T1..T9, 18-26 dots B1..B9, 27-30 winds F1..F4
// (east, south, west, north), 31-33 dragons J1..J3 (red, green, white), 34-41 flowers H1..H8. The words are
// those of the official competition data and of Botzone; the order is that of the matrix encoding.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/types.h"

namespace bothost::mahjong {

using Tile = std::uint8_t;

inline constexpr int kKinds = 34;
inline constexpr int kFlowers = 8;
inline constexpr Tile kWindEast = 27;
inline constexpr Tile kDragonRed = 31;
inline constexpr Tile kDragonGreen = 32;
inline constexpr Tile kDragonWhite = 33;
inline constexpr Tile kFirstFlower = 34;
/// A tile that the observer did not see.
inline constexpr Tile kHidden = 63;

/// Copies of each of the 34 kinds.
using Counts = std::array<std::uint8_t, kKinds>;
constexpr void add(std::uint8_t& count, int n) { count = static_cast<std::uint8_t>(count + n); }

constexpr bool is_number(int t) { return t < kWindEast; }
constexpr bool is_wind(int t) { return t >= kWindEast && t < kDragonRed; }
constexpr bool is_dragon(int t) { return t >= kDragonRed && t < kKinds; }
constexpr bool is_flower(int t) { return t >= kFirstFlower && t < kFirstFlower + kFlowers; }
/// 0 characters, 1 bamboos, 2 dots, 3 honours.
constexpr int suit_of(int t) { return t / 9; }
/// 0-based rank of a number tile.
constexpr int rank_of(int t) { return t % 9; }
constexpr bool is_terminal(int t) { return is_number(t) && (rank_of(t) == 0 || rank_of(t) == 8); }
/// Whether a chow can have the tile in its middle.
constexpr bool is_middle(int t) { return is_number(t) && rank_of(t) >= 1 && rank_of(t) <= 7; }
/// Whether a tile is in the chow with this middle.
constexpr bool in_chow(int t, int middle) {
  return suit_of(t) == suit_of(middle) && t >= middle - 1 && t <= middle + 1;
}
/// The ways to lay three things over the suits.
inline constexpr int kSuitOrders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/// "W3"; kHidden is "?".
std::string tile_name(int t);
/// Inverse of tile_name; flowers only where allowed, never "?". Throws InvalidInput.
Tile parse_tile(std::string_view word, bool flowers = false);

}  // namespace bothost::mahjong
