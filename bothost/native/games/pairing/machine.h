// The two phase machines of the pairing game, as tables.
#pragma once
#include <array>

#include "core/phase_machine.h"

namespace bothost::pairing {

/// The same indices in both machines: action kCards + phase - 1 enters a phase.
inline constexpr std::array<std::string_view, 7> kPhaseNames{"init",     "A",       "B",    "discard1",
                                                             "discard2", "pairing", "final"};
enum : Phase { kInit, kSkillA, kSkillB, kDiscard1, kDiscard2, kPairing, kFinal };

/// Where a selection comes from.
enum class Pick : std::uint8_t {
  none,
  hand,            // any card of the own hand
  matching_hand,   // a hand card whose colour lies in the pool
  unmatched_hand,  // a hand card whose colour does not: every hand card where nothing matches
  pool,            // any card of the pool
  same_colour      // a pool card of the colour of the first selection
};

/// What the selected cards cause.
enum class Effect : std::uint8_t { pair, force, replace, discard, final_discard };

/// What a phase may demand.
enum : Conditions {
  kMatch = 1,           // a hand card has the colour of a pool card
  kNoMatch = 2,         // none has
  kCanReplace = 4,      // a charge of skill A, and a card in the deck
  kCanForce = 8,        // a charge of skill B, and a card in the pool
  kCanDiscard = 16,     // a discard of this turn is left, and the deck holds what it draws
  kCannotDiscard = 32,  // the opposite
  kFirstDiscard = 64,   // no discard was made this turn
  kLaterDiscard = 128   // one was
};

inline constexpr std::size_t kMaxQuota = 2;
using Row = PhaseRow<Pick, Effect, kMaxQuota>;
using Machine = PhaseMachine<Row>;
using Cursor = PhaseCursor<std::uint8_t, kMaxQuota>;

inline constexpr std::array<Row, 6> kSevenPhaseRows{{
    {kSkillA, kCanReplace, 1, {Pick::hand}, Effect::replace, kInit},
    {kSkillB, kCanForce, 2, {Pick::hand, Pick::pool}, Effect::force, kInit},
    {kDiscard1, kNoMatch | kCanDiscard | kFirstDiscard, 1, {Pick::unmatched_hand}, Effect::discard, kInit},
    {kDiscard2, kNoMatch | kCanDiscard | kLaterDiscard, 1, {Pick::unmatched_hand}, Effect::discard, kInit},
    {kPairing, kMatch, 2, {Pick::matching_hand, Pick::same_colour}, Effect::pair, kTurnOver},
    {kFinal, kNoMatch | kCannotDiscard, 1, {Pick::unmatched_hand}, Effect::final_discard, kTurnOver},
}};

/// The source's own machine: the discards happen inside pairing, and skills come before it or not at all.
inline constexpr std::array<Row, 5> kFourPhaseRows{{
    {kSkillA, kCanReplace, 1, {Pick::hand}, Effect::replace, kInit},
    {kSkillB, kCanForce, 2, {Pick::hand, Pick::pool}, Effect::force, kInit},
    {kPairing, kMatch, 2, {Pick::matching_hand, Pick::same_colour}, Effect::pair, kTurnOver},
    {kPairing, kNoMatch | kCanDiscard, 1, {Pick::unmatched_hand}, Effect::discard, kPairing},
    {kPairing, kNoMatch | kCannotDiscard, 1, {Pick::unmatched_hand}, Effect::final_discard, kTurnOver},
}};

inline constexpr std::array<std::string_view, 2> kPresets{"seven-phase", "four-phase"};
/// By index of the preset.
inline constexpr std::array<Machine, 2> kMachines{{
    {kPresets[0], kPhaseNames, kSevenPhaseRows},
    {kPresets[1], kPhaseNames, kFourPhaseRows},
}};
static_assert(kMachines[0].sound() && kMachines[1].sound());

}  // namespace bothost::pairing
