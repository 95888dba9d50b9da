// How well hidden hands explain what the others were seen to do.
#pragma once
#include "doudizhu/view.h"

namespace bothost::doudizhu {

/// A player of the rule player's taste, but not its certainty: the probability of an action is a softmax of
/// its preferences, or any legal action by chance. Nobody at the table need be a rule player for this to tell
/// likely hands from unlikely ones.
struct Taste {
  /// Half points of preference by which an action is e times as likely.
  double temperature = 6.0;
  /// Share of actions of no taste at all.
  double chance = 0.1;
};

/// Log of the probability of all that the other seats did, were their hands as in `deal`, a sample of the
/// view; minus infinity of hands that could not have played so. 0 where the view does not know the history.
/// Some microseconds for each of their plays.
double log_likelihood(const View& view, const State& deal, const Taste& taste);

}  // namespace bothost::doudizhu
