// The universe of Dou Dizhu moves: every concrete play and call as an action id.
//
//   0                pass
//   1 .. 27471       the plays of RLCard's set (with pass 27,472: the table of the DouZero paper)
//   27472 ..         wider kickers (both jokers, four of a rank, a trio beside the body), then space shuttles
//   kFirstCall ..    bid0 bid1 bid2 bid3 call grab
//
// Within a kind, ids ascend by length, then start of the body, then kickers in colexicographic order, so that
// a generator that walks bodies and kickers upwards emits ascending ids.
//
// Kickers in RLCard's set: never of a body's rank, at most three of a rank, never both jokers, and never a
// third card of a rank of 3..A that adjoins a plane (it would read as a longer plane); pairs are of distinct
// ranks.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "doudizhu/cards.h"

namespace bothost::doudizhu {

enum class Kind : std::uint8_t {
  pass,
  solo,
  pair,
  trio,
  trio_solo,
  trio_pair,
  solo_chain,
  pair_chain,
  trio_chain,
  plane_solo,
  plane_pair,
  quad_solo,
  quad_pair,
  bomb,
  rocket,
  shuttle,
  shuttle_solo,
  shuttle_pair,
  call
};
inline constexpr std::array<std::string_view, 19> kKindNames = {
    "pass",       "solo",       "pair",         "trio",         "trio_solo", "trio_pair", "solo_chain",
    "pair_chain", "trio_chain", "plane_solo",   "plane_pair",   "quad_solo", "quad_pair", "bomb",
    "rocket",     "shuttle",    "shuttle_solo", "shuttle_pair", "call"};

/// What a rule set must allow for a move to be legal; a move of none is legal everywhere.
enum Needs : std::uint8_t {
  kSameRankKickers = 1,   ///< two or more solo kickers of one rank
  kRocketKickers = 2,     ///< both jokers among the solo kickers
  kBombKickers = 4,       ///< four of a rank among the solo kickers
  kNeighbourKickers = 8,  ///< three or four kickers of a rank that adjoins the plane
  kShuttles = 16,         ///< two or more consecutive fours
};

struct Move {
  Cards cards;
  /// Main cards: those that decide which of two moves of one kind and length beats the other.
  Cards body;
  Kind kind;
  std::uint8_t needs;
  /// Lowest rank of the body.
  std::uint8_t rank;
  /// Number of consecutive ranks of the body.
  std::uint8_t length;
  /// Index of the abstract move, 0 .. 308, or 309 where a move has none (shuttles and calls).
  std::uint16_t abstract;
  /// Whether the notation shows "+" between body and kickers, because the bare cards read as another move.
  bool marked;

  /// A bomb or the rocket.
  bool is_bomb() const { return kind == Kind::bomb || kind == Kind::rocket; }
};

inline constexpr Action kPass = 0;
inline constexpr int kRlcardActions = 27472;
inline constexpr int kAbstractActions = 309;
inline constexpr std::uint16_t kNoAbstract = 309;

/// First id of each kind and sizes, known at compile time so that generators need no table for simple moves.
inline constexpr Action kSolo = 1, kPair = kSolo + 15, kTrio = kPair + 13, kTrioSolo = kTrio + 13,
                        kTrioPair = kTrioSolo + 13 * 14, kSoloChain = kTrioPair + 13 * 12,
                        kPairChain = kSoloChain + 36, kTrioChain = kPairChain + 52,
                        kPlaneSolo = kTrioChain + 45, kPlanePair = kPlaneSolo + 21822,
                        kQuadSolo = kPlanePair + 2939, kQuadPair = kQuadSolo + 1326, kBomb = kQuadPair + 858,
                        kRocketMove = kBomb + 13;
static_assert(kRocketMove == kRlcardActions - 1);

/// Length of the shortest and the longest chain by cards per rank (solo 5..12, pair 3..10, trio 2..6).
inline constexpr int kMinChain[5] = {0, 5, 3, 2, 2}, kMaxChain[5] = {0, 12, 10, 6, 5};

/// Id offset, within its kind, of the first chain of `length` ranks, `width` cards each.
constexpr int chain_offset(int width, int length) {
  int out = 0;
  for (int n = kMinChain[width]; n < length; ++n) out += kChainRanks - n + 1;
  return out;
}

/// C(n, k).
constexpr int choose(int n, int k) {
  if (k < 0 || k > n) return 0;
  long out = 1;
  for (int i = 1; i <= k; ++i) out = out * (n - k + i) / i;
  return static_cast<int>(out);
}

/// Number of multisets of size n over the 15 ranks, and of sets of size n over the 13 ranks that form pairs.
constexpr int solo_sets(int n) { return choose(kRanks + n - 1, n); }
constexpr int pair_sets(int n) { return choose(13, n); }

/// Colexicographic weights: the multiset x1 <= … <= xn has index sum of kSoloWeight[i][xi], the set x1 < … <
/// xn has index sum of kPairWeight[i][xi].
struct Weights {
  std::array<std::array<std::uint16_t, kRanks>, 7> solo{}, pair{};
  constexpr Weights() {
    for (int i = 1; i < 7; ++i)
      for (int x = 0; x < kRanks; ++x) {
        solo[at(i)][at(x)] = static_cast<std::uint16_t>(choose(x + i - 1, i));
        pair[at(i)][at(x)] = static_cast<std::uint16_t>(choose(x, i));
      }
  }
};
inline constexpr Weights kWeights;

using Id16 = std::uint16_t;

/// Tables of the whole universe, built once on first use (about 20 ms, 4 MB), then constant.
class Universe {
 public:
  static const Universe& get() {
    static const Universe universe;
    return universe;
  }

  int num_actions() const { return static_cast<int>(moves_.size()); }
  /// First id of the calls bid0 bid1 bid2 bid3 call grab.
  Action first_call() const { return first_call_; }
  Action first_shuttle() const { return first_shuttle_; }
  const Move& operator[](Action a) const { return moves_[at(a)]; }

  /// Ids of planes and shuttles with kickers, by index of the kickers; 0 where there is no such move.
  /// `width` cards per rank (3 planes, 4 quads and shuttles), `length` ranks from `start`.
  const Id16* solo_kickers(int width, int length, int start) const {
    return &kicker_ids_[solo_[at(width - 3)][at(length)][at(start)]];
  }
  const Id16* pair_kickers(int width, int length, int start) const {
    return &kicker_ids_[pair_[at(width - 3)][at(length)][at(start)]];
  }

  /// All readings of these cards as a play, the canonical one first (see `notation`).
  std::vector<Action> readings(Cards cards) const;

  std::string notation(Action a) const;
  /// A play in any order of cards, `pass`, or a call. `+` may stand between body and kickers and picks that
  /// reading; without it cards with several readings mean the canonical one. Throws InvalidInput.
  Action parse(std::string_view text) const;

  /// Notation of an abstract move, kickers as `*` (one card) or `**` (a pair).
  const std::string& abstract_notation(int index) const { return abstract_names_[at(index)]; }

 private:
  Universe();
  struct Builder;
  std::vector<Move> moves_;
  std::vector<Id16> kicker_ids_;
  std::uint32_t solo_[2][7][13]{}, pair_[2][7][13]{};
  std::vector<std::pair<Cards, Action>> by_cards_;  // sorted; equal cards: canonical first
  std::vector<std::string> abstract_names_;
  Action first_shuttle_ = 0, first_call_ = 0;
};

}  // namespace bothost::doudizhu
