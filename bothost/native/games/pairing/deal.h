// Deals as JSON, and the check that every deal from outside must pass.
#pragma once
#include "core/json.h"
#include "pairing/position.h"

namespace bothost::pairing {

/// Cards ascending, then one "?" for each of `count` cards that is not in the set.
Json cards_json(CardSet cards, int count);
/// Entries head .. tail of the deck, the top first.
Json deck_json(const Queue& queue, int head, int tail);
Json sets_json(const BySeat<CardSet>& cards);
Json charges_json(const Position& position);

/// `viewer` is kNobody for the truth; with a viewer, "known" is left out: it follows from the rest.
Json deal_json(const Rules& rules, const Deal& deal, Seat viewer);
/// Inverse of deal_json. With a viewer, cards of the other hand and of the deck may be "?", and both may be
/// plain counts. Keys of `ignored` are not looked at. Throws InvalidInput.
Deal deal_from_json(const Rules& rules, const Json& json, Seat viewer,
                    std::span<const std::string_view> ignored = {});

/// Throws InvalidInput unless a hand may begin so, as far as `viewer` sees (kNobody: everything must be
/// known).
void check_deal(const Rules& rules, const Deal& deal, Seat viewer);

}  // namespace bothost::pairing
