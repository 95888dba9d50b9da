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
// The acceptance-weighted look-ahead differs in two ways. Each kind comes at its own rate (visible.h). And
// the worths of targets that need several tiles are combined by their norm of order 3/2, not summed: such
// targets share tiles and exclude one another, so a few good ones beat many poor ones with the same sum.
#pragma once
#include <array>

#include "mahjong/outlook.h"
#include "mahjong/targets.h"

namespace bothost::mahjong {

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

/// How likely the missing tiles of targets come.
class Arrivals {
 public:
  /// `unseen`: the unseen copies that the hand can use.
  Arrivals(const Outlook& outlook, const Counts& unseen);

  /// A missing tile by `arrival`: the chances that it comes from the wall and from its source, and the ratios
  /// that a draw or a win instead of that source makes.
  struct Chance {
    double drawn, claimed;
    double win_by_draw, win_by_claim, draw_by_claim;
  };
  const Chance& operator[](std::size_t arrival) const { return chances_[arrival]; }
  /// Whether kinds come at their own rates and worths are combined by their norm.
  bool weighted() const { return weighted_; }
  const Counts& unseen() const { return unseen_; }

 private:
  void set_equal(double turns, int sum);
  void weigh(const DrawRates& rates, double turns);

  /// Of kinds with fewer unseen copies, the rest is not set.
  std::array<Chance, kArrivals> chances_;
  Counts unseen_;
  bool weighted_;
};

/// What can be won by the targets that need at most `depth` tiles, which must have been found. `fans`:
/// whether to collect `all_fans`.
LookAhead look_ahead(const Targets& targets, const Arrivals& arrivals, int depth, bool fans = false);

/// As look_ahead, deepened from `first` draws until a target is found, and then by one more draw, up to
/// `deepest`. `reached`: the depth of the result.
LookAhead look_as_far(Targets& targets, const Arrivals& arrivals, int first, int deepest, int& reached);

}  // namespace bothost::mahjong
