// The rule players.
//
// `choose` plans for the minimum: it looks ahead to all hands that win (lookahead.h), keeps what is worth
// most, claims where the hand is worth more with the claim than without, and sets against that what each
// discard may cost (danger.h). It takes every win. With the discerning appraisal it is the stronger player,
// whom `mahjong-ppo` imitates; `rule-mahjong` is the plain one.
//
// `choose_simply` measures the hand against families of hands ("routes") that score by themselves or nearly
// so (all pungs, a flush, three chows in step, ...). The worth of the standing tiles is summed over the
// routes: points of the win, shrunk by a factor for each missing tile, grown by the unseen copies of the
// tiles that help; where the hand waits, the fans of each tile are calculated. It does not defend.
#pragma once
#include <string_view>

#include "mahjong/appraisal.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

struct Choice {
  Action action;
  /// Of `choose` the dearest fan of the hand that it aims at, or "safe"; of `choose_simply` the route that
  /// counts most; or "win".
  std::string_view reason;
  /// Worth of the hand after the action, on the policy's own scale.
  double worth;
};

/// The view must be asked; both are deterministic.
Choice choose(const View& view, Appraisal appraisal = Appraisal::plain);
Choice choose_simply(const View& view);

}  // namespace bothost::mahjong
