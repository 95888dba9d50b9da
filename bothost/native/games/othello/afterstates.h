// What a player sees on the board that a move leads to: features of a move rather than of the position. For
// clones.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "othello/board.h"

namespace bothost::othello {

/// Most replies that are distinguished.
inline constexpr int kMostReplies = 24;

/// The board that features of the block `squares` tell.
constexpr Board board_of(std::span<const std::int32_t> features) {
  Board board{};
  for (const auto feature : features) {
    const Squares square = Squares{1} << (feature / 3);
    if (feature % 3 == 0) board.own |= square;
    if (feature % 3 == 1) board.enemy |= square;
  }
  return board;
}

/// Appends the features, ascending, of a disc on a square, or of a pass (64): for each square own, enemy,
/// empty, as the mover sees it; then the number of the other side's replies, 0 .. 24.
inline void mark_afterstate(const Board& board, int square, std::vector<std::int32_t>& out) {
  const Board after = square < 64 ? placed(board, square) : passed(board);
  for (int i = 0; i < 64; ++i) {
    const int what = after.enemy >> i & 1 ? 0 : after.own >> i & 1 ? 1 : 2;
    out.push_back(3 * i + what);
  }
  out.push_back(3 * 64 + std::min(std::popcount(moves(after)), kMostReplies));
}

}  // namespace bothost::othello
