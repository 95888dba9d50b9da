#include "pairing/cards.h"

#include <charconv>

namespace bothost::pairing {

std::string card_text(Card card) {
  if (card >= kCards) return "?";
  return kColourNames[at(colour_of(card))] + std::to_string(rank_index(card) + 1);
}

Card parse_card(std::string_view text) {
  const auto colour = text.empty() ? std::string_view::npos : kColourNames.find(text[0]);
  const char* const end = text.data() + text.size();
  int rank = 0;
  if (colour == std::string_view::npos || text.size() < 2 || text[1] == '0' ||
      std::from_chars(text.data() + 1, end, rank).ptr != end || rank < 1 || rank > kRanks)
    reject(text, "is not a card: a colour g, r, w or b and a rank 1 .. 13, as in g7");
  return static_cast<Card>(static_cast<int>(colour) * kRanks + rank - 1);
}

Card parse_seen(std::string_view text) { return text == "?" ? kHidden : parse_card(text); }

}  // namespace bothost::pairing
