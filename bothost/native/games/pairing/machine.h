// The two phase machines of the pairing game: phases, quotas and transitions are tables.
//
// A turn is a walk through phases. One decision either enters a phase or selects one card. A phase has a
// *quota* of selections. They are stored until the quota is full. Then the *effect* of the phase executes on
// all of them at once, and the machine moves to the next phase of the table, or the turn is over.
// *Conditions* are bits that follow from the position. A phase may have several rows; the first whose
// conditions hold applies (so "discard if nothing matches" is a row, not a branch). A phase without rows is a
// hub: it selects nothing and leads to every phase with a row that applies.
//
// Source: the decision phases of the patent application "Game match decision method and device, electronic
// equipment and storage medium" (Hong, Lin, Zeng, Lin; filed 2021-09-10), steps 1 to 7 of a turn.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace bothost::pairing {

/// Index of a phase; 0 is where a turn begins.
using Phase = std::uint8_t;
/// As a row's `next`: the turn is over.
inline constexpr Phase kTurnOver = 0xff;
/// A set of conditions, one bit each.
using Conditions = std::uint32_t;

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

/// What a phase does while all of `needs` hold.
struct Row {
  Phase phase;
  Conditions needs;
  /// How many cards are selected, 1 .. kMaxQuota, and from where each of them.
  std::uint8_t quota;
  std::array<Pick, kMaxQuota> picks;
  Effect effect;
  /// The phase after the effect, or kTurnOver.
  Phase next;

  constexpr bool applies(Conditions conditions) const { return (needs & ~conditions) == 0; }
};

struct Machine {
  std::string_view name;
  std::span<const Row> rows;

  /// The row by which `phase` works under these conditions, or nullptr.
  constexpr const Row* row(Phase phase, Conditions conditions) const {
    for (const Row& r : rows)
      if (r.phase == phase && r.applies(conditions)) return &r;
    return nullptr;
  }
  /// The row that has this effect under these conditions, or nullptr.
  constexpr const Row* row_of(Effect effect, Conditions conditions) const {
    for (const Row& r : rows)
      if (r.effect == effect && r.applies(conditions)) return &r;
    return nullptr;
  }
  /// The phases that a hub leads to under these conditions, one bit each.
  constexpr std::uint32_t open(Conditions conditions) const {
    std::uint32_t set = 0;
    for (const Row& r : rows)
      if (r.applies(conditions)) set |= 1u << r.phase;
    return set;
  }
  constexpr bool is_hub(Phase phase) const {
    for (const Row& r : rows)
      if (r.phase == phase) return false;
    return true;
  }
};

/// Where a turn stands: the phase, and what was selected in it so far.
struct Cursor {
  Phase phase = 0;
  std::uint8_t count = 0;
  std::array<std::uint8_t, kMaxQuota> items{};

  constexpr void enter(Phase to) { *this = Cursor{to, 0, {}}; }
  constexpr void select(std::uint8_t item) { items[count++] = item; }
  bool operator==(const Cursor&) const = default;
};

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
    {kPresets[0], kSevenPhaseRows},
    {kPresets[1], kFourPhaseRows},
}};

}  // namespace bothost::pairing
