// What the sources of claims share: how cards and answers are written, and a refusal in words.
#pragma once
#include <numeric>
#include <string>
#include <string_view>

#include "claims.h"

namespace bothost::claims {

using Event = Claims::Event;
using Hand = Claims::Hand;

inline void refuse(bool wrong, const char* why) {
  if (wrong) throw InvalidInput(why);
}

inline int total(const Hand& hand) { return std::accumulate(hand.begin(), hand.end(), 0); }

/// One digit, at most `most`. Throws InvalidInput.
int digit(std::string_view word, int most, const char* what);

/// The numbers held, ascending. The parser takes them in any order.
std::string hand_text(const Hand& hand);
Hand parse_hand(std::string_view text);
Json hand_json(const Hand& hand);
Hand hand_from_json(const Json& json);

const char* answer_word(Action answer);
std::int8_t parse_answer(std::string_view word);

/// Legal answers to a discard by a seat that holds `copies` of it.
void list_answers(int copies, ActionList& out);

}  // namespace bothost::claims
