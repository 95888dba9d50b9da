// Encoder blocks of Dou Dizhu. Their layouts are in the `doc` of each block.
#pragma once
#include <span>
#include <vector>

#include "core/game.h"
#include "doudizhu/view.h"

namespace bothost::doudizhu {

/// 13 x 4 thermometer (cell 4r + i is 1 where more than i cards of rank r are held), small joker, big joker.
inline constexpr int kCardVector = 54;
void put_vector(Cards cards, float* out);

const std::vector<Block>& encoder_blocks();
void encode(const View& view, int block, float* out);
void encode_actions(const View& view, int block, std::span<const Action> actions, float* out);
void encode_oracle(const State& state, Seat seat, int block, float* out);

}  // namespace bothost::doudizhu
