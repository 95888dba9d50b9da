#include "testing/claims.h"

#include <algorithm>
#include <numeric>

namespace bothost {

namespace {

using Event = Claims::Event;
using Hand = Claims::Hand;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0;;) {
    const auto end = text.find(at, begin);
    words.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return words;
    begin = end + 1;
  }
}

int digit(std::string_view word, int most, const char* what) {
  if (word.size() != 1 || word[0] < '0' || word[0] > '0' + most)
    throw InvalidInput(std::string(what) + " must be 0 .. " + std::to_string(most) + ", not \"" +
                       std::string(word) + "\"");
  return word[0] - '0';
}

std::string hand_text(const Hand& hand) {
  std::string out;
  for (int n = 0; n < Claims::kNumbers; ++n)
    out.append(static_cast<std::size_t>(hand[static_cast<std::size_t>(n)]), static_cast<char>('0' + n));
  return out;
}

Hand parse_hand(std::string_view text) {
  if (text.size() > Claims::kMaxHand) throw InvalidInput("a hand has at most 5 cards");
  Hand hand{};
  for (std::size_t i = 0; i < text.size(); ++i)
    ++hand[static_cast<std::size_t>(digit(text.substr(i, 1), Claims::kNumbers - 1, "card"))];
  return hand;
}

int total(const Hand& hand) { return std::accumulate(hand.begin(), hand.end(), 0); }

const char* answer_word(Action answer) {
  return answer == Claims::kPass ? "pass" : answer == Claims::kMatch ? "match" : "pair";
}

std::int8_t parse_answer(std::string_view word) {
  for (const Action a : {Claims::kPass, Claims::kMatch, Claims::kPair})
    if (word == answer_word(a)) return static_cast<std::int8_t>(a);
  throw InvalidInput("an answer is pass, match or pair, not \"" + std::string(word) + "\"");
}

void refuse(bool wrong, const char* why) {
  if (wrong) throw InvalidInput(why);
}

Json hand_json(const Hand& hand) {
  JsonArray out;
  for (int n = 0; n < Claims::kNumbers; ++n)
    for (int i = 0; i < hand[static_cast<std::size_t>(n)]; ++i) out.emplace_back(n);
  return out;
}

Hand hand_from_json(const Json& json) {
  refuse(json.array("hand").size() > Claims::kMaxHand, "a hand has at most 5 cards");
  Hand hand{};
  for (const Json& card : json.array("hand"))
    ++hand[static_cast<std::size_t>(card.integer("card", 0, Claims::kNumbers - 1))];
  return hand;
}

/// Legal answers to a discard by a seat that holds `copies` of it.
void list_answers(int copies, ActionList& out) {
  out.push_back(Claims::kPass);
  out.push_back(Claims::kMatch);
  if (copies >= 2) out.push_back(Claims::kPair);
}

}  // namespace

// Rules

const std::vector<std::string>& Claims::presets() {
  static const std::vector<std::string> names{"three", "four"};
  return names;
}

Claims::Rules Claims::Rules::from_json(const Json& options) {
  Rules rules;
  if (const Json* preset = options.find("preset")) {
    const auto& name = preset->text("preset");
    if (name == "four")
      rules = {.seats = 4, .hand = 5};
    else if (name != "three")
      throw InvalidInput("preset: claims has three and four, not \"" + name + "\"");
  }
  for (const auto& [key, value] : options.object("rules"))
    if (key == "seats")
      rules.seats = static_cast<int>(value.integer("seats", 3, kMaxSeats));
    else if (key == "hand")
      rules.hand = static_cast<int>(value.integer("hand", 1, kMaxHand));
    else if (key != "preset")
      throw InvalidInput("claims has no option \"" + key + "\"; it has: preset, seats, hand");
  return rules;
}

Json Claims::Rules::to_json() const { return JsonObject{{"seats", seats}, {"hand", hand}}; }

std::string Claims::notation(const Rules&, Action action) {
  return action < kPass ? std::to_string(action) : answer_word(action);
}

Action Claims::parse_action(const Rules&, std::string_view text) {
  if (text.size() == 1) return digit(text, kNumbers - 1, "a discard");
  return parse_answer(text);
}

// Events

std::string Claims::Event::text() const {
  const std::string who = seat == kNobody ? "-" : std::to_string(seat);
  switch (kind) {
    case Kind::deal:
      return "deal " + who + " " + hand_text(hands.at(0)) + " " + std::to_string(value);
    case Kind::discard:
      return "discard " + who + " " + std::to_string(value);
    case Kind::answer:
      return "answer " + who + " " + answer_word(value);
    case Kind::take:
      return "take " + who + " " + answer_word(value);
    case Kind::none:
      return "none -";
    case Kind::reveal:
      break;
  }
  std::string out = "reveal - ";
  for (std::size_t s = 0; s < hands.size(); ++s) out += (s ? "," : "") + hand_text(hands[s]);
  out += ' ';
  for (std::size_t t = 0; t < answers.size(); ++t) {
    if (t) out += '/';
    if (answers[t].empty()) out += '-';
    for (std::size_t i = 0; i < answers[t].size(); ++i)
      out += (i ? "+" : "") + std::to_string(answers[t][i].first) + ":" + answer_word(answers[t][i].second);
  }
  return out;
}

Claims::Event Claims::Event::parse(const Rules& rules, std::string_view text) {
  refuse(text.size() > 1000, "event is too long");
  const auto words = split(text, ' ');
  const auto expect = [&](std::size_t n) {
    refuse(words.size() != n, "event has too few or too many words");
  };
  const auto seat = [&] { return static_cast<Seat>(digit(words[1], rules.seats - 1, "seat")); };
  if (words[0] == "deal") {
    expect(4);
    return {Kind::deal,
            seat(),
            static_cast<std::int8_t>(digit(words[3], rules.seats - 1, "first seat")),
            {parse_hand(words[2])},
            {}};
  }
  if (words[0] == "discard") {
    expect(3);
    return {Kind::discard, seat(), static_cast<std::int8_t>(digit(words[2], kNumbers - 1, "card")), {}, {}};
  }
  if (words[0] == "answer" || words[0] == "take") {
    expect(3);
    const auto kind = words[0] == "take" ? Kind::take : Kind::answer;
    return {kind, seat(), parse_answer(words[2]), {}, {}};
  }
  if (words[0] == "none") {
    expect(2);
    refuse(words[1] != "-", "none is by nobody");
    return {Kind::none, kNobody, 0, {}, {}};
  }
  if (words[0] != "reveal") throw InvalidInput("no such event: \"" + std::string(words[0]) + "\"");
  expect(4);
  refuse(words[1] != "-", "reveal is by nobody");
  Event event{Kind::reveal, kNobody, 0, {}, {}};
  for (const auto hand : split(words[2], ',')) event.hands.push_back(parse_hand(hand));
  for (const auto turn : split(words[3], '/')) {
    auto& answers = event.answers.emplace_back();
    if (turn == "-") continue;
    for (const auto answer : split(turn, '+')) {
      const auto parts = split(answer, ':');
      refuse(parts.size() != 2, "an answer in a reveal is seat:answer");
      answers.emplace_back(static_cast<Seat>(digit(parts[0], rules.seats - 1, "seat")),
                           parse_answer(parts[1]));
    }
  }
  return event;
}

// State

void Claims::check_hand(const Hand& hand, int size) {
  refuse(total(hand) != size, "a hand has the wrong number of cards");
  for (const auto copies : hand)
    refuse(copies < 0 || copies > kCopies, "there are four cards of each number");
}

bool Claims::better(const Turn& turn, Seat a, Seat b, int seats) {
  const auto rank = [&](Seat s) { return turn.answers[static_cast<std::size_t>(s)]; };
  const auto distance = [&](Seat s) { return (s - turn.discarder + seats) % seats; };
  return rank(a) != rank(b) ? rank(a) > rank(b) : distance(a) < distance(b);
}

Claims::State::State(const Rules& rules, Rng& rng) : rules_(&rules) {
  std::array<std::int8_t, kNumbers * kCopies> deck{};
  for (std::size_t i = 0; i < deck.size(); ++i) deck[i] = static_cast<std::int8_t>(i / kCopies);
  rng.shuffle(deck.begin(), deck.end());
  BySeat<Hand> dealt{};
  std::size_t next = 0;
  for (int s = 0; s < rules.seats; ++s)
    for (int i = 0; i < rules.hand; ++i)
      ++dealt[static_cast<std::size_t>(s)][static_cast<std::size_t>(deck[next++])];
  *this = State(rules, dealt, static_cast<Seat>(rng.below(static_cast<std::uint32_t>(rules.seats))));
}

Claims::State::State(const Rules& rules, const BySeat<Hand>& dealt, Seat first)
    : rules_(&rules), dealt_(dealt), hands_(dealt), first_(first), active_(first) {
  Hand all{};
  for (int s = 0; s < rules.seats; ++s) {
    const Hand& hand = dealt[static_cast<std::size_t>(s)];
    check_hand(hand, rules.hand);
    for (std::size_t n = 0; n < kNumbers; ++n) all[n] = static_cast<std::int8_t>(all[n] + hand[n]);
    seq_[static_cast<std::size_t>(s)] = 1;
  }
  for (const auto copies : all) refuse(copies > kCopies, "there are four cards of each number");
}

Claims::State Claims::State::from_deal(const Rules& rules, const Json& deal) {
  for (const auto& [key, value] : deal.object("deal"))
    if (key != "first" && key != "hands") throw InvalidInput("deal: no such key \"" + key + "\"");
  const auto first = static_cast<Seat>(deal.at("first").integer("first", 0, rules.seats - 1));
  const JsonArray& hands = deal.at("hands").array("hands");
  refuse(hands.size() != static_cast<std::size_t>(rules.seats), "deal: one hand for each seat");
  BySeat<Hand> dealt{};
  for (std::size_t s = 0; s < hands.size(); ++s) dealt[s] = hand_from_json(hands[s]);
  return State(rules, dealt, first);
}

Json Claims::State::deal() const {
  JsonArray hands;
  for (int s = 0; s < rules_->seats; ++s) hands.push_back(hand_json(dealt_[static_cast<std::size_t>(s)]));
  return JsonObject{{"first", static_cast<int>(first_)}, {"hands", hands}};
}

SeatMask Claims::State::to_act() const {
  if (ended_) return 0;
  if (!turns_.open) return SeatMask{1} << active_;
  SeatMask mask = 0;
  for (int s = 0; s < rules_->seats; ++s)
    if (turn().answers[static_cast<std::size_t>(s)] == kUnanswered) mask |= SeatMask{1} << s;
  return mask;
}

bool Claims::State::pending() const { return turns_.open && to_act() != 0; }

void Claims::State::legal(Seat seat, ActionList& out) const {
  if (!(to_act() >> seat & 1)) return;
  const Hand& hand = hands_[static_cast<std::size_t>(seat)];
  if (turns_.open) return list_answers(hand[static_cast<std::size_t>(turn().number)], out);
  for (Action n = 0; n < kNumbers; ++n)
    if (hand[static_cast<std::size_t>(n)] > 0) out.push_back(n);
}

void Claims::State::check(Seat seat, Action action) const {
  ActionList actions;
  legal(seat, actions);
  if (std::find(actions.begin(), actions.end(), action) == actions.end())
    throw IllegalAction("seat " + std::to_string(seat) + " may not " + notation(*rules_, action) + " now");
}

void Claims::State::resolve() {
  Turn& done = turn();
  for (Seat s = 0; s < rules_->seats; ++s)
    if (done.answers[static_cast<std::size_t>(s)] > kPass &&
        (done.taker == kNobody || better(done, s, done.taker, rules_->seats)))
      done.taker = s;
  turns_.open = false;
  active_ = static_cast<Seat>((done.discarder + 1) % rules_->seats);
  if (done.taker != kNobody) {
    const auto winner = static_cast<std::size_t>(done.taker);
    done.with = done.answers[winner];
    const int cards = done.with == kPair ? 2 : 1;
    const int points = done.with == kPair ? 3 : 1;
    auto& copies = hands_[winner][static_cast<std::size_t>(done.number)];
    copies = static_cast<std::int8_t>(copies - cards);
    score_[winner] = static_cast<std::int16_t>(score_[winner] + points);
    auto& payer = score_[static_cast<std::size_t>(done.discarder)];
    payer = static_cast<std::int16_t>(payer - points);
    active_ = done.taker;
  }
  for (int s = 0; s < rules_->seats; ++s) ended_ |= total(hands_[static_cast<std::size_t>(s)]) == 0;
}

Claims::Event Claims::State::reveal() const {
  Event event{Event::Kind::reveal, kNobody, 0, {}, {}};
  event.hands.assign(dealt_.begin(), dealt_.begin() + rules_->seats);
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t) {
    auto& answers = event.answers.emplace_back();
    for (std::size_t i = 0; i < static_cast<std::size_t>(num_answers_[t]); ++i)
      answers.emplace_back(order_[t][i], turns_.list[t].answers[static_cast<std::size_t>(order_[t][i])]);
  }
  return event;
}

void Claims::State::returns(double* out) const {
  for (int s = 0; s < rules_->seats; ++s) out[s] = score_[static_cast<std::size_t>(s)];
}

Claims::View Claims::State::view(Seat seat) const {
  View v(*rules_, seat);
  const auto own = static_cast<std::size_t>(seat);
  v.seq_ = seq_[own];
  v.dealt_ = true;
  v.ended_ = ended_;
  v.first_ = first_;
  v.active_ = active_;
  v.start_ = dealt_[own];
  v.hand_ = hands_[own];
  v.turns_ = turns_;
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t)
    for (std::size_t s = 0; s < kMaxSeats; ++s)
      if (s != own) v.turns_.list[t].answers[s] = kNone;
  if (ended_) v.reveal_ = reveal();
  return v;
}

// View

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
  if (turns_.open) return list_answers(hand_[static_cast<std::size_t>(turn().number)], out);
  for (Action n = 0; n < kNumbers; ++n)
    if (hand_[static_cast<std::size_t>(n)] > 0) out.push_back(n);
}

Claims::BySeat<int> Claims::View::sizes() const {
  BySeat<int> out{};
  for (int s = 0; s < rules_->seats; ++s) out[static_cast<std::size_t>(s)] = rules_->hand;
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    --out[static_cast<std::size_t>(turn.discarder)];
    if (turn.taker != kNobody) out[static_cast<std::size_t>(turn.taker)] -= turn.with == kPair ? 2 : 1;
  }
  return out;
}

Claims::Hand Claims::View::laid_down() const {
  Hand out{};
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    const int cards = 1 + (turn.taker == kNobody ? 0 : turn.with == kPair ? 2 : 1);
    auto& copies = out[static_cast<std::size_t>(turn.number)];
    copies = static_cast<std::int8_t>(copies + cards);
  }
  return out;
}

void Claims::View::observe(const Event& event) {
  refuse(dealt_ == (event.kind == Event::Kind::deal), "the deal is the first event, and only that");
  switch (event.kind) {
    case Event::Kind::deal:
      on_deal(event);
      break;
    case Event::Kind::discard:
      on_discard(event);
      break;
    case Event::Kind::answer:
      on_answer(event);
      break;
    case Event::Kind::take:
    case Event::Kind::none:
      on_outcome(event);
      break;
    case Event::Kind::reveal:
      on_reveal(event);
      break;
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
  const auto number = static_cast<std::size_t>(event.value);
  if (seat_ == event.seat)
    refuse(hand_[number] == 0, "a discard of a card that we do not hold");
  else
    refuse(laid_down()[number] + hand_[number] >= kCopies, "a discard of a fifth copy");
  if (seat_ == event.seat) --hand_[number];
  turns_.open = true;
  turns_.list[static_cast<std::size_t>(turns_.count++)] =
      Turn{.discarder = event.seat, .number = event.value};
  if (seat_ != event.seat && hand_[number] > 0) own_answer() = kUnanswered;
}

void Claims::View::on_answer(const Event& event) {
  refuse(event.seat != seat_, "the answer of another seat");
  refuse(!turns_.open || own_answer() != kUnanswered, "no answer is due");
  refuse(event.value == kPair && hand_[static_cast<std::size_t>(turn().number)] < 2,
         "a pair that we do not hold");
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
    refuse(sizes()[static_cast<std::size_t>(taker)] < cards, "more cards than that seat has");
    if (taker == seat_) {
      refuse(own_answer() != event.value, "we claimed otherwise");
    } else {
      const auto number = static_cast<std::size_t>(turn().number);
      refuse(laid_down()[number] + hand_[number] + cards > kCopies, "more than four copies");
      Turn would = turn();
      would.answers[static_cast<std::size_t>(taker)] = event.value;
      refuse(claimed && better(would, seat_, taker, rules_->seats), "our better claim was passed over");
    }
  }
  Turn& done = turn();
  done.taker = taker;
  done.with = taker == kNobody ? std::int8_t{kNone} : event.value;
  if (taker == seat_) {
    auto& copies = hand_[static_cast<std::size_t>(done.number)];
    copies = static_cast<std::int8_t>(copies - (event.value == kPair ? 2 : 1));
  }
  turns_.open = false;
  active_ = taker == kNobody ? static_cast<Seat>((done.discarder + 1) % rules_->seats) : taker;
  const auto left = sizes();
  for (int s = 0; s < rules_->seats; ++s) ended_ |= left[static_cast<std::size_t>(s)] == 0;
}

Claims::State Claims::View::revealed(const Event& event) const {
  BySeat<Hand> dealt{};
  std::copy(event.hands.begin(), event.hands.end(), dealt.begin());
  State state(*rules_, dealt, first_);
  for (std::size_t t = 0; t < event.answers.size(); ++t) {
    state.apply(turns_.list[t].discarder, turns_.list[t].number, NoEvents{});
    for (const auto& [seat, answer] : event.answers[t]) state.apply(seat, answer, NoEvents{});
  }
  return state;
}

void Claims::View::on_reveal(const Event& event) {
  refuse(!ended_ || reveal_, "no reveal is due");
  const auto seats = static_cast<std::size_t>(rules_->seats);
  refuse(event.hands.size() != seats || event.answers.size() != static_cast<std::size_t>(turns_.count),
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
  const auto own = static_cast<std::size_t>(seat_);
  const auto left = sizes();
  // What others laid down they were dealt; what nobody has seen may be anywhere.
  BySeat<Hand> known{};
  Hand unseen;
  unseen.fill(kCopies);
  const auto reveal_card = [&](Seat seat, std::int8_t number, int cards) {
    auto& copies = known[static_cast<std::size_t>(seat)][static_cast<std::size_t>(number)];
    copies = static_cast<std::int8_t>(copies + cards);
  };
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    reveal_card(turn.discarder, turn.number, 1);
    if (turn.taker != kNobody) reveal_card(turn.taker, turn.number, turn.with == kPair ? 2 : 1);
  }
  known[own] = start_;
  for (const Hand& hand : known)
    for (std::size_t n = 0; n < kNumbers; ++n) unseen[n] = static_cast<std::int8_t>(unseen[n] - hand[n]);
  std::vector<std::int8_t> cards;
  for (std::size_t n = 0; n < kNumbers; ++n)
    cards.insert(cards.end(), static_cast<std::size_t>(unseen[n]), static_cast<std::int8_t>(n));

  // While claims are open and we owe no answer, somebody else does: such deals alone are possible.
  const bool others_owe = turns_.open && own_answer() != kUnanswered;
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    rng.shuffle(cards.begin(), cards.end());
    BySeat<Hand> dealt = known;
    std::size_t next = 0;
    bool owed = false;
    for (std::size_t s = 0; s < static_cast<std::size_t>(rules_->seats); ++s) {
      if (s == own) continue;
      for (int i = 0; i < left[s]; ++i, ++next) {
        owed |= turns_.open && turn().discarder != static_cast<Seat>(s) && cards[next] == turn().number;
        ++dealt[s][static_cast<std::size_t>(cards[next])];
      }
    }
    if (others_owe && !owed) continue;
    State state(*rules_, dealt, first_);
    for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t) {
      const Turn& turn = turns_.list[t];
      const bool open = turns_.open && t + 1 == static_cast<std::size_t>(turns_.count);
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

Claims::View Claims::View::rebuild(const Rules& rules, Seat seat, bool dealt, Seat first, const Hand& hand,
                                   const Turns& turns, const std::optional<Event>& reveal, bool lenient) {
  View view(rules, seat);
  if (!dealt) {
    refuse(turns.count > 0 || reveal.has_value(), "turns before the deal");
    return view;
  }
  view.observe({Event::Kind::deal, seat, first, {hand}, {}});
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns.count); ++t) {
    const Turn& turn = turns.list[t];
    const bool open = turns.open && t + 1 == static_cast<std::size_t>(turns.count);
    view.observe({Event::Kind::discard, view.active_, turn.number, {}, {}});
    auto answer = turn.answers[static_cast<std::size_t>(seat)];
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
  out.u8(static_cast<std::uint8_t>(seat_));
  out.u8(dealt_);
  if (!dealt_) return;
  out.u8(static_cast<std::uint8_t>(first_));
  out.text(hand_text(start_));
  out.u8(static_cast<std::uint8_t>(turns_.count));
  out.u8(turns_.open);
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    out.u8(static_cast<std::uint8_t>(turn.number));
    out.u8(static_cast<std::uint8_t>(turn.answers[static_cast<std::size_t>(seat_)] + 2));
    out.u8(static_cast<std::uint8_t>(turn.taker + 1));
    out.u8(static_cast<std::uint8_t>(turn.with + 1));
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
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns.count); ++t) {
    const bool open = turns.open && t + 1 == static_cast<std::size_t>(turns.count);
    Turn& turn = turns.list[t];
    turn.number = within(0, kNumbers - 1);
    const int answer = within(0, kPair + 2) - 2;
    refuse(answer >= 0 && answer < kPass, "no such answer");
    refuse(answer == kUnanswered && !open, "a past answer is missing");
    turn.answers[static_cast<std::size_t>(seat)] = static_cast<std::int8_t>(answer);
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
    auto& answer =
        folded.list[static_cast<std::size_t>(turns.count - 1)].answers[static_cast<std::size_t>(seat)];
    owed = answer == kUnanswered;
    if (owed) answer = kNone;
  }
  View view = rebuild(rules, seat, true, first, hand, folded, reveal, false);
  refuse(turns.open && (view.own_answer() == kUnanswered) != owed, "the open answer does not fit the hand");
  return view;
}

Json Claims::View::to_json() const {
  JsonArray turns;
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns_.count); ++t) {
    const Turn& turn = turns_.list[t];
    const auto answer = turn.answers[static_cast<std::size_t>(seat_)];
    turns.push_back(JsonObject{{"discarder", static_cast<int>(turn.discarder)},
                               {"number", static_cast<int>(turn.number)},
                               {"answer", answer >= 0 ? Json(answer_word(answer)) : Json()},
                               {"taker", turn.taker == kNobody ? Json() : Json(static_cast<int>(turn.taker))},
                               {"with", turn.taker == kNobody ? Json() : Json(answer_word(turn.with))}});
  }
  return JsonObject{{"seat", static_cast<int>(seat_)},
                    {"first", dealt_ ? Json(static_cast<int>(first_)) : Json()},
                    {"hand", dealt_ ? hand_json(start_) : Json()},
                    {"turns", turns},
                    {"open", turns_.open},
                    {"reveal", reveal_ ? Json(reveal_->text()) : Json()}};
}

namespace {

/// Member of an object; null where it is absent.
const Json& member(const Json& json, std::string_view key) {
  static const Json null;
  const Json* found = json.find(key);
  return found ? *found : null;
}

Claims::Turn turn_from_json(const Claims::Rules& rules, Seat seat, const Json& json) {
  Claims::Turn turn;
  turn.number = static_cast<std::int8_t>(json.at("number").integer("number", 0, Claims::kNumbers - 1));
  if (const Json& answer = member(json, "answer"); !answer.is_null())
    turn.answers[static_cast<std::size_t>(seat)] = parse_answer(answer.text("answer"));
  if (const Json& taker = member(json, "taker"); !taker.is_null()) {
    turn.taker = static_cast<Seat>(taker.integer("taker", 0, rules.seats - 1));
    turn.with = parse_answer(json.at("with").text("with"));
    refuse(turn.with == Claims::kPass, "a pass takes nothing");
  }
  return turn;
}

}  // namespace

Claims::View Claims::View::from_snapshot(const Rules& rules, const Json& json) {
  const auto seat = static_cast<Seat>(json.at("seat").integer("seat", 0, rules.seats - 1));
  if (member(json, "hand").is_null()) return View(rules, seat);
  const auto first = static_cast<Seat>(json.at("first").integer("first", 0, rules.seats - 1));
  const Hand hand = hand_from_json(json.at("hand"));
  Turns turns;
  turns.open = json.at("open").boolean("open");
  const JsonArray& list = json.at("turns").array("turns");
  refuse(list.size() > kMaxTurns, "too many turns");
  refuse(turns.open && list.empty(), "open claims without a discard");
  for (const Json& turn : list)
    turns.list[static_cast<std::size_t>(turns.count++)] = turn_from_json(rules, seat, turn);
  std::optional<Event> reveal;
  if (const Json& text = member(json, "reveal"); !text.is_null()) {
    reveal = Event::parse(rules, text.text("reveal"));
    refuse(reveal->kind != Event::Kind::reveal, "not a reveal");
  }
  return rebuild(rules, seat, true, first, hand, turns, reveal, true);
}

Claims::View Claims::View::from_json(const Rules& rules, const Json& json) {
  View view = from_snapshot(rules, json);
  refuse(!(view.to_json() == json), "this is not a view as to_json gives it");
  return view;
}

std::optional<Record> Claims::View::record() const {
  if (!reveal_) return std::nullopt;
  JsonArray hands;
  for (const Hand& hand : reveal_->hands) hands.push_back(hand_json(hand));
  Record record{JsonObject{{"first", static_cast<int>(first_)}, {"hands", hands}}, {}};
  for (std::size_t t = 0; t < reveal_->answers.size(); ++t) {
    record.actions.emplace_back(turns_.list[t].discarder, turns_.list[t].number);
    for (const auto& [seat, answer] : reveal_->answers[t]) record.actions.emplace_back(seat, answer);
  }
  return record;
}

// Encoders

const std::vector<Block>& Claims::blocks() {
  static const std::vector<Block> list{
      {"hand", {kNumbers}, 1, Block::Of::view, "Copies held of each number."},
      {"kind", {kNumActions}, 1, Block::Of::action, "The action, one-hot."},
      {"hands", {kMaxSeats, kNumbers}, 1, Block::Of::oracle, "Copies held by each seat, the own seat first."},
  };
  return list;
}

void Claims::encode(const View& view, int, float* out) {
  std::copy(view.hand().begin(), view.hand().end(), out);
}

void Claims::encode_actions(const View&, int, std::span<const Action> actions, float* out) {
  std::fill_n(out, actions.size() * kNumActions, 0.0F);
  for (std::size_t i = 0; i < actions.size(); ++i)
    out[i * kNumActions + static_cast<std::size_t>(actions[i])] = 1;
}

void Claims::encode_oracle(const State& state, Seat seat, int, float* out) {
  for (std::size_t s = 0; s < kMaxSeats; ++s) {
    const Hand& hand = state.hands()[(s + static_cast<std::size_t>(seat)) % kMaxSeats];
    std::copy(hand.begin(), hand.end(), out + s * kNumbers);
  }
}

static_assert(Game<Claims>);

}  // namespace bothost
