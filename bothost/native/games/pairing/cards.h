// Cards of the four-colour pairing game: 4 colours of 13 ranks.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/types.h"

namespace bothost::pairing {

/// colour * 13 + rank - 1: g1 .. g13, r1 .. r13, w1 .. w13 (white-yellow), b1 .. b13 (blue-purple).
using Card = std::uint8_t;
/// Bit i is set when card i is meant.
using CardSet = std::uint64_t;
/// Bit i is set when colour i is meant.
using ColourSet = std::uint8_t;

inline constexpr int kColours = 4;
inline constexpr int kRanks = 13;
inline constexpr int kCards = kColours * kRanks;
inline constexpr std::string_view kColourNames = "grwb";
inline constexpr CardSet kAllCards = (CardSet{1} << kCards) - 1;
/// Stands for a card that a seat does not see; "?" in text.
inline constexpr Card kHidden = 63;
inline constexpr CardSet kOneColour = (CardSet{1} << kRanks) - 1;
/// The four cards of rank 1; shifted by r - 1, those of rank r.
inline constexpr CardSet kOneRank =
    CardSet{1} | CardSet{1} << kRanks | CardSet{1} << (2 * kRanks) | CardSet{1} << (3 * kRanks);

constexpr CardSet bit(Card card) { return CardSet{1} << card; }
constexpr int colour_of(Card card) { return card / kRanks; }
/// 0 .. 12 for ranks 1 .. 13.
constexpr int rank_index(Card card) { return card % kRanks; }
constexpr int size(CardSet set) { return std::popcount(set); }
constexpr Card lowest(CardSet set) { return static_cast<Card>(std::countr_zero(set)); }
constexpr CardSet of_colour(int colour) { return kOneColour << (kRanks * colour); }
constexpr CardSet of_rank(int index) { return kOneRank << index; }

constexpr ColourSet colours(CardSet set) {
  ColourSet out = 0;
  for (int c = 0; c < kColours; ++c)
    if (set & of_colour(c)) out = static_cast<ColourSet>(out | 1 << c);
  return out;
}

/// All cards of these colours.
inline constexpr auto kOfColours = [] {
  std::array<CardSet, 1 << kColours> table{};
  for (unsigned mask = 0; mask < table.size(); ++mask)
    for (int c = 0; c < kColours; ++c)
      if (mask >> c & 1) table[mask] |= of_colour(c);
  return table;
}();

/// Calls f(card) for each card, ascending.
template <class F>
constexpr void for_each(CardSet set, F&& f) {
  for (; set; set &= set - 1) f(lowest(set));
}

std::string card_text(Card card);
/// Throws InvalidInput.
Card parse_card(std::string_view text);
/// As parse_card, or kHidden for "?".
Card parse_seen(std::string_view text);

}  // namespace bothost::pairing
