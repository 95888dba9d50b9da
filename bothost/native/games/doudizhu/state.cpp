#include "doudizhu/state.h"

#include "doudizhu/view.h"

namespace bothost::doudizhu {

Action* State::move_room() {
  thread_local std::array<Action, kMoveRoom> room;
  return room.data();
}

void State::begin(Seat first) {
  pub_.begin_bidding(first, *rules_);
  if (pub_.phase == Phase::bottom) take_bottom();
}

State::State(const Rules& rules, Rng& rng) : rules_(&rules) {
  std::array<std::uint8_t, kDeckSize> deck;
  spread(kDeck, deck.data());
  rng.shuffle(deck.begin(), deck.end());
  for (std::size_t i = 0; i < kDeckSize; ++i) (i < 51 ? hands_[i / kDealSize] : bottom_) += card(deck[i]);
  begin(static_cast<Seat>(rules.random_first ? rng.below(kSeats) : 0));
}

State State::from_deal(const Rules& rules, const Json& deal) {
  State s;
  s.rules_ = &rules;
  const auto& hands = deal.at("hands").array("hands", kSeats);
  Cards all = s.bottom_ = cards_from_text(deal.at("bottom").text("bottom"));
  if (size_of(all) != kBottomSize) throw InvalidInput("bottom must be 3 cards");
  for (std::size_t i = 0; i < kSeats; ++i) {
    s.hands_[i] = cards_from_text(hands[i].text("hands"));
    if (size_of(s.hands_[i]) != kDealSize) throw InvalidInput("a hand must be 17 cards");
    all += s.hands_[i];
    if (!contains(kDeck, all)) break;
  }
  if (all != kDeck) throw InvalidInput("hands and bottom are not one deck");
  deal.only("a deal", {"hands", "bottom", "first"});
  const auto* first = deal.find("first");
  s.begin(first ? static_cast<Seat>(first->integer("first", 0, 2)) : Seat{0});
  return s;
}

Json deal_json(const std::array<Cards, 4>& dealt, Seat first) {
  return JsonObject{{"hands", JsonArray{to_text(dealt[0]), to_text(dealt[1]), to_text(dealt[2])}},
                    {"bottom", to_text(dealt[3])},
                    {"first", first}};
}

Json State::deal() const { return deal_json(whole_deal(), first()); }

Action* legal_of(const Public& pub, const Rules& rules, Cards hand, Action* out) {
  if (pub.phase == Phase::bid) {
    const Action first = Universe::get().first_call();
    for (Action i = 0; i < 6; ++i)
      if (pub.is_legal_call(i, rules)) *out++ = first + i;
    return out;
  }
  const Generator generator(hand, rules.allowed);
  return pub.last == 0 ? generator.lead(out) : generator.follow(Universe::get()[pub.last], out);
}

void append_legal(const Public& pub, const Rules& rules, Cards hand, ActionList& out) {
  Action* const room = State::move_room();
  out.insert(out.end(), room, legal_of(pub, rules, hand, room));
}

namespace {

bool is_legal_of(const Public& pub, const Rules& rules, Cards hand, Action action) {
  const auto& u = Universe::get();
  if (action < 0 || action >= u.num_actions()) return false;
  if (pub.phase == Phase::bid)
    return action >= u.first_call() && pub.is_legal_call(action - u.first_call(), rules);
  return pub.is_playable(action, rules) && contains(hand, u[action].cards);
}

}  // namespace

bool State::is_legal(Seat seat, Action action) const {
  return seat == pub_.turn && seat != kNobody && is_legal_of(pub_, *rules_, hand(seat), action);
}

bool View::is_legal(Action action) const { return asked() && is_legal_of(pub_, *rules_, hand_, action); }

View State::view(Seat seat) const {
  View v(*rules_, seat);
  v.hand_ = hand(seat);
  v.pub_ = pub_;
  v.revealed_ = terminal();
  if (terminal()) {
    v.dealt_ = whole_deal();
    v.pub_.first = first();
  }
  v.seq_ = events_seen() + seq_offset_;
  return v;
}

}  // namespace bothost::doudizhu
