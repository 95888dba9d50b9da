#include <algorithm>

#include "claims.h"

namespace bothost {

using namespace claims;

Claims::View::View(const Rules& rules, Seat seat) : rules_(&rules), seat_(seat) {}

bool Claims::View::operator==(const View& other) const {
  const auto reveal = [](const View& v) { return v.reveal_ ? v.reveal_->text() : std::string(); };
  return seat_ == other.seat_ && seq_ == other.seq_ && dealt_ == other.dealt_ && ended_ == other.ended_ &&
         first_ == other.first_ && active_ == other.active_ && start_ == other.start_ &&
         hand_ == other.hand_ && turns_ == other.turns_ && reveal(*this) == reveal(other);
}

bool Claims::View::asked() const {
  if (!dealt_ || ended_) return false;
  return turns_.open ? own_answer() == kUnanswered : active_ == seat_;
}

std::string_view Claims::View::phase() const {
  return !dealt_ ? "deal" : ended_ ? "end" : turns_.open ? "claim" : "discard";
}

void Claims::View::legal(ActionList& out) const {
  if (!asked()) return;
  if (turns_.open) return list_answers(hand_[at(turn().number)], out);
  for (Action n = 0; n < kNumbers; ++n)
    if (hand_[at(n)] > 0) out.push_back(n);
}

Claims::BySeat<int> Claims::View::sizes() const {
  BySeat<int> out{};
  for (int s = 0; s < rules_->seats; ++s) out[at(s)] = rules_->hand;
  for (std::size_t t = 0; t < at(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    --out[at(turn.discarder)];
    if (turn.taker != kNobody) out[at(turn.taker)] -= turn.with == kPair ? 2 : 1;
  }
  return out;
}

Claims::Hand Claims::View::laid_down() const {
  Hand out{};
  for (std::size_t t = 0; t < at(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    const int cards = 1 + (turn.taker == kNobody ? 0 : turn.with == kPair ? 2 : 1);
    auto& copies = out[at(turn.number)];
    copies = static_cast<std::int8_t>(copies + cards);
  }
  return out;
}

void Claims::View::observe(const Event& event) {
  refuse(dealt_ == (event.kind == Event::Kind::deal), "the deal is the first event, and only that");
  switch (event.kind) {
    case Event::Kind::deal: on_deal(event); break;
    case Event::Kind::discard: on_discard(event); break;
    case Event::Kind::answer: on_answer(event); break;
    case Event::Kind::take:
    case Event::Kind::none: on_outcome(event); break;
    case Event::Kind::reveal: on_reveal(event); break;
  }
  ++seq_;
}

void Claims::View::on_deal(const Event& event) {
  refuse(event.seat != seat_, "the hand of another seat");
  check_hand(event.hands.at(0), rules_->hand);
  dealt_ = true;
  start_ = hand_ = event.hands[0];
  first_ = active_ = event.value;
}

void Claims::View::on_discard(const Event& event) {
  refuse(ended_ || turns_.open, "no discard is due");
  refuse(event.seat != active_, "another seat is on turn");
  const auto number = at(event.value);
  if (seat_ == event.seat)
    refuse(hand_[number] == 0, "a discard of a card that we do not hold");
  else
    refuse(laid_down()[number] + hand_[number] >= kCopies, "a discard of a fifth copy");
  if (seat_ == event.seat) --hand_[number];
  turns_.open = true;
  turns_.list[at(turns_.count++)] = Turn{.discarder = event.seat, .number = event.value};
  if (seat_ != event.seat && hand_[number] > 0) own_answer() = kUnanswered;
}

void Claims::View::on_answer(const Event& event) {
  refuse(event.seat != seat_, "the answer of another seat");
  refuse(!turns_.open || own_answer() != kUnanswered, "no answer is due");
  refuse(event.value == kPair && hand_[at(turn().number)] < 2, "a pair that we do not hold");
  own_answer() = event.value;
}

void Claims::View::on_outcome(const Event& event) {
  refuse(!turns_.open, "no claims are open");
  refuse(own_answer() == kUnanswered, "an outcome before our answer");
  const Seat taker = event.seat;
  const bool claimed = own_answer() > kPass;
  if (taker == kNobody) {
    refuse(claimed, "our claim was passed over");
  } else {
    const int cards = event.value == kPair ? 2 : 1;
    refuse(event.value <= kPass || taker == turn().discarder, "that cannot take the card");
    refuse(sizes()[at(taker)] < cards, "more cards than that seat has");
    if (taker == seat_) {
      refuse(own_answer() != event.value, "we claimed otherwise");
    } else {
      const auto number = at(turn().number);
      refuse(laid_down()[number] + hand_[number] + cards > kCopies, "more than four copies");
      Turn would = turn();
      would.answers[at(taker)] = event.value;
      refuse(claimed && better(would, seat_, taker, rules_->seats), "our better claim was passed over");
    }
  }
  Turn& done = turn();
  done.taker = taker;
  done.with = taker == kNobody ? std::int8_t{kNone} : event.value;
  if (taker == seat_) {
    auto& copies = hand_[at(done.number)];
    copies = static_cast<std::int8_t>(copies - (event.value == kPair ? 2 : 1));
  }
  turns_.open = false;
  active_ = taker == kNobody ? static_cast<Seat>((done.discarder + 1) % rules_->seats) : taker;
  const auto left = sizes();
  for (int s = 0; s < rules_->seats; ++s) ended_ |= left[at(s)] == 0;
}

Claims::State Claims::View::revealed(const Event& event) const {
  BySeat<Hand> dealt{};
  std::copy(event.hands.begin(), event.hands.end(), dealt.begin());
  State state(*rules_, dealt, first_);
  for (std::size_t t = 0; t < event.answers.size(); ++t) {
    apply_checked(state, turns_.list[t].discarder, turns_.list[t].number, NoEvents{});
    for (const auto& [seat, answer] : event.answers[t]) apply_checked(state, seat, answer, NoEvents{});
  }
  return state;
}

void Claims::View::on_reveal(const Event& event) {
  refuse(!ended_ || reveal_, "no reveal is due");
  const auto seats = at(rules_->seats);
  refuse(event.hands.size() != seats || event.answers.size() != at(turns_.count),
         "the reveal does not fit the hand");
  View expected = revealed(event).view(seat_);
  expected.reveal_.reset();
  expected.seq_ = seq_;
  refuse(!(expected == *this), "the reveal does not fit the hand");
  reveal_ = event;
}

void Claims::View::apply(Action action) {
  const auto kind = turns_.open ? Event::Kind::answer : Event::Kind::discard;
  observe(Event{kind, seat_, static_cast<std::int8_t>(action), {}, {}});
}

Claims::State Claims::View::sample(Rng& rng) const {
  refuse(!dealt_, "nothing was dealt yet");
  if (reveal_) return revealed(*reveal_);
  const auto own = at(seat_);
  const auto left = sizes();
  // What others laid down they were dealt; what nobody has seen may be anywhere.
  BySeat<Hand> known{};
  Hand unseen;
  unseen.fill(kCopies);
  const auto reveal_card = [&](Seat seat, std::int8_t number, int cards) {
    auto& copies = known[at(seat)][at(number)];
    copies = static_cast<std::int8_t>(copies + cards);
  };
  for (std::size_t t = 0; t < at(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    reveal_card(turn.discarder, turn.number, 1);
    if (turn.taker != kNobody) reveal_card(turn.taker, turn.number, turn.with == kPair ? 2 : 1);
  }
  known[own] = start_;
  for (const Hand& hand : known)
    for (std::size_t n = 0; n < kNumbers; ++n) unseen[n] = static_cast<std::int8_t>(unseen[n] - hand[n]);
  std::vector<std::int8_t> cards;
  for (std::size_t n = 0; n < kNumbers; ++n)
    cards.insert(cards.end(), at(unseen[n]), static_cast<std::int8_t>(n));

  // While claims are open and we owe no answer, somebody else does: such deals alone are possible.
  const bool others_owe = turns_.open && own_answer() != kUnanswered;
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    rng.shuffle(cards.begin(), cards.end());
    BySeat<Hand> dealt = known;
    std::size_t next = 0;
    bool owed = false;
    for (std::size_t s = 0; s < at(rules_->seats); ++s) {
      if (s == own) continue;
      for (int i = 0; i < left[s]; ++i, ++next) {
        owed |= turns_.open && turn().discarder != static_cast<Seat>(s) && cards[next] == turn().number;
        ++dealt[s][at(cards[next])];
      }
    }
    if (others_owe && !owed) continue;
    State state(*rules_, dealt, first_);
    for (std::size_t t = 0; t < at(turns_.count); ++t) {
      const Turn& turn = turns_.list[t];
      const bool open = turns_.open && t + 1 == at(turns_.count);
      state.apply_legal(turn.discarder, turn.number, NoEvents{});
      for (Seat s = 0; s < rules_->seats; ++s) {
        if (!state.turns_.open || !(state.to_act() >> s & 1)) continue;
        const std::int8_t mine = turn.answers[own];
        if (s == seat_ && mine != kUnanswered) state.apply_legal(s, mine, NoEvents{});
        if (s != seat_ && !open) state.apply_legal(s, s == turn.taker ? turn.with : kPass, NoEvents{});
      }
    }
    return state;
  }
  throw InvalidInput("no deal fits this view");
}

// Bytes and JSON

Claims::View Claims::View::rebuild(const Rules& rules, Seat seat, bool dealt, Seat first, const Hand& hand,
                                   const Turns& turns, const std::optional<Event>& reveal, bool lenient) {
  View view(rules, seat);
  if (!dealt) {
    refuse(turns.count > 0 || reveal.has_value(), "turns before the deal");
    return view;
  }
  view.observe({Event::Kind::deal, seat, first, {hand}, {}});
  for (std::size_t t = 0; t < at(turns.count); ++t) {
    const Turn& turn = turns.list[t];
    const bool open = turns.open && t + 1 == at(turns.count);
    view.observe({Event::Kind::discard, view.active_, turn.number, {}, {}});
    auto answer = turn.answers[at(seat)];
    if (answer == kNone && lenient && !open && view.own_answer() == kUnanswered)
      answer = turn.taker == seat ? turn.with : static_cast<std::int8_t>(kPass);
    if (answer != kNone) view.observe({Event::Kind::answer, seat, answer, {}, {}});
    if (open) break;
    const auto kind = turn.taker == kNobody ? Event::Kind::none : Event::Kind::take;
    view.observe({kind, turn.taker, turn.with, {}, {}});
  }
  if (reveal) view.observe(*reveal);
  return view;
}

void Claims::View::write(ByteWriter& out) const {
  out.u8(seat_);
  out.u8(dealt_);
  if (!dealt_) return;
  out.u8(first_);
  out.text(hand_text(start_));
  out.u8(turns_.count);
  out.u8(turns_.open);
  for (std::size_t t = 0; t < at(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    out.u8(turn.number);
    out.u8(turn.answers[at(seat_)] + 2);
    out.u8(turn.taker + 1);
    out.u8(turn.with + 1);
  }
  out.text(reveal_ ? reveal_->text() : "");
}

Claims::View Claims::View::read(const Rules& rules, ByteReader& in) {
  const auto within = [&in](int low, int high) {
    const int v = in.u8();
    refuse(v < low || v > high, "a byte is out of range");
    return static_cast<std::int8_t>(v);
  };
  const auto seat = static_cast<Seat>(within(0, rules.seats - 1));
  if (!within(0, 1)) return View(rules, seat);
  const auto first = static_cast<Seat>(within(0, rules.seats - 1));
  const auto digits = in.text(kMaxHand);
  const Hand hand = parse_hand(digits);
  refuse(hand_text(hand) != digits, "a hand is written in order");
  Turns turns;
  turns.count = within(0, kMaxTurns);
  turns.open = within(0, 1);
  refuse(turns.open && turns.count == 0, "open claims without a discard");
  for (std::size_t t = 0; t < at(turns.count); ++t) {
    const bool open = turns.open && t + 1 == at(turns.count);
    Turn& turn = turns.list[t];
    turn.number = within(0, kNumbers - 1);
    const int answer = within(0, kPair + 2) - 2;
    refuse(answer >= 0 && answer < kPass, "no such answer");
    refuse(answer == kUnanswered && !open, "a past answer is missing");
    turn.answers[at(seat)] = static_cast<std::int8_t>(answer);
    turn.taker = static_cast<Seat>(within(0, open ? 0 : rules.seats) - 1);
    turn.with = static_cast<std::int8_t>(within(0, kPair + 1) - 1);
    refuse((turn.taker == kNobody) != (turn.with == kNone) || (turn.with >= 0 && turn.with < kMatch),
           "no such outcome");
  }
  std::optional<Event> reveal;
  if (const auto text = in.text(1000); !text.empty()) {
    reveal = Event::parse(rules, text);
    refuse(reveal->kind != Event::Kind::reveal || reveal->text() != text, "not a reveal");
  }
  // An unanswered claim is what the discard leaves behind: nothing is to be folded for it.
  Turns folded = turns;
  bool owed = false;
  if (turns.open) {
    auto& answer = folded.list[at(turns.count - 1)].answers[at(seat)];
    owed = answer == kUnanswered;
    if (owed) answer = kNone;
  }
  View view = rebuild(rules, seat, true, first, hand, folded, reveal, false);
  refuse(turns.open && (view.own_answer() == kUnanswered) != owed, "the open answer does not fit the hand");
  return view;
}

Json Claims::View::to_json() const {
  JsonArray turns;
  for (std::size_t t = 0; t < at(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    const auto answer = turn.answers[at(seat_)];
    turns.push_back(JsonObject{{"discarder", turn.discarder},
                               {"number", turn.number},
                               {"answer", answer >= 0 ? Json(answer_word(answer)) : Json()},
                               {"taker", turn.taker == kNobody ? Json() : Json(turn.taker)},
                               {"with", turn.taker == kNobody ? Json() : Json(answer_word(turn.with))}});
  }
  return JsonObject{{"seat", seat_},
                    {"first", dealt_ ? Json(first_) : Json()},
                    {"hand", dealt_ ? hand_json(start_) : Json()},
                    {"turns", turns},
                    {"open", turns_.open},
                    {"reveal", reveal_ ? Json(reveal_->text()) : Json()}};
}

namespace {

Claims::Turn turn_from_json(const Claims::Rules& rules, Seat seat, const Json& json) {
  Claims::Turn turn;
  turn.number = static_cast<std::int8_t>(json.at("number").integer("number", 0, Claims::kNumbers - 1));
  if (const Json* answer = json.known("answer"))
    turn.answers[at(seat)] = parse_answer(answer->text("answer"));
  if (const Json* taker = json.known("taker")) {
    turn.taker = static_cast<Seat>(taker->integer("taker", 0, rules.seats - 1));
    turn.with = parse_answer(json.at("with").text("with"));
    refuse(turn.with == Claims::kPass, "a pass takes nothing");
  }
  return turn;
}

}  // namespace

Claims::View Claims::View::from_snapshot(const Rules& rules, const Json& json) {
  const auto seat = static_cast<Seat>(json.at("seat").integer("seat", 0, rules.seats - 1));
  if (!json.known("hand")) return View(rules, seat);
  const auto first = static_cast<Seat>(json.at("first").integer("first", 0, rules.seats - 1));
  const Hand hand = hand_from_json(json.at("hand"));
  Turns turns;
  turns.open = json.at("open").boolean("open");
  const JsonArray& list = json.at("turns").array("turns");
  refuse(list.size() > kMaxTurns, "too many turns");
  refuse(turns.open && list.empty(), "open claims without a discard");
  for (const Json& turn : list) turns.list[at(turns.count++)] = turn_from_json(rules, seat, turn);
  std::optional<Event> reveal;
  if (const Json* text = json.known("reveal")) {
    reveal = Event::parse(rules, text->text("reveal"));
    refuse(reveal->kind != Event::Kind::reveal, "not a reveal");
  }
  return rebuild(rules, seat, true, first, hand, turns, reveal, true);
}

std::optional<Record> Claims::View::record() const {
  if (!reveal_) return std::nullopt;
  JsonArray hands;
  for (const Hand& hand : reveal_->hands) hands.push_back(hand_json(hand));
  Record record{JsonObject{{"first", first_}, {"hands", hands}}, {}};
  for (std::size_t t = 0; t < reveal_->answers.size(); ++t) {
    record.actions.emplace_back(turns_.list[t].discarder, turns_.list[t].number);
    for (const auto& [seat, answer] : reveal_->answers[t]) record.actions.emplace_back(seat, answer);
  }
  return record;
}

}  // namespace bothost
