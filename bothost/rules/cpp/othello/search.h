// A sound Othello player: alpha-beta over mobility, corners, edges and frontier, and the exact end of the
// game.
#pragma once
#include <cstdint>

#include "othello/board.h"

namespace bothost::othello {

struct SearchLimits {
  /// Plies of the heuristic search, at least 1.
  int depth = 6;
  /// From this many empty squares on, the game is solved: the difference of discs is exact.
  int solve_from = 12;
  /// Nodes after which deepening stops: what bounds the time, the same on every machine. About 10 million a
  /// second.
  std::uint64_t nodes = 120000;
};

struct SearchResult {
  /// The square, or -1 where only a pass is possible.
  int square = -1;
  /// For the side to move: discs times kDisc when exact, else a judgement on about the same scale.
  int score = 0;
  /// Plies completed.
  int depth = 0;
  bool exact = false;
  std::uint64_t nodes = 0;
};

/// Scale of scores: hundredths of a disc.
inline constexpr int kDisc = 100;

/// The best move of the side to move. The game must not have ended. Deterministic: no clock, no chance.
SearchResult choose(const Board& board, const SearchLimits& limits);

/// Difference of discs at the end of the game, empty squares counting for the winner.
int final_discs(const Board& board);

/// Judgement of a position that is not over, for the side to move, in hundredths of a disc.
int evaluate(const Board& board);

}  // namespace bothost::othello
