// What each legal action brings now: inputs of networks that score actions one by one.
#pragma once
#include "pairing/pairing.h"

namespace bothost::pairing {

/// Numbers about the whole position, and about each action.
inline constexpr std::size_t kSummary = 16;
inline constexpr std::size_t kCandidate = 32;

/// Writes `summary` (kSummary) and `candidates` (kNumActions, kCandidate) of a view; rows of illegal actions
/// are zero, and so is everything unless the view is asked.
void encode_candidates(const Pairing::View& view, float* summary, float* candidates);

}  // namespace bothost::pairing
