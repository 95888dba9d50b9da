#include "claims_parts.h"
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

}  // namespace claims

using namespace claims;

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

}  // namespace bothost
