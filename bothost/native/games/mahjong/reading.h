// Fans of one reading of a hand: what a plan needs, which knows the sets that it aims at.
#pragma once
#include <array>
#include <span>

#include "mahjong/fan_list.h"

namespace bothost::mahjong {

/// Sets and a pair; those on the table come first, in their order.
struct Reading {
  std::array<Meld, 4> sets{};
  std::size_t size = 0;
  Tile pair = 0;
  /// A knitted straight in place of three of the sets; 0: none.
  TileMask knitted = 0;
};

struct ReadingFans {
  FanSet fans;
  /// Without flowers; 0 where nothing is scored, which as a win would be a chicken hand.
  int points = 0;
};

/// As calculate_fans, but of this reading alone. `count_wait`: whether edge, closed and single waits count.
/// Throws InvalidInput when counts cannot be those of a hand.
ReadingFans reading_fans(const Reading& reading, const Counts& standing, std::span<const Meld> melds,
                         const WinContext& win, bool count_wait);

}  // namespace bothost::mahjong
