// Branches of a hand: the scores when a seat takes one action or another and rule players play on.
//
// All branches of a position share its wall, so some of their luck is the same. A branch may also end after a
// few draws. Then the network of luck.h, which sees all hands, values it: less luck, but the network's
// errors. Source: "vine" sampling of Schulman, Levine, Moritz, Jordan, Abbeel, "Trust Region Policy
// Optimization", arXiv:1502.05477 (2015).
#pragma once
#include <span>
#include <vector>

#include "mahjong/luck.h"
#include "mahjong/state.h"

namespace bothost::mahjong {

/// Where branches end, and who values them there.
struct Horizon {
  /// Draws until then; 0: the end of the hand.
  int draws = 0;
  /// Values the hands before the last of these draws is seen. Needed if there are draws.
  const LuckNetwork* critic = nullptr;
};

/// Points of the seats after each of `actions` of `seat` when rule players play until the horizon. Throws
/// IllegalAction if an action is not legal, InvalidInput if draws are counted in a game with flowers.
std::vector<BySeat<double>> branch(const State& state, Seat seat, std::span<const Action> actions,
                                   Appraisal appraisal, Horizon horizon = {});

}  // namespace bothost::mahjong
