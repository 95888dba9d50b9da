// Encoder blocks: the matrix and dummy encodings (a tile set is 4 x 34, row k is 1 where at least k + 1
// copies are held; an integer of n places is n planes or rows of which one is all ones).
#pragma once
#include <span>
#include <vector>

#include "core/game.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

const std::vector<Block>& encoder_blocks();
void encode_view(const View& view, int block, float* out);
void encode_actions(const View& view, int block, std::span<const Action> actions, float* out);
void encode_oracle(const State& state, Seat seat, int block, float* out);

}  // namespace bothost::mahjong
