// The RHCP player of Dou Dizhu: Recursive Hand Cards Partition, the rule engine that learning players of this
// game have been measured against (You et al., "Combinational Q-Learning for Dou Di Zhu", 2019).
//
// Its one idea: a hand is worth the best sum, over its partitions into plays, of the plays' worth less seven
// for every turn that they take; so a move is worth what the hand that it leaves is worth. The worth of
// plays is that of `play_value` (there in half points): a play of top rank r (3 is 0, the big joker 14)
// r - 7, planes and fours with kickers r / 2, bombs r + 7, the rocket 20.
//
// `hand_value` is that best sum, but for hands with a four, of which it may be a little too high.
//
// It counts no cards: neither what was played nor what others may hold, but for how many they hold.
#pragma once
#include "doudizhu/policy.h"

namespace bothost::doudizhu {

/// The RHCP player's action; the seat must be to act. Deterministic; tens of microseconds. Calls are the rule
/// player's.
Choice choose_by_partition(const Sight& sight);
/// The same of plays, all of which are `legal`.
Choice choose_by_partition(const Sight& sight, std::span<const Action> legal);

}  // namespace bothost::doudizhu
