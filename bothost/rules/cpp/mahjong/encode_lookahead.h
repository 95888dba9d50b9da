// Encoder blocks of what lies ahead of a hand: see lookahead.h.
#pragma once
#include <span>

#include "core/types.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

inline constexpr int kLookAheadPlanes = 48;
inline constexpr int kDeepestLookAhead = 4;
inline constexpr int kProspectFloats = 18;

/// `depth` draws ahead, 1..kDeepestLookAhead.
void encode_look_ahead(const View& view, int depth, float* out);
/// Throws IllegalAction for an action that the view may not take.
void encode_prospects(const View& view, std::span<const Action> actions, float* out);

}  // namespace bothost::mahjong
