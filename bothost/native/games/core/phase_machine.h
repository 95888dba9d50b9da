// Turns of several steps as data: phases, quotas and transitions are tables, and one walker serves every
// game.
//
// A turn is a walk through phases. One decision either enters a phase or selects one item (a card, a square).
// A phase has a *quota* of selections. They are stored until the quota is full. Then the *effect* of the
// phase executes on all of them at once, and the machine moves to the next phase of the table, or the turn is
// over. *Conditions* are bits that the game computes from the position. A phase may have several rows; the
// first whose conditions hold applies (so "discard if nothing matches" is a row, not a branch). A phase
// without rows is a hub: it selects nothing and leads to every phase with a row that applies.
//
// Source: the decision phases of the patent application "Game match decision method and device, electronic
// equipment and storage medium" (Hong, Lin, Zeng, Lin; filed 2021-09-10), steps 1 to 7 of a turn.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bothost {

/// Index of a phase in its machine; 0 is where a turn begins.
using Phase = std::uint8_t;
/// As a row's `next`: the turn is over.
inline constexpr Phase kTurnOver = 0xff;
/// A set of conditions, one bit each.
using Conditions = std::uint32_t;
/// A set of phases, one bit each.
using PhaseSet = std::uint32_t;

/// What a phase does while all of `needs` hold.
template <class Pick, class Effect, std::size_t kMaxQuota>
struct PhaseRow {
  Phase phase;
  Conditions needs;
  /// How many items are selected, 1 .. kMaxQuota, and from where each of them.
  std::uint8_t quota;
  std::array<Pick, kMaxQuota> picks;
  Effect effect;
  /// The phase after the effect, or kTurnOver.
  Phase next;
};

template <class Row>
struct PhaseMachine {
  std::string_view name;
  std::span<const std::string_view> phases;
  std::span<const Row> rows;

  /// The row by which `phase` works under these conditions, or nullptr.
  constexpr const Row* row(Phase phase, Conditions conditions) const {
    for (const Row& r : rows)
      if (r.phase == phase && (r.needs & ~conditions) == 0) return &r;
    return nullptr;
  }

  /// The phases that a hub leads to under these conditions.
  constexpr PhaseSet open(Conditions conditions) const {
    PhaseSet set = 0;
    for (const Row& r : rows)
      if ((r.needs & ~conditions) == 0) set |= PhaseSet{1} << r.phase;
    return set;
  }

  /// The row that has this effect under these conditions, or nullptr.
  template <class Effect>
  constexpr const Row* row_of(Effect effect, Conditions conditions) const {
    for (const Row& r : rows)
      if (r.effect == effect && (r.needs & ~conditions) == 0) return &r;
    return nullptr;
  }

  constexpr bool is_hub(Phase phase) const {
    for (const Row& r : rows)
      if (r.phase == phase) return false;
    return true;
  }

  /// Whether the tables make sense: turns begin in a hub, quotas fit, and every row's phases exist. For
  /// static_assert.
  constexpr bool sound() const {
    if (phases.empty() || phases.size() > 32 || rows.empty() || !is_hub(0)) return false;
    for (const Row& r : rows) {
      if (r.phase == 0 || r.phase >= phases.size()) return false;
      if (r.next != kTurnOver && r.next >= phases.size()) return false;
      if (r.quota < 1 || r.quota > r.picks.size()) return false;
    }
    return true;
  }
};

/// Where a turn stands: the phase, and what was selected in it so far.
template <class Item, std::size_t kMaxQuota>
struct PhaseCursor {
  Phase phase = 0;
  std::uint8_t count = 0;
  std::array<Item, kMaxQuota> items{};

  constexpr void enter(Phase to) { *this = PhaseCursor{to, 0, {}}; }
  constexpr void select(Item item) { items[count++] = item; }
  bool operator==(const PhaseCursor&) const = default;
};

}  // namespace bothost
