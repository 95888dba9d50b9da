// Features that people attend to: abstract moves (kickers abstracted, 3334 = 333*), moves that could still be
// played against the seat, and plays that the neighbours passed on. For factorization machines.
#pragma once
#include "doudizhu/view.h"

namespace bothost::doudizhu {

inline constexpr int kMoveTypes = kAbstractActions - 1;
/// Smallest solo let pass, the same with one card left, smallest pair with two, smallest trio with three.
inline constexpr int kLetPass = 2 * kRanks + 2 * 13;
inline constexpr int kMoveTypeFeatures =
    kMoveTypes + kAbstractActions + 2 + kMoveTypes + 2 * 20 + 3 + 2 * kLetPass;

/// Whether these cards, any number of them, can make the abstract move 1 .. 308.
bool can_make(int abstract, Cards cards);

/// Writes kMoveTypeFeatures numbers, 0 or 1; the layout is in the doc of the block `move_types`.
void move_type_features(const View& view, float* out);

/// For next and previous: smallest solo, pair and three that it let an enemy play.
inline constexpr int kPassed = 2 * (kRanks + 2 * 13);
/// Writes kPassed numbers, 0 or 1; the layout is in the doc of the block `passed`.
void passed(const View& view, float* out);

}  // namespace bothost::doudizhu
