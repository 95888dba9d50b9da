// What a discard may cost.
#pragma once
#include <array>

#include "mahjong/view.h"

namespace bothost::mahjong {

/// By kind, the points that the seat is expected to lose because this discard wins for somebody. An estimate
/// from what lies open: how far each opponent has come (melds, discards), whether its melds tell a flush,
/// which tiles it let pass since its hand last changed, and how many copies of the tile and its neighbours
/// are out of sight.
std::array<double, kKinds> danger(const View& view);

/// Pairs of unseen neighbours that make a chow with the number tile `t`: 0..3, a pair counts less the fewer
/// copies of its tiles are unseen.
double unseen_chows(const Counts& unseen, int t);

}  // namespace bothost::mahjong
