// The words of a line of text.
#pragma once
#include <string_view>
#include <vector>

#include "core/types.h"

namespace bothost {

/// A seat by its number, of so many. Throws InvalidInput.
inline Seat parse_seat(std::string_view word, int seats) {
  if (word.size() != 1 || word[0] < '0' || word[0] >= '0' + seats) reject(word, "is not a seat");
  return static_cast<Seat>(word[0] - '0');
}

/// The parts of the text between separators, one at least; they may be empty.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t from = 0;;) {
    const std::size_t to = text.find(separator, from);
    out.push_back(text.substr(from, to - from));
    if (to == std::string_view::npos) return out;
    from = to + 1;
  }
}

}  // namespace bothost
