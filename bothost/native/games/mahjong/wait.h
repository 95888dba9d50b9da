// Whether a hand waited for one kind only.
#pragma once
#include "mahjong/tiles.h"

namespace bothost::mahjong {

/// Whether another kind than `but` would complete these standing tiles (one short of a hand with `melds`
/// melds): as four sets and a pair, seven pairs or a knitted straight. A fifth copy counts as a wait, as the
/// official judge has it.
bool waits_for_another(const Counts& standing, int melds, Tile but);

}  // namespace bothost::mahjong
