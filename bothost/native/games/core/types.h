// Vocabulary shared by every game.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace bothost {

/// Index of an action in its game's fixed action space: 0 <= action < num_actions.
using Action = std::int32_t;
/// No action.
inline constexpr Action kNoAction = -1;
/// Index of a player at the table, from 0; kNobody if no single seat acts.
using Seat = std::int8_t;
inline constexpr Seat kNobody = -1;
/// Bit i is set when seat i is meant.
using SeatMask = std::uint32_t;

using ActionList = std::vector<Action>;

/// Invalid input from outside (an event, bytes, JSON, a rules option). Becomes ValueError in
/// Python.
struct InvalidInput : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// An action that the rules do not allow now. Becomes ValueError in Python.
struct IllegalAction : InvalidInput {
  using InvalidInput::InvalidInput;
};

/// Throws InvalidInput with this reason unless the condition holds.
inline void require(bool holds, const char* why) {
  if (!holds) throw InvalidInput(why);
}

/// The whole characters at the start of a UTF-8 text, in at most so many bytes, but at least one character.
/// In bytes that are no UTF-8, a byte may stand for a character.
inline std::string_view first_characters(std::string_view text, std::size_t most_bytes) {
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  std::size_t kept = 0;
  while (kept < text.size()) {
    std::size_t next = kept + 1;
    while (next < text.size() && next < kept + 4 && continues(next)) ++next;
    if (kept > 0 && next > most_bytes) break;
    kept = next;
  }
  return text.substr(0, kept);
}

/// Throws InvalidInput that quotes what was given, at most 60 bytes of it, and says what is wrong with it.
[[noreturn]] inline void reject(std::string_view given, std::string_view why) {
  throw InvalidInput("\"" + std::string(first_characters(given, 60)) + "\" " + std::string(why));
}

/// A number that is not negative, such as a seat's, or an enumerator, as an index.
template <class Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
constexpr std::size_t at(Number i) {
  return static_cast<std::size_t>(i);
}

}  // namespace bothost
