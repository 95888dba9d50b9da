// Features of the rest after a move and of the rule player's preference for it, for networks that value
// moves.
#pragma once
#include <span>

#include "doudizhu/view.h"

namespace bothost::doudizhu {

/// Cards of the rest (54), its fewest plays 0 .. 9 and more (11), its cards (21), kind (18), rank (15),
/// length (12), whether it stands, how far the rule player likes another move better (8), whether it wins for
/// certain, whether it is the rule player's choice.
inline constexpr int kMoveAnalysis = 54 + 11 + 21 + 18 + 15 + 12 + 1 + 8 + 1 + 1;

/// Writes kMoveAnalysis numbers, 0 or 1, for each action; the layout is in the doc of the block
/// `move_analysis`.
void move_analysis(const View& view, std::span<const Action> moves, float* out);

}  // namespace bothost::doudizhu
