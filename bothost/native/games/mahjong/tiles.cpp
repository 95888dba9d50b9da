#include "mahjong/tiles.h"

#include "core/types.h"

namespace bothost::mahjong {
namespace {

constexpr std::string_view kLetters = "WTBFJH";
constexpr int kFirstOf[] = {0, 9, 18, 27, 31, 34};
constexpr int kRanks[] = {9, 9, 9, 4, 3, 8};

}  // namespace

std::string tile_name(int t) {
  for (int i = 0; i < 6; ++i)
    if (t >= kFirstOf[i] && t < kFirstOf[i] + kRanks[i])
      return {kLetters[at(i)], static_cast<char>('1' + t - kFirstOf[i])};
  return "?";
}

Tile parse_tile(std::string_view word, bool flowers) {
  if (word.size() == 2) {
    const auto i = kLetters.find(word[0]);
    const int rank = word[1] - '1';
    if (i != std::string_view::npos && rank >= 0 && rank < kRanks[i] && (flowers || i < 5))
      return static_cast<Tile>(kFirstOf[i] + rank);
  }
  reject(word, "is no tile");
}

}  // namespace bothost::mahjong
