// What a discard may cost.
#pragma once
#include <array>

#include "mahjong/view.h"

namespace bothost::mahjong {

/// By kind, the points that the seat is expected to lose because an opponent wins by this discard. The
/// estimate uses visible facts: each opponent's progress (melds, discards), whether its melds suggest a
/// flush, the tiles it did not claim since its hand last changed, and the unseen copies of the tile and its
/// neighbours.
std::array<double, kKinds> danger(const View& view);

/// Pairs of unseen neighbours that make a chow with the number tile `t`: 0..3. A pair counts less if fewer
/// copies of its tiles are unseen.
double unseen_chows(const Counts& unseen, int t);

}  // namespace bothost::mahjong
