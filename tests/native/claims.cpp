#include "claims.h"

#include <algorithm>

#include "core/words.h"

namespace bothost {

namespace claims {

int digit(std::string_view word, int most, const char* what) {
  if (word.size() != 1 || word[0] < '0' || word[0] > '0' + most)
    throw InvalidInput(std::string(what) + " must be 0 .. " + std::to_string(most) + ", not \"" +
                       std::string(word) + "\"");
  return word[0] - '0';
}

std::string hand_text(const Hand& hand) {
  std::string out;
  for (int n = 0; n < Claims::kNumbers; ++n) out.append(at(hand[at(n)]), static_cast<char>('0' + n));
  return out;
}

Hand parse_hand(std::string_view text) {
  if (text.size() > Claims::kMaxHand) throw InvalidInput("a hand has at most 5 cards");
  Hand hand{};
  for (std::size_t i = 0; i < text.size(); ++i)
    ++hand[at(digit(text.substr(i, 1), Claims::kNumbers - 1, "card"))];
  return hand;
}

const char* answer_word(Action answer) {
  return answer == Claims::kPass ? "pass" : answer == Claims::kMatch ? "match" : "pair";
}

std::int8_t parse_answer(std::string_view word) {
  for (const Action a : {Claims::kPass, Claims::kMatch, Claims::kPair})
    if (word == answer_word(a)) return static_cast<std::int8_t>(a);
  throw InvalidInput("an answer is pass, match or pair, not \"" + std::string(word) + "\"");
}

Json hand_json(const Hand& hand) {
  JsonArray out;
  for (int n = 0; n < Claims::kNumbers; ++n)
    for (int i = 0; i < hand[at(n)]; ++i) out.emplace_back(n);
  return out;
}

Hand hand_from_json(const Json& json) {
  refuse(json.array("hand").size() > Claims::kMaxHand, "a hand has at most 5 cards");
  Hand hand{};
  for (const Json& card : json.array("hand")) ++hand[at(card.integer("card", 0, Claims::kNumbers - 1))];
  return hand;
}

void list_answers(int copies, ActionList& out) {
  out.push_back(Claims::kPass);
  out.push_back(Claims::kMatch);
  if (copies >= 2) out.push_back(Claims::kPair);
}

}  // namespace claims

using namespace claims;

// Rules

Claims::Rules Claims::Rules::from_json(const Json& options) {
  Rules rules;
  if (const Json* preset = options.find("preset"); preset && preset->one_of("preset", kPresets) == 1)
    rules = {.seats = 4, .hand = 5};
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
    case Kind::deal: return "deal " + who + " " + hand_text(hands.at(0)) + " " + std::to_string(value);
    case Kind::discard: return "discard " + who + " " + std::to_string(value);
    case Kind::answer: return "answer " + who + " " + answer_word(value);
    case Kind::take: return "take " + who + " " + answer_word(value);
    case Kind::none: return "none -";
    case Kind::reveal: break;
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
  const auto seat = [&] { return parse_seat(words[1], rules.seats); };
  if (words[0] == "deal") {
    expect(4);
    return {Kind::deal, seat(), parse_seat(words[3], rules.seats), {parse_hand(words[2])}, {}};
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
      answers.emplace_back(parse_seat(parts[0], rules.seats), parse_answer(parts[1]));
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
  const auto rank = [&](Seat s) { return turn.answers[at(s)]; };
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
    for (int i = 0; i < rules.hand; ++i) ++dealt[at(s)][at(deck[next++])];
  *this = State(rules, dealt, static_cast<Seat>(rng.below(static_cast<std::uint32_t>(rules.seats))));
}

Claims::State::State(const Rules& rules, const BySeat<Hand>& dealt, Seat first)
    : rules_(&rules), dealt_(dealt), hands_(dealt), first_(first), active_(first) {
  Hand all{};
  for (int s = 0; s < rules.seats; ++s) {
    const Hand& hand = dealt[at(s)];
    check_hand(hand, rules.hand);
    for (std::size_t n = 0; n < kNumbers; ++n) all[n] = static_cast<std::int8_t>(all[n] + hand[n]);
    seq_[at(s)] = 1;
  }
  for (const auto copies : all) refuse(copies > kCopies, "there are four cards of each number");
}

Claims::State Claims::State::from_deal(const Rules& rules, const Json& deal) {
  deal.only("deal", {"first", "hands"});
  const auto first = static_cast<Seat>(deal.at("first").integer("first", 0, rules.seats - 1));
  const JsonArray& hands = deal.at("hands").array("hands", at(rules.seats));
  BySeat<Hand> dealt{};
  for (std::size_t s = 0; s < hands.size(); ++s) dealt[s] = hand_from_json(hands[s]);
  return State(rules, dealt, first);
}

Json Claims::State::deal() const {
  JsonArray hands;
  for (int s = 0; s < rules_->seats; ++s) hands.push_back(hand_json(dealt_[at(s)]));
  return JsonObject{{"first", first_}, {"hands", hands}};
}

SeatMask Claims::State::to_act() const {
  if (ended_) return 0;
  if (!turns_.open) return SeatMask{1} << active_;
  SeatMask mask = 0;
  for (int s = 0; s < rules_->seats; ++s)
    if (turn().answers[at(s)] == kUnanswered) mask |= SeatMask{1} << s;
  return mask;
}

bool Claims::State::pending() const { return turns_.open && to_act() != 0; }

void Claims::State::legal(Seat seat, ActionList& out) const {
  if (!(to_act() >> seat & 1)) return;
  const Hand& hand = hands_[at(seat)];
  if (turns_.open) return list_answers(hand[at(turn().number)], out);
  for (Action n = 0; n < kNumbers; ++n)
    if (hand[at(n)] > 0) out.push_back(n);
}

void Claims::State::resolve() {
  Turn& done = turn();
  for (Seat s = 0; s < rules_->seats; ++s)
    if (done.answers[at(s)] > kPass && (done.taker == kNobody || better(done, s, done.taker, rules_->seats)))
      done.taker = s;
  turns_.open = false;
  active_ = static_cast<Seat>((done.discarder + 1) % rules_->seats);
  if (done.taker != kNobody) {
    const auto winner = at(done.taker);
    done.with = done.answers[winner];
    const int cards = done.with == kPair ? 2 : 1;
    const int points = done.with == kPair ? 3 : 1;
    auto& copies = hands_[winner][at(done.number)];
    copies = static_cast<std::int8_t>(copies - cards);
    score_[winner] = static_cast<std::int16_t>(score_[winner] + points);
    auto& payer = score_[at(done.discarder)];
    payer = static_cast<std::int16_t>(payer - points);
    active_ = done.taker;
  }
  for (int s = 0; s < rules_->seats; ++s) ended_ |= total(hands_[at(s)]) == 0;
}

Claims::Event Claims::State::reveal() const {
  Event event{Event::Kind::reveal, kNobody, 0, {}, {}};
  event.hands.assign(dealt_.begin(), dealt_.begin() + rules_->seats);
  for (std::size_t t = 0; t < at(turns_.count); ++t) {
    auto& answers = event.answers.emplace_back();
    for (std::size_t i = 0; i < at(num_answers_[t]); ++i)
      answers.emplace_back(order_[t][i], turns_.list[t].answers[at(order_[t][i])]);
  }
  return event;
}

void Claims::State::returns(double* out) const {
  for (int s = 0; s < rules_->seats; ++s) out[s] = score_[at(s)];
}

Claims::View Claims::State::view(Seat seat) const {
  View v(*rules_, seat);
  const auto own = at(seat);
  v.seq_ = seq_[own];
  v.dealt_ = true;
  v.ended_ = ended_;
  v.first_ = first_;
  v.active_ = active_;
  v.start_ = dealt_[own];
  v.hand_ = hands_[own];
  v.turns_ = turns_;
  for (std::size_t t = 0; t < at(turns_.count); ++t)
    for (std::size_t s = 0; s < kMaxSeats; ++s)
      if (s != own) v.turns_.list[t].answers[s] = kNone;
  if (ended_) v.reveal_ = reveal();
  return v;
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
  for (std::size_t i = 0; i < actions.size(); ++i) out[i * kNumActions + at(actions[i])] = 1;
}

void Claims::encode_oracle(const State& state, Seat seat, int, float* out) {
  for (std::size_t s = 0; s < kMaxSeats; ++s) {
    const Hand& hand = state.hands()[(s + at(seat)) % kMaxSeats];
    std::copy(hand.begin(), hand.end(), out + s * kNumbers);
  }
}

static_assert(Game<Claims>);

}  // namespace bothost
