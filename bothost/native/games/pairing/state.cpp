#include <algorithm>
#include <string>

#include "pairing/deal.h"
#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

static_assert(Game<Pairing>);

std::string Pairing::notation(const Rules&, Action action) {
  if (action < 0 || action >= kNumActions)
    throw InvalidInput("pairing has no action " + std::to_string(action));
  if (action < kCards) return card_text(static_cast<Card>(action));
  return "enter:" + std::string(kPhaseNames[entered_phase(action)]);
}

Action Pairing::parse_action(const Rules&, std::string_view text) {
  constexpr std::string_view prefix = "enter:";
  if (!text.starts_with(prefix)) return parse_card(text);
  const auto phase = std::find(kPhaseNames.begin() + 1, kPhaseNames.end(), text.substr(prefix.size()));
  if (phase == kPhaseNames.end()) reject(text, "enters no phase: A, B, discard1, discard2, pairing or final");
  return enter_action(static_cast<Phase>(phase - kPhaseNames.begin()));
}

Pairing::State::State(const Rules& rules, Rng& rng) : rules_(&rules) {
  std::array<Card, kCards> cards;
  for (Card c = 0; c < kCards; ++c) cards[c] = c;
  rng.shuffle(cards.begin(), cards.end());
  deal_.start = Deal::blank(rules);
  std::size_t next = 0;
  const auto take = [&](int n) {
    CardSet set = 0;
    while (n-- > 0) set |= bit(cards[next++]);
    return set;
  };
  for (auto& hand : deal_.start.hand) hand = take(rules.hand);
  deal_.start.pool = take(rules.pool);
  for (std::size_t i = 0; i < rules.deck; ++i) deal_.queue[i] = cards[next++];
  deal_.aside = take(kCards - static_cast<int>(next));
  begin();
}

Pairing::State::State(const Rules& rules, const Deal& deal) : rules_(&rules), deal_(deal) {
  check_deal(rules, deal, kNobody);
  begin();
}

Pairing::State Pairing::State::from_deal(const Rules& rules, const Json& deal) {
  return State(rules, deal_from_json(rules, deal, kNobody));
}

void Pairing::State::begin() {
  now_ = deal_.start;
  seq_ = {1, 1};
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t i = 0; deal_.known[s] && i < now_.tail; ++i)
      if (deal_.known[s] & bit(deal_.queue[i])) known_queue_[s] |= std::uint64_t{1} << i;
}

Pairing::State Pairing::State::replay(const Rules& rules, const Deal& deal, const Log& log) {
  State state(rules, deal);
  for (const std::uint8_t entry : log.all())
    apply_checked(state, Log::seat(entry), Log::what(entry), NoEvents{});
  return state;
}

Json Pairing::State::deal() const { return deal_json(*rules_, deal_, kNobody); }

std::uint64_t Pairing::State::legal_mask(Seat seat) const {
  if (seat != now_.mover) return 0;
  return legal_actions(*rules_, now_, cursor_);
}

void Pairing::State::legal(Seat seat, ActionList& out) const { append_bits(legal_mask(seat), out); }

Pairing::Event Pairing::State::deal_event(Seat seat) const {
  // count tells Event::text, which has no rules, whether the short form will do
  const auto fresh = static_cast<std::uint8_t>(deal_.fresh(*rules_));
  return {.kind = Event::Kind::deal,
          .seat = seat,
          .count = fresh,
          .deal = std::make_shared<Deal>(deal_.seen_by(seat))};
}

Pairing::Event Pairing::State::reveal_event() const {
  const auto fresh = static_cast<std::uint8_t>(deal_.fresh(*rules_));
  return {.kind = Event::Kind::reveal, .count = fresh, .reveal = Reveal::of(deal_, now_.tail)};
}

Pairing::View Pairing::State::view(Seat seat) const {
  View view(*rules_, seat);
  view.seq_ = seq_[at(seat)];
  view.stage_ = terminal() ? View::Stage::revealed : View::Stage::running;
  view.now_ = now_;
  view.now_.hand[at(other(seat))] = 0;
  view.log_ = log_;
  const bool mover = seat == now_.mover;
  if (!mover) view.log_.cut();
  if (mover)
    view.cursor_ = cursor_;
  else
    view.cursor_.enter(now_.phase);
  if (terminal()) {
    view.deal_ = deal_;
    view.deal_.known[at(other(seat))] = 0;
    view.seen_ = kAllCards;
    return view;
  }
  view.deal_.start = deal_.start;
  view.deal_.start.hand[at(other(seat))] &= deal_.known[at(seat)];
  view.deal_.known[at(seat)] = deal_.known[at(seat)];
  for (std::size_t i = 0; i < now_.tail; ++i)
    if (known_queue_[at(seat)] >> i & 1) view.deal_.queue[i] = deal_.queue[i];
  view.seen_ = kAllCards & ~unseen(seat);
  if (replaced_[at(other(seat))]) view.log_.hide(other(seat));
  return view;
}

}  // namespace bothost
