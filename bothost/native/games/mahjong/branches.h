// Branches of a hand: the scores when a seat takes one action or another and rule players play on.
//
// All branches of a position share its wall, so most of their luck is the same. Their differences have less
// than half of the standard deviation of a score. Source: "vine" sampling of Schulman, Levine, Moritz,
// Jordan, Abbeel, "Trust Region Policy Optimization", arXiv:1502.05477 (2015).
#pragma once
#include <span>
#include <vector>

#include "mahjong/appraisal.h"
#include "mahjong/state.h"

namespace bothost::mahjong {

/// Scores of the seats, in points, when the rule player decides all that is left of the hand.
BySeat<double> play_out(State state, Appraisal appraisal);

/// The same after each of `actions` of `seat`. Throws IllegalAction if one is not legal.
std::vector<BySeat<double>> branch(const State& state, Seat seat, std::span<const Action> actions,
                                   Appraisal appraisal);

}  // namespace bothost::mahjong
