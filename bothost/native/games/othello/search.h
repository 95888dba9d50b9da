// A sound Othello player: alpha-beta over mobility, corners, edges and frontier, and the exact end of the
// game.
#pragma once
#include <cstdint>
#include <vector>

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

/// What the heuristic judgement goes by, in hundredths of a disc. "Of a share": times (own - enemy) / (own +
/// enemy).
struct Weights {
  int mobility = 900;   ///< of the share of moves
  int frontier = 500;   ///< against the share of discs beside empty squares
  int corners = 800;    ///< per corner
  int stability = 250;  ///< per edge disc that can never turn
  int danger = 350;     ///< against each disc diagonal to an empty corner; for those beside it about a third
  int edges = 0;        ///< per disc on an edge
  int greed = 0;        ///< of the share of discs, at any time
  bool operator==(const Weights&) const = default;
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

struct RootMove {
  int square;
  /// For the side to move, as in SearchResult.
  int score;
};

/// The value of every move of the side to move, by squares; empty where only a pass is possible. Each looks
/// as many plies ahead as the nodes allow for all, and from `solve_from` empty squares on to the end.
std::vector<RootMove> judge_moves(const Board& board, const SearchLimits& limits, const Weights& weights);

/// Difference of discs at the end of the game, empty squares counting for the winner.
int final_discs(const Board& board);

/// Judgement of a position that is not over, for the side to move, in hundredths of a disc.
int evaluate(const Board& board, const Weights& weights = {});

}  // namespace bothost::othello
