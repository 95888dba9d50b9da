// Look-ahead: what a hand can win over its next draws and discards, for each possible discard.
//
// Consider the tree of the next `depth` own draws and discards. Its winning leaves are the targets
// (targets.h) that need at most `depth` tiles. A discard leads to the targets that do not use it. A target's
// worth is its payment times the chance that all its missing tiles come while the hand lasts.
//
// The chance treats tiles as independent. If u of U unseen tiles are of the kind, it comes within n turns
// with probability 1 - exp(-n u r / U). r counts the own draw and the discards of others that can be claimed.
// Every missing tile but the last lowers the chance further. No hand is played out; each leaf is visited
// once.
//
// The acceptance-weighted look-ahead differs in two ways. Each kind comes at its own rate (draw_rates.h). And
// the worths of targets that need several tiles are combined by their norm of order 3/2, not summed: such
// targets share tiles and exclude one another, so a few good ones beat many poor ones with the same sum.
#pragma once
#include <array>
#include <optional>

#include "mahjong/draw_rates.h"
#include "mahjong/fan_list.h"
#include "mahjong/targets.h"

namespace bothost::mahjong {

/// What the worth of a hand depends on, besides the hand.
struct Outlook {
  Counts unseen{};
  /// Own draws that the hand is expected to last.
  double turns = 10;
  std::uint8_t seat_wind = 0, prevalent_wind = 0;
  /// Fewest points that win.
  int minimum = 8;
  /// For the acceptance-weighted look-ahead. Without them all unseen tiles are equally likely, and worths are
  /// summed.
  std::optional<DrawRates> draw_rates;
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
  /// Chance times payment in points of score, summed over the targets, or combined by their norm.
  double worth = 0;
  /// Sum of the chances.
  double chance = 0;
  /// The most valuable target: its worth, missing tiles, points, shape and fans. Valid where worth > 0.
  double best_worth = 0;
  int tiles_needed = 0;
  int points = 0;
  Shape shape = Shape::standard;
  FanSet fans;
  /// Over all targets. Fans are collected on request only.
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

/// Looks `depth` draws ahead (0..7). A hand has at most 14 standing tiles, less three per meld. `fans`:
/// whether to collect `all_fans`.
LookAhead look_ahead(const Holding& holding, const Outlook& outlook, int depth, bool fans = false);

/// As look_ahead, deepened from `first` draws until a target is found, and then by one more draw, up to
/// `deepest`. `reached`: the depth of the result.
LookAhead look_as_far(const Holding& holding, const Outlook& outlook, int first, int deepest,
                      int* reached = nullptr);

}  // namespace bothost::mahjong
