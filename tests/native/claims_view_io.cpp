#include "claims_parts.h"

namespace bothost {

using namespace claims;

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
