// Look-ahead: what a hand can win over its next draws and discards, after each discard that it may make now.
//
// The leaves of the tree of the next `depth` own draws and discards that win are the targets (targets.h) that
// lack at most `depth` tiles; a discard leads to those targets that can do without it. A target is worth the
// chance that all its missing tiles come while the hand lasts, times what it pays. The chance takes the tiles
// for independent: a tile of which u of U unseen ones are left comes within n turns with probability 1 -
// exp(-n u r / U), where r counts the discards of others that can be claimed beside the own draw, and every
// tile but the last takes off some more. So nothing is played out, and every leaf is met once.
//
// A discerning look-ahead differs in two things. Tiles come as their supply (supply.h) has it. And targets
// that lack several tiles are pooled by their norm of order 3/2 in place of their sum: they share tiles and
// rule one another out, so that a few good ones are worth more than many poor ones of the same sum.
#pragma once
#include <array>
#include <optional>

#include "mahjong/fan_list.h"
#include "mahjong/supply.h"
#include "mahjong/targets.h"

namespace bothost::mahjong {

/// What of the table bears on the worth of a hand.
struct Outlook {
  Counts unseen{};
  /// Own draws that the hand is expected to last.
  double turns = 10;
  std::uint8_t seat_wind = 0, prevalent_wind = 0;
  /// Fewest points that win.
  int minimum = 8;
  /// Of a discerning look-ahead; none: all unseen tiles are equally likely to come, and worths are summed.
  std::optional<Supply> supply;
};

/// Standing tiles and melds of a seat.
struct Holding {
  Counts standing{};
  std::array<Meld, 4> melds{};
  std::size_t num_melds = 0;
  std::span<const Meld> on_table() const { return {melds.data(), num_melds}; }
};

/// What can be won after one discard, or without any.
struct Prospect {
  /// Chance times payment, in points of score, summed over the targets, or pooled where they are discerned.
  double worth = 0;
  /// Sum of the chances.
  double chance = 0;
  /// Of the target that is worth most: tiles it lacks, points, shape and fans. Valid where worth > 0.
  double best_worth = 0;
  int lacks = 0;
  int points = 0;
  Shape shape = Shape::standard;
  FanSet fans;
  /// Over all targets; fans only where they are asked for.
  std::array<bool, kShapes> shapes{};
  FanSet all_fans;
};

struct LookAhead {
  /// By the kind that is discarded; zero for kinds that are not held.
  std::array<Prospect, kKinds> after;
  /// Without a discard.
  Prospect now;
  int targets = 0;
};

/// Looks `depth` draws ahead (0..7) of at most 14 standing tiles less three per meld. `fans`: whether to
/// collect `all_fans`.
LookAhead look_ahead(const Holding& holding, const Outlook& outlook, int depth, bool fans = false);

/// As look_ahead, from `first` draws on until a target is met and then one further, at most `deepest`.
/// `reached`: the depth of the result.
LookAhead look_as_far(const Holding& holding, const Outlook& outlook, int first, int deepest,
                      int* reached = nullptr);

}  // namespace bothost::mahjong
