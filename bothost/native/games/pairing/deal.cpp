#include "pairing/deal.h"

#include <algorithm>

namespace bothost::pairing {
namespace {

constexpr int kMostTurns = 100;
constexpr int kMostScore = 20000;

struct Cards {
  CardSet known = 0;
  std::vector<Card> list;
};

/// A list in which "?" may stand, or a count of cards that are all unknown.
Cards read_cards(const Json& json, std::string_view what, bool hidden) {
  Cards out;
  if (hidden && std::holds_alternative<std::int64_t>(json.value())) {
    out.list.assign(at(json.integer(what, 0, kCards)), kHidden);
    return out;
  }
  const auto& list = json.array(what);
  if (list.size() > kCards) throw InvalidInput(std::string(what) + ": more than 52 cards");
  for (const Json& entry : list) {
    const Card card = hidden ? parse_seen(entry.text(what)) : parse_card(entry.text(what));
    if (card != kHidden) {
      if (out.known & bit(card))
        throw InvalidInput(std::string(what) + ": " + card_text(card) + " is there twice");
      out.known |= bit(card);
    }
    out.list.push_back(card);
  }
  return out;
}

/// A list of different cards, all of them known.
CardSet read_set(const Json& json, std::string_view what) { return read_cards(json, what, false).known; }

void read_numbers(const Rules& rules, const Json& json, Position& start) {
  for (std::size_t s = 0; s < 2; ++s) {
    if (const Json* charges = json.find("charges")) {
      const auto& own = charges->array("charges", 2)[s].array("charges of a seat", 2);
      for (std::size_t k = 0; k < 2; ++k)
        start.charges[s][k] = own[k].integer<std::uint8_t>("charges", 0, kMostCharges[k]);
    }
    if (const Json* scores = json.find("scores"))
      start.score[s] = scores->array("scores", 2)[s].integer<std::int16_t>("scores", -kMostScore, kMostScore);
  }
  json.read("to_move", start.mover, 0, 1);
  json.read("turn", start.turn, 0, kMostTurns);
  json.read("discards_used", start.discards_used, 0, rules.discards);
}

}  // namespace

Json cards_json(CardSet cards, int count) {
  JsonArray out;
  for_each(cards, [&](Card card) { out.emplace_back(card_text(card)); });
  while (static_cast<int>(out.size()) < count) out.emplace_back("?");
  return out;
}

Json deck_json(const Queue& queue, int head, int tail) {
  JsonArray out;
  for (int i = head; i < tail; ++i) out.emplace_back(card_text(queue[at(i)]));
  return out;
}

Json sets_json(const BySeat<CardSet>& cards) {
  return JsonArray{cards_json(cards[0], 0), cards_json(cards[1], 0)};
}

Json charges_json(const Position& p) {
  const auto& [own, other] = p.charges;
  return JsonArray{JsonArray(own.begin(), own.end()), JsonArray(other.begin(), other.end())};
}

Json deal_json(const Rules& rules, const Deal& deal, Seat viewer) {
  const Position& p = deal.start;
  Queue deck = deal.queue;
  if (viewer != kNobody)  // what was learnt later is not part of the deal
    for (Card& card : deck)
      if (!(deal.known[at(viewer)] & bit(card))) card = kHidden;
  JsonObject out{
      {"hands", JsonArray{cards_json(p.hand[0], p.hand_count[0]), cards_json(p.hand[1], p.hand_count[1])}},
      {"pool", cards_json(p.pool, 0)},
      {"deck", deck_json(deck, p.head, p.tail)}};
  if (deal.aside) out.emplace_back("aside", cards_json(deal.aside, 0));
  if (deal.fresh(rules)) return out;
  out.emplace_back("libraries", sets_json(p.library));
  out.emplace_back("discards", cards_json(p.discards, 0));
  out.emplace_back("charges", charges_json(p));
  out.emplace_back("scores", JsonArray(p.score.begin(), p.score.end()));
  out.emplace_back("to_move", p.mover);
  out.emplace_back("turn", p.turn);
  out.emplace_back("discards_used", p.discards_used);
  if (viewer == kNobody) out.emplace_back("known", sets_json(deal.known));
  return out;
}

Deal deal_from_json(const Rules& rules, const Json& json, Seat viewer,
                    std::span<const std::string_view> ignored) {
  std::vector<std::string_view> keys{"hands",   "pool",   "deck",    "aside", "libraries",    "discards",
                                     "charges", "scores", "to_move", "turn",  "discards_used"};
  const std::size_t basic = 4;
  if (viewer == kNobody) keys.push_back("known");
  const bool fresh = std::none_of(keys.begin() + basic, keys.end(), [&](auto key) { return json.find(key); });
  keys.insert(keys.end(), ignored.begin(), ignored.end());
  json.only("a deal of pairing", keys);

  Deal deal;
  Position& start = deal.start;
  start = Deal::blank(rules);
  for (Seat seat = 0; seat < 2; ++seat) {
    const bool hidden = viewer != kNobody && seat != viewer;
    const auto cards = read_cards(json.at("hands").array("hands", 2)[at(seat)], "hands", hidden);
    start.hand[at(seat)] = cards.known;
    start.hand_count[at(seat)] = static_cast<std::uint8_t>(cards.list.size());
    if (hidden) deal.known[at(viewer)] |= cards.known;
  }
  start.pool = read_set(json.at("pool"), "pool");
  const auto deck = read_cards(json.at("deck"), "deck", viewer != kNobody);
  if (deck.list.size() > kMostDeck) throw InvalidInput("deck: more than 50 cards");
  std::ranges::copy(deck.list, deal.queue.begin());
  start.tail = static_cast<std::uint8_t>(deck.list.size());
  if (viewer != kNobody) deal.known[at(viewer)] |= deck.known;
  if (const Json* aside = json.find("aside")) deal.aside = read_set(*aside, "aside");
  for (std::size_t s = 0; s < 2; ++s) {
    if (const Json* libraries = json.find("libraries"))
      start.library[s] = read_set(libraries->array("libraries", 2)[s], "libraries");
    if (const Json* known = json.find("known"))
      deal.known[s] = read_set(known->array("known", 2)[s], "known");
  }
  if (const Json* discards = json.find("discards")) start.discards = read_set(*discards, "discards");
  read_numbers(rules, json, start);
  if (fresh && !deal.fresh(rules))
    throw InvalidInput("a fresh deal needs hands of " + std::to_string(rules.hand) + ", a pool of " +
                       std::to_string(rules.pool) + " and a deck of " + std::to_string(rules.deck) +
                       " cards");
  check_deal(rules, deal, viewer);
  return deal;
}

void check_deal(const Rules& rules, const Deal& deal, Seat viewer) {
  const Position& p = deal.start;
  CardSet seen = 0;
  const auto place = [&](CardSet cards) {
    if (const CardSet twice = seen & cards)
      throw InvalidInput("card " + card_text(lowest(twice)) + " is there twice");
    seen |= cards;
  };
  int places = size(p.pool) + size(p.discards) + p.tail;
  CardSet deck = 0;
  if (p.head != 0 || p.tail > kMostDeck) throw InvalidInput("deck: more than 50 cards");
  for (std::size_t i = 0; i < p.tail; ++i)
    if (deal.queue[i] != kHidden) {
      place(bit(deal.queue[i]));
      deck |= bit(deal.queue[i]);
    }
  for (std::size_t s = 0; s < 2; ++s) {
    place(p.hand[s]);
    place(p.library[s]);
    places += p.hand_count[s] + size(p.library[s]);
    const bool all = viewer == kNobody || viewer == static_cast<Seat>(s);
    if (size(p.hand[s]) > p.hand_count[s] || (all && size(p.hand[s]) != p.hand_count[s]))
      throw InvalidInput("hands: seat " + std::to_string(s) +
                         " does not hold the number of cards that it should");
    for (std::size_t k = 0; k < 2; ++k)
      if (p.charges[s][k] > kMostCharges[k])
        throw InvalidInput("charges: more than " + std::to_string(kMostCharges[k]) + " of skill " + "AB"[k]);
    if (deal.known[s] & ~(deck | p.hand[1 - s]))
      throw InvalidInput("known: a card that lies neither in the deck nor in the other hand");
  }
  place(p.pool);
  place(p.discards);
  place(deal.aside);
  if (seen & ~kAllCards) throw InvalidInput("a deal holds cards that there are not");
  if (places > kCards) throw InvalidInput("more than 52 cards are in the game");
  if (viewer == kNobody && (size(deck) != p.tail || places + size(deal.aside) != kCards))
    throw InvalidInput("a deal must place each of the 52 cards; " + std::to_string(kCards - size(seen)) +
                       " are missing (\"aside\" takes those out of the game)");
  if (p.mover != 0 && p.mover != 1) throw InvalidInput("to_move: neither 0 nor 1");
  if (!p.hand_count[at(p.mover)]) throw InvalidInput("to_move: the seat on turn has no cards");
  if (p.turn > kMostTurns || p.discards_used > rules.discards || p.phase != kInit || p.owes() ||
      p.next != kInit)
    throw InvalidInput("a deal stands at the beginning of a turn, or between its effects");
}

}  // namespace bothost::pairing
