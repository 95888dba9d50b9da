#include "othello/search.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/types.h"

namespace bothost::othello {
namespace {

constexpr int kInfinite = 1 << 20;

constexpr Squares kFileA = 0x0101010101010101ULL;
constexpr Squares kFileH = kFileA << 7;
constexpr Squares kRow1 = 0xffULL;
constexpr Squares kRow8 = kRow1 << 56;
constexpr Squares kCorners = 0x8100000000000081ULL;
constexpr Squares kEdges = kFileA | kFileH | kRow1 | kRow8;

/// A corner with the squares beside it, which give it away while it is empty, and its two edges.
struct Corner {
  Squares square;
  Squares diagonal;
  Squares beside;
  int along[2];  // steps of the two edges that start here
};
constexpr std::array<Corner, 4> kCornerList{{
    {Squares{1} << 0, Squares{1} << 9, Squares{1} << 1 | Squares{1} << 8, {1, 8}},
    {Squares{1} << 7, Squares{1} << 14, Squares{1} << 6 | Squares{1} << 15, {-1, 8}},
    {Squares{1} << 56, Squares{1} << 49, Squares{1} << 57 | Squares{1} << 48, {1, -8}},
    {Squares{1} << 63, Squares{1} << 54, Squares{1} << 62 | Squares{1} << 55, {-1, -8}},
}};

/// All squares that touch one of `s`.
constexpr Squares neighbours(Squares s) {
  const Squares sides = s | (s & ~kFileH) << 1 | (s & ~kFileA) >> 1;
  return (sides | sides << 8 | sides >> 8) & ~s;
}

/// Edge discs that can never turn: unbroken lines of one colour from a corner.
Squares anchored(Squares discs) {
  Squares safe = 0;
  for (const Corner& corner : kCornerList) {
    if (!(discs & corner.square)) continue;
    const int from = std::countr_zero(corner.square);
    for (const int step : corner.along)
      for (int i = 0, square = from; i < 8 && (discs >> square & 1); ++i, square += step)
        safe |= Squares{1} << square;
  }
  return safe;
}

int count(Squares s) { return std::popcount(s); }

/// The gain of a ratio: full scale when the other side has none.
int share(int own, int enemy, int scale) { return own + enemy ? scale * (own - enemy) / (own + enemy) : 0; }

/// Moves in the order in which they look best: corners, then what leaves the other side the fewest moves.
struct Ordered {
  std::array<std::int8_t, 64> squares;
  std::array<Board, 64> after;
  int size = 0;

  Ordered(const Board& board, Squares legal, int first) {
    std::array<int, 64> keys;
    for (; legal; legal &= legal - 1) {
      const int square = std::countr_zero(legal);
      const Board next = placed(board, square);
      const Squares bit = Squares{1} << square;
      int key = count(moves(next)) - (bit & kCorners ? 20 : 0) - (square == first ? 1000 : 0);
      for (const Corner& corner : kCornerList)
        if (bit & corner.diagonal && !((board.own | board.enemy) & corner.square)) key += 8;
      int place = size++;
      for (; place > 0 && keys[place - 1] > key; --place) {
        keys[place] = keys[place - 1];
        squares[place] = squares[place - 1];
        after[place] = after[place - 1];
      }
      keys[place] = key;
      squares[place] = static_cast<std::int8_t>(square);
      after[place] = next;
    }
  }
};

class Searcher {
 public:
  explicit Searcher(std::uint64_t most, const Weights& weights = {}) : weights_(weights), most_(most) {}

  std::uint64_t nodes() const { return nodes_; }
  bool stopped() const { return stopped_; }

  /// Heuristic value within (alpha, beta), fail-soft.
  int negamax(const Board& board, int depth, int alpha, int beta) {
    if (++nodes_ > most_) stopped_ = true;
    if (stopped_) return 0;
    const Squares legal = moves(board);
    if (!legal) {
      const Board other = passed(board);
      return moves(other) ? -negamax(other, depth, -beta, -alpha) : final_discs(board) * kDisc;
    }
    if (depth == 0) return evaluate(board, weights_);
    return best(board, legal, alpha, beta,
                [&](const Board& next, int a, int b) { return -negamax(next, depth - 1, -b, -a); });
  }

  /// Exact difference of discs within (alpha, beta), fail-soft.
  int solve(const Board& board, int alpha, int beta) {
    if (++nodes_ > most_) stopped_ = true;
    if (stopped_) return 0;
    const Squares legal = moves(board);
    if (!legal) {
      const Board other = passed(board);
      return moves(other) ? -solve(other, -beta, -alpha) : final_discs(board);
    }
    const Squares empty = ~(board.own | board.enemy);
    if (count(empty) > 5)
      return best(board, legal, alpha, beta,
                  [&](const Board& next, int a, int b) { return -solve(next, -b, -a); });
    int value = -64;
    for (Squares left = legal; left; left &= left - 1) {
      value = std::max(value, -solve(placed(board, std::countr_zero(left)), -beta, -std::max(alpha, value)));
      if (value >= beta || stopped_) break;
    }
    return value;
  }

 private:
  template <class Deeper>
  int best(const Board& board, Squares legal, int alpha, int beta, Deeper&& deeper) {
    const Ordered ordered(board, legal, -1);
    int value = -kInfinite;
    for (int i = 0; i < ordered.size; ++i) {
      value = std::max(value, deeper(ordered.after[at(i)], std::max(alpha, value), beta));
      if (value >= beta || stopped_) break;
    }
    return value;
  }

  Weights weights_;
  std::uint64_t most_;
  std::uint64_t nodes_ = 0;
  bool stopped_ = false;
};

/// The best root move by `deeper(next board, alpha, beta)`; false when the nodes ran out before all were
/// seen.
template <class Deeper>
bool search_root(const Board& board, const Searcher& searcher, SearchResult& result, Deeper&& deeper) {
  const Ordered ordered(board, moves(board), result.square);
  int value = -kInfinite;
  int square = -1;
  for (int i = 0; i < ordered.size; ++i) {
    const int score = deeper(ordered.after[at(i)], value, kInfinite);
    if (searcher.stopped()) return false;
    if (score > value) {
      value = score;
      square = ordered.squares[at(i)];
    }
  }
  result.square = square;
  result.score = value;
  return true;
}

}  // namespace

int final_discs(const Board& board) {
  const int own = count(board.own), enemy = count(board.enemy), empty = 64 - own - enemy;
  return own > enemy ? own - enemy + empty : own < enemy ? own - enemy - empty : 0;
}

int evaluate(const Board& board, const Weights& weights) {
  const Squares empty = ~(board.own | board.enemy);
  const int left = count(empty);
  int score = share(count(moves(board)) + 1, count(moves(passed(board))) + 1, weights.mobility);
  // discs beside empty squares are moves for the other side later on
  const Squares border = neighbours(empty);
  score -= share(count(board.own & border), count(board.enemy & border), weights.frontier);
  score += weights.corners * (count(board.own & kCorners) - count(board.enemy & kCorners));
  score += weights.stability * (count(anchored(board.own)) - count(anchored(board.enemy)));
  if (weights.edges) score += weights.edges * (count(board.own & kEdges) - count(board.enemy & kEdges));
  if (weights.greed) score += share(count(board.own), count(board.enemy), weights.greed);
  const int beside = weights.danger * 12 / 35;
  for (const Corner& corner : kCornerList) {
    if (!(empty & corner.square)) continue;
    score -= weights.danger * (count(board.own & corner.diagonal) - count(board.enemy & corner.diagonal));
    score -= beside * (count(board.own & corner.beside) - count(board.enemy & corner.beside));
  }
  if (left <= 16) score += share(count(board.own), count(board.enemy), 100 * (17 - left));
  return score;
}

SearchResult choose(const Board& board, const SearchLimits& limits) {
  SearchResult result;
  if (!moves(board)) return result;
  Searcher searcher(limits.nodes);
  const int empty = count(~(board.own | board.enemy));
  const auto deepen = [&](int depth) {
    return search_root(board, searcher, result, [&](const Board& next, int alpha, int beta) {
      return -searcher.negamax(next, depth - 1, -beta, -alpha);
    });
  };
  // a quick look first: it orders the root for the solver, and answers where the solver runs out of nodes
  const bool solving = empty <= limits.solve_from;
  const int depth = solving ? 2 : std::max(1, limits.depth);
  for (int d = 1; d <= depth && deepen(d); ++d) result.depth = d;
  if (result.square < 0) result.square = std::countr_zero(moves(board));
  if (solving && !searcher.stopped()) {
    const bool solved = search_root(board, searcher, result, [&](const Board& next, int alpha, int beta) {
      return -searcher.solve(next, std::max(-beta, -65), std::min(-alpha, 65));
    });
    if (solved) {
      result.score *= kDisc;
      result.depth = empty;
      result.exact = true;
    }
  }
  result.nodes = searcher.nodes();
  return result;
}

std::vector<RootMove> judge_moves(const Board& board, const SearchLimits& limits, const Weights& weights) {
  std::vector<RootMove> out;
  for (Squares left = moves(board); left; left &= left - 1) out.push_back({std::countr_zero(left), 0});
  if (out.empty()) return out;
  const bool solving = count(~(board.own | board.enemy)) <= limits.solve_from;
  Searcher searcher(limits.nodes, weights);
  std::vector<RootMove> judged = out;
  const auto judge = [&](auto&& value) {
    for (RootMove& move : judged) move.score = value(placed(board, move.square));
    if (!searcher.stopped()) out = judged;
  };
  for (int depth = 1; depth <= limits.depth && !searcher.stopped(); ++depth)
    judge([&](const Board& next) { return -searcher.negamax(next, depth - 1, -kInfinite, kInfinite); });
  if (solving && !searcher.stopped())
    judge([&](const Board& next) { return -searcher.solve(next, -65, 65) * kDisc; });
  return out;
}

}  // namespace bothost::othello
