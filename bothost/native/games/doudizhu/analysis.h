// Hand analysis: the fewest plays that empty a hand, and its best partition into plays.
//
// Both enumerate the sets of chains (solo, pair and trio chains) in a hand. The rest of each is solos, pairs,
// trios and fours; trios, planes and fours take other units as kickers. A cache per thread keeps results, so
// that the rests of many candidate moves cost little. The kickers are RLCard's.
#pragma once
#include <vector>

#include "doudizhu/moves.h"

namespace bothost::doudizhu {

/// The fewest plays, each legal as a lead, that empty the hand; 0 for no cards. Exact.
int fewest_plays(Cards hand);

/// Plays that empty the hand in `fewest_plays` plays, weakest first.
std::vector<Action> shortest_partition(Cards hand);

/// A lower bound of fewest_plays, nearly always equal to it. It ignores that a kicker may not be of its
/// body's rank. About a microsecond.
int fewest_plays_bound(Cards hand);

/// How likely a play wins or keeps the lead, in half points: 2 (rank - 7) for the top rank of the body (3 is
/// -14, A 8, the big joker 14), `rank` for planes and fours with kickers, 2 (rank + 7) for bombs, 40 for the
/// rocket.
int play_value(const Move& m);

/// Cost of one more play, on the scale of play_value.
inline constexpr int kPlayCost = 14;

/// The best sum of play_value - kPlayCost over partitions of the hand; higher is better. Kickers are all of a
/// rank that the chains leave: partitions that break a pair or a trio for them are not tried. Like
/// fewest_plays_bound it ignores that a kicker may not be of its body's rank.
int hand_value(Cards hand);

/// The plays of a best partition, weakest first.
std::vector<Action> best_partition(Cards hand);

}  // namespace bothost::doudizhu
