// Encoder blocks: the matrix and dummy encodings (a tile set is 4 x 34, row k is 1 where at least k + 1
// copies are held; an integer of n places is n planes or rows of which one is all ones).
#pragma once
#include <span>
#include <vector>

#include "core/game.h"
#include "mahjong/outlook.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

/// Cells of a plane: four rows of the kinds of tiles.
inline constexpr int kPlane = 4 * kKinds;
inline constexpr int kLookAheadPlanes = 48;
inline constexpr int kDeepestLookAhead = 4;
inline constexpr int kProspectFloats = 18;

const std::vector<Block>& encoder_blocks();
void encode_view(const View& view, int block, float* out);
void encode_actions(const View& view, int block, std::span<const Action> actions, float* out);
void encode_oracle(const State& state, Seat seat, int block, float* out);

/// What lies ahead of a hand (lookahead.h), `depth` draws ahead, 1..kDeepestLookAhead.
void encode_look_ahead(const View& view, int depth, float* out);
/// Throws IllegalAction for an action that the view may not take.
void encode_prospects(const View& view, Appraisal appraisal, std::span<const Action> actions, float* out);

}  // namespace bothost::mahjong
