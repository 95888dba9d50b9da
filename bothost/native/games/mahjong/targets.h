// Targets: the winning hands that a hand can still become, the tiles that each of them needs, and its points.
//
// Four sets and a pair are found set by set, fewest missing tiles first. A branch ends once too many tiles
// are missing. Far from winning, most hands cannot reach eight points. So a target with more than `kAnyHand`
// missing tiles must follow a pattern (three chows in step, a flush, all pungs, ...) that scores by itself or
// nearly so. The special hands are enumerated directly.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "mahjong/fan_list.h"
#include "mahjong/outlook.h"
#include "mahjong/shape.h"

namespace bothost::mahjong {

/// A hand that can win. Targets differ by their sets and pair: a hand with two readings may be found twice.
struct Target {
  FanSet fans;
  /// Kinds of which the target leaves a standing tile unused.
  TileMask spare = 0;
  /// The missing tiles, as indices of `arrival`, in the order of the parts that they belong to.
  std::array<std::uint16_t, 14> missing{};
  /// Won from a discard, without the points of a concealed hand.
  std::int16_t points = 0;
  /// If one tile is missing, the index of its wins.
  std::int16_t wait = -1;
  std::uint8_t tiles_needed = 0;
  Shape shape = Shape::standard;
  /// `fans` has that of a concealed hand.
  bool concealed = false;
};

/// The exact wins by one missing tile: from a discard, and drawn. Without points below the minimum.
struct Wait {
  Tile tile = 0;
  std::array<int, 2> points{};
  std::array<FanSet, 2> fans;
};

/// Hands that need at most this many tiles are targets whatever pattern they follow.
inline constexpr int kAnyHand = 2;

/// The targets of a hand that can reach the minimum of points.
class Targets {
 public:
  /// `holding`: at most 14 standing tiles, less three per meld.
  Targets(const Holding& holding, const Outlook& outlook);
  ~Targets();
  Targets(const Targets&) = delete;
  Targets& operator=(const Targets&) = delete;

  /// Finds the targets that need 1 to `depth` tiles, all of them unseen, unless it has been done.
  void find(int depth);
  std::span<const Target> all() const { return targets_; }
  const Wait& wait(const Target& target) const { return waits_[at(target.wait)]; }
  /// Winning hands that need at most `depth` tiles, including those below the minimum.
  int count(int depth) const;

  /// Fewest tiles that a target needs; more than any depth if there is none.
  int nearest() const;

  int minimum() const { return minimum_; }
  const Holding& holding() const { return holding_; }
  /// Unseen copies that the hand can still use.
  const Counts& unseen() const { return unseen_; }

 private:
  friend class TargetSearch;
  /// A win by this tile from a discard.
  WinContext win_by(Tile tile) const;

  Holding holding_;
  Counts unseen_{};
  std::uint8_t seat_wind_, prevalent_wind_;
  int minimum_;
  /// False if the view of false events holds a fifth copy. Such a hand has no targets.
  bool possible_ = true;
  int depth_ = 0;
  std::vector<Target> targets_;
  std::vector<Wait> waits_;
  /// Winning hands by the tiles that they need.
  std::array<int, 15> counts_{};
};

}  // namespace bothost::mahjong
