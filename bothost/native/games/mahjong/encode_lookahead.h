// Encoder blocks of what lies ahead of a hand: see lookahead.h.
#pragma once
#include <span>

#include "core/types.h"
#include "mahjong/appraisal.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

/// Cells of a plane: four rows of the kinds of tiles.
inline constexpr int kPlane = 4 * kKinds;
inline constexpr int kLookAheadPlanes = 48;
inline constexpr int kDeepestLookAhead = 4;
inline constexpr int kProspectFloats = 18;

/// `depth` draws ahead, 1..kDeepestLookAhead.
void encode_look_ahead(const View& view, int depth, float* out);
/// Throws IllegalAction for an action that the view may not take.
void encode_prospects(const View& view, Appraisal appraisal, std::span<const Action> actions, float* out);

}  // namespace bothost::mahjong
