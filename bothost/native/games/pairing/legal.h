// Legal actions as bits.
#pragma once
#include "core/types.h"
#include "pairing/position.h"

namespace bothost::pairing {

/// Bit i is set when the mover may do action i; it may be a seat whose cards are all known.
inline std::uint64_t legal_actions(const Rules& rules, const Position& now, const Cursor& cursor) {
  const CardSet hand = now.hand[at(now.mover)];
  const bool match = (colours(hand) & colours(now.pool)) != 0;
  const Conditions conditions = now.conditions(rules, match);
  const Machine& machine = rules.phases();
  if (const Row* row = machine.row(cursor.phase, conditions))
    return now.choices(*row, cursor.count, hand, cursor.items[0]);
  return machine.is_hub(cursor.phase) ? std::uint64_t{machine.open(conditions) >> 1} << kCards : 0;
}

inline void append_bits(std::uint64_t mask, ActionList& out) {
  for (; mask; mask &= mask - 1) out.push_back(std::countr_zero(mask));
}

}  // namespace bothost::pairing
