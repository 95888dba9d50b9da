#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "core/words.h"
#include "pairing/deal.h"
#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

namespace {

using Kind = Pairing::Event::Kind;
constexpr std::array<std::string_view, 11> kKinds{"pair",  "force",  "replace", "discard", "final", "deal",
                                                  "enter", "select", "draw",    "refill",  "reveal"};
constexpr std::size_t kLongest = 2000;

std::string join_list(std::span<const Card> cards) {
  std::string out;
  for (const Card card : cards) {
    if (!out.empty()) out += ',';
    out += card_text(card);
  }
  return out;
}

std::string join(CardSet cards) {
  std::vector<Card> list;
  for_each(cards, [&](Card card) { list.push_back(card); });
  return join_list(list);
}

std::vector<Card> parse_list(std::string_view text) {
  std::vector<Card> out;
  if (text.empty()) return out;
  for (const auto word : split(text, ',')) out.push_back(parse_seen(word));
  return out;
}

CardSet parse_set(std::string_view text) {
  CardSet out = 0;
  for (const Card card : parse_list(text)) {
    if (card == kHidden || out & bit(card)) reject(text, "is not a set of cards");
    out |= bit(card);
  }
  return out;
}

int parse_int(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    reject(text, "is not a number within " + std::to_string(low) + " .. " + std::to_string(high));
  return value;
}

/// The words after the seat, each "key=value", in any order; every one must be used.
class Fields {
 public:
  explicit Fields(std::span<const std::string_view> words) {
    for (const auto word : words) {
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) reject(word, "lacks \"=\"");
      if (!fields_.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
        reject(word, "is a field that was there before");
    }
  }
  bool has(std::string_view key) const { return fields_.contains(key); }
  std::string_view take(std::string_view key) {
    const auto field = fields_.extract(key);
    if (!field) reject(key, "is missing");
    return field.mapped();
  }
  std::vector<std::string_view> take(std::string_view key, char by, std::size_t n) {
    const auto parts = split(take(key), by);
    if (parts.size() != n) reject(key, "needs " + std::to_string(n) + " parts");
    return parts;
  }
  void expect_end() const {
    if (!fields_.empty()) reject(fields_.begin()->first, "is an unknown field");
  }

 private:
  std::map<std::string_view, std::string_view> fields_;
};

std::string progress_text(const Position& p) {
  const auto num = [](int value) { return std::to_string(value); };
  return " libraries=" + join(p.library[0]) + "|" + join(p.library[1]) + " discards=" + join(p.discards) +
         " charges=" + num(p.charges[0][0]) + "," + num(p.charges[0][1]) + "," + num(p.charges[1][0]) + "," +
         num(p.charges[1][1]) + " scores=" + num(p.score[0]) + "," + num(p.score[1]) +
         " move=" + num(p.mover) + " turn=" + num(p.turn) + " used=" + num(p.discards_used);
}

void parse_progress(Fields& fields, Position& p) {
  const auto libraries = fields.take("libraries", '|', 2);
  const auto charges = fields.take("charges", ',', 4);
  const auto scores = fields.take("scores", ',', 2);
  for (std::size_t s = 0; s < 2; ++s) {
    p.library[s] = parse_set(libraries[s]);
    p.score[s] = static_cast<std::int16_t>(parse_int(scores[s], -20000, 20000));
    for (std::size_t k = 0; k < 2; ++k)
      p.charges[s][k] = static_cast<std::uint8_t>(parse_int(charges[2 * s + k], 0, 7));
  }
  p.discards = parse_set(fields.take("discards"));
  p.mover = static_cast<Seat>(parse_int(fields.take("move"), 0, 1));
  p.turn = static_cast<std::uint8_t>(parse_int(fields.take("turn"), 0, 100));
  p.discards_used = static_cast<std::uint8_t>(parse_int(fields.take("used"), 0, 2));
}

std::span<const Card> deck_of(const Deal& deal) { return {deal.queue.data(), deal.start.tail}; }

void parse_deck(std::string_view text, Deal& deal) {
  const auto deck = parse_list(text);
  if (deck.size() > kQueue) throw InvalidInput("deck: more than 50 cards");
  std::ranges::copy(deck, deal.queue.begin());
  deal.start.tail = static_cast<std::uint8_t>(deck.size());
}

std::string deal_text(const Deal& deal, Seat seat, bool fresh) {
  const Position& p = deal.start;
  const std::string out = " hand=" + join(p.hand[at(seat)]) + " pool=" + join(p.pool);
  if (fresh) return out;
  return out + " held=" + join(p.hand[at(other(seat))]) + " counts=" + std::to_string(p.hand_count[0]) + "," +
         std::to_string(p.hand_count[1]) + " deck=" + join_list(deck_of(deal)) + progress_text(p);
}

Deal parse_deal(const Pairing::Rules& rules, Fields& fields, Seat seat) {
  Deal deal;
  Position& p = deal.start;
  p = Deal::blank(rules);
  p.hand[at(seat)] = parse_set(fields.take("hand"));
  p.pool = parse_set(fields.take("pool"));
  if (fields.has("held")) {
    p.hand[at(other(seat))] = deal.known[at(seat)] = parse_set(fields.take("held"));
    const auto counts = fields.take("counts", ',', 2);
    for (std::size_t s = 0; s < 2; ++s)
      p.hand_count[s] = static_cast<std::uint8_t>(parse_int(counts[s], 0, kCards));
    parse_deck(fields.take("deck"), deal);
    for (const Card card : deck_of(deal))
      if (card != kHidden) deal.known[at(seat)] |= bit(card);
    parse_progress(fields, p);
  } else if (!deal.fresh(rules)) {
    throw InvalidInput("a pool of " + std::to_string(size(p.pool)) + " cards is dealt where the rules say " +
                       std::to_string(rules.pool));
  }
  return deal;
}

std::string reveal_text(const Pairing::Reveal& reveal, bool fresh) {
  const Deal& deal = reveal.deal;
  const Position& p = deal.start;
  const std::string out = " hands=" + join(p.hand[0]) + "|" + join(p.hand[1]) + " pool=" + join(p.pool) +
                          " deck=" + join_list(deck_of(deal)) + " aside=" + join(deal.aside) +
                          " replaced=" + join_list(reveal.replaced);
  return fresh ? out : out + progress_text(p);
}

Pairing::Reveal parse_reveal(const Pairing::Rules& rules, Fields& fields) {
  Pairing::Reveal reveal;
  Position& p = reveal.deal.start;
  p = Deal::blank(rules);
  const auto hands = fields.take("hands", '|', 2);
  for (std::size_t s = 0; s < 2; ++s) {
    p.hand[s] = parse_set(hands[s]);
    p.hand_count[s] = static_cast<std::uint8_t>(size(p.hand[s]));
  }
  p.pool = parse_set(fields.take("pool"));
  parse_deck(fields.take("deck"), reveal.deal);
  reveal.deal.aside = parse_set(fields.take("aside"));
  reveal.replaced = parse_list(fields.take("replaced"));
  if (fields.has("libraries")) parse_progress(fields, p);
  return reveal;
}

}  // namespace

std::string Pairing::Event::text() const {
  std::string out{kKinds[at(kind)]};
  out += ' ';
  out += seat == kNobody ? "-" : std::to_string(seat);
  switch (kind) {
    case Kind::deal: return out + deal_text(*deal, seat, count != 0);
    case Kind::reveal: return out + reveal_text(*reveal, count != 0);
    case Kind::enter: return (out += ' ') += cards[0] < kPhaseNames.size() ? kPhaseNames[cards[0]] : "?";
    default: break;
  }
  for (const Card card : list()) {
    out += ' ';
    out += card_text(card);
  }
  return out;
}

Pairing::Event Pairing::Event::parse(const Rules& rules, std::string_view text) {
  if (text.size() > kLongest) throw InvalidInput("an event of more than 2000 characters");
  const auto words = split(text, ' ');
  const auto kind = std::ranges::find(kKinds, words[0]);
  if (kind == kKinds.end() || words.size() < 2) reject(text, "is not an event of pairing");
  Event event{static_cast<Kind>(kind - kKinds.begin()), kNobody, 0};
  const bool nobody = event.kind == Kind::refill || event.kind == Kind::reveal;
  if (words[1] != "-" || !nobody) event.seat = static_cast<Seat>(parse_int(words[1], 0, 1));
  if (nobody && event.seat != kNobody) reject(words[0], "is an event without a seat");
  const auto args = std::span(words).subspan(2);
  if (event.kind == Kind::deal || event.kind == Kind::reveal) {
    Fields fields(args);
    if (event.kind == Kind::deal) {
      event.count = !fields.has("held");
      event.deal = std::make_shared<Deal>(parse_deal(rules, fields, event.seat));
    } else {
      event.count = !fields.has("libraries");
      event.reveal = std::make_shared<Reveal>(parse_reveal(rules, fields));
    }
    fields.expect_end();
    return event;
  }
  if (args.empty() || args.size() > event.cards.size() || (event.kind == Kind::enter && args.size() != 1))
    reject(text, "has too few or too many words");
  event.count = static_cast<std::uint8_t>(args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (event.kind == Kind::enter) {
      const auto phase = std::find(kPhaseNames.begin() + 1, kPhaseNames.end(), args[0]);
      if (phase == kPhaseNames.end()) reject(args[0], "is not a phase to enter");
      event.cards[0] = static_cast<std::uint8_t>(phase - kPhaseNames.begin());
    } else {
      event.cards[i] = parse_seen(args[i]);
    }
  }
  return event;
}

}  // namespace bothost
