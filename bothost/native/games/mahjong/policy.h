// The rule players.
//
// `choose` plans for the minimum of eight points. It looks ahead to all winning hands (lookahead.h) and keeps
// the most valuable tiles. It claims where the hand is worth more with the claim. It subtracts what each
// discard may cost (visible.h). It takes every win. The acceptance-weighted player is the stronger one, and
// `mahjong-ppo` imitates it; `rule-mahjong` is the plain one.
//
// `choose_simply` compares the hand with families of hands ("routes") that score by themselves or nearly so
// (all pungs, a flush, three chows in step, ...). A route is worth the points of the win, less a factor for
// each missing tile, more with each unseen copy of a useful tile. The worth of the hand is the sum over the
// routes. If the hand waits, the fans of each waiting tile are calculated. This player does not defend.
#pragma once
#include <string_view>

#include "mahjong/outlook.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

struct Choice {
  Action action;
  /// `choose`: the highest fan of the target hand, or "safe". `choose_simply`: the most valuable route.
  /// Either: "win".
  std::string_view reason;
  /// Worth of the hand after the action, on the policy's own scale.
  double worth;
};

/// The view must be asked; both are deterministic.
Choice choose(const View& view, Appraisal appraisal = Appraisal::plain);
Choice choose_simply(const View& view);
/// A seat that must decide, the first where several must, does what the rule player would.
void play_by_rule(State& state, Appraisal appraisal = Appraisal::plain);

}  // namespace bothost::mahjong
