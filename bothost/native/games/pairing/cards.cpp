#include "pairing/cards.h"

namespace bothost::pairing {

std::string card_text(Card card) {
  if (card >= kCards) return "?";
  return kColourNames[static_cast<std::size_t>(colour_of(card))] + std::to_string(rank_index(card) + 1);
}

Card parse_card(std::string_view text) {
  const auto colour = text.empty() ? std::string_view::npos : kColourNames.find(text[0]);
  int rank = 0;
  if (colour != std::string_view::npos && text.size() >= 2 && text.size() <= 3 && text[1] != '0')
    for (const char digit : text.substr(1)) {
      if (digit < '0' || digit > '9') {
        rank = 0;
        break;
      }
      rank = rank * 10 + (digit - '0');
    }
  if (rank < 1 || rank > kRanks)
    throw InvalidInput("\"" + std::string(text.substr(0, 40)) +
                       "\" is not a card: a colour g, r, w or b and a rank 1 .. 13, as in g7");
  return static_cast<Card>(static_cast<int>(colour) * kRanks + rank - 1);
}

Card parse_seen(std::string_view text) { return text == "?" ? kHidden : parse_card(text); }

}  // namespace bothost::pairing
