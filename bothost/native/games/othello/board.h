// Othello on bitboards: bit 8 * y + x is the square in column x (a .. h) and row y (1 .. 8), a1 the lowest.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace bothost::othello {

using Squares = std::uint64_t;

/// Discs of the side to move and of the other one.
struct Board {
  Squares own;
  Squares enemy;
  bool operator==(const Board&) const = default;
};

/// Black is to move: black d5 e4, white d4 e5.
inline constexpr Board kStart{0x0000000810000000ULL, 0x0000001008000000ULL};

namespace detail {

inline constexpr Squares kInner = 0x7e7e7e7e7e7e7e7eULL;  // columns b .. g: no line runs over the edge

template <int shift>
constexpr Squares toward(Squares s) {
  if constexpr (shift > 0)
    return s << shift;
  else
    return s >> -shift;
}

/// Enemy discs in an unbroken line from `from` in one direction; at most six fit between two others.
template <int shift>
constexpr Squares line(Squares from, Squares enemy) {
  Squares run = toward<shift>(from) & enemy;
  run |= toward<shift>(run) & enemy;
  const Squares pairs = enemy & toward<shift>(enemy);
  run |= toward<2 * shift>(run) & pairs;
  run |= toward<2 * shift>(run) & pairs;
  return run;
}

template <int shift>
constexpr Squares bracketed(Squares from, Squares own, Squares enemy) {
  const Squares run = line<shift>(from, enemy);
  return toward<shift>(run) & own ? run : 0;
}

}  // namespace detail

/// Squares where the side to move may place a disc.
constexpr Squares moves(const Board& b) {
  using detail::line, detail::toward;
  const Squares sideways = b.enemy & detail::kInner;
  const Squares reached = toward<1>(line<1>(b.own, sideways)) | toward<-1>(line<-1>(b.own, sideways)) |
                          toward<8>(line<8>(b.own, b.enemy)) | toward<-8>(line<-8>(b.own, b.enemy)) |
                          toward<7>(line<7>(b.own, sideways)) | toward<-7>(line<-7>(b.own, sideways)) |
                          toward<9>(line<9>(b.own, sideways)) | toward<-9>(line<-9>(b.own, sideways));
  return reached & ~(b.own | b.enemy);
}

/// Enemy discs that a disc on `square` turns over.
constexpr Squares flips(const Board& b, int square) {
  using detail::bracketed;
  const Squares from = Squares{1} << square;
  const Squares sideways = b.enemy & detail::kInner;
  return bracketed<1>(from, b.own, sideways) | bracketed<-1>(from, b.own, sideways) |
         bracketed<8>(from, b.own, b.enemy) | bracketed<-8>(from, b.own, b.enemy) |
         bracketed<7>(from, b.own, sideways) | bracketed<-7>(from, b.own, sideways) |
         bracketed<9>(from, b.own, sideways) | bracketed<-9>(from, b.own, sideways);
}

/// The board after a disc on `square`, the other side to move.
constexpr Board placed(const Board& b, int square) {
  const Squares turned = flips(b, square);
  return {b.enemy & ~turned, b.own | turned | Squares{1} << square};
}

constexpr Board passed(const Board& b) { return {b.enemy, b.own}; }

/// Leaves of the game tree at `depth` plies. A pass is a ply; a finished game is one leaf.
inline std::uint64_t perft(const Board& b, int depth) {
  if (depth == 0) return 1;
  Squares left = moves(b);
  if (left == 0) return moves(passed(b)) == 0 ? 1 : perft(passed(b), depth - 1);
  if (depth == 1) return static_cast<std::uint64_t>(std::popcount(left));
  std::uint64_t leaves = 0;
  for (; left; left &= left - 1) leaves += perft(placed(b, std::countr_zero(left)), depth - 1);
  return leaves;
}

// What a player sees on the board that a move leads to: features of a move rather than of the position. For
// clones.

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
