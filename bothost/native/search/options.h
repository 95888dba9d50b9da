// What a caller may choose about a search.
#pragma once
#include <chrono>
#include <cstdint>
#include <limits>

#include "core/types.h"

namespace bothost::search {

/// How a leaf is valued.
enum class Leaf : std::uint8_t {
  rollout,    ///< a playout to the end of the hand
  evaluator,  ///< the caller's values, by LeafBatch and feed()
};

/// Who plays the playouts.
enum class Playout : std::uint8_t {
  random,
  rule,  ///< the game's own policy, where it has one (search/policy.h)
};

/// Who chooses for the other seats within the tree.
enum class Others : std::uint8_t {
  tree,    ///< UCT, for their own side, by statistics shared over all their possible hands
  policy,  ///< the game's own policy, by the hand that the deal gives them, erring as in playouts
};

/// What a return is worth to the search, always within [-1, 1].
enum class Utility : std::uint8_t {
  sign,    ///< win, draw, loss
  points,  ///< returns / points_scale, clamped
};

struct Options {
  /// C of UCT: v + C * sqrt(ln N / n), for utilities in [-1, 1].
  double exploration = 1.0;
  Leaf leaf = Leaf::rollout;
  Playout playout = Playout::random;
  /// Chance that a step of a rule playout errs.
  double playout_noise = 0.1;
  Others others = Others::tree;
  /// Deals that are sampled and weighted by how well they explain what the others did, as sharply as their
  /// number bears; as many are drawn from them. 0: deals are sampled uniformly, one for every visit.
  int belief = 0;
  /// Progressive widening: a node of n visits considers the ceil(widening * sqrt(n + 1)) actions that the
  /// game's policy likes best (Coulom, "Computing Elo ratings of move patterns", 2007). 0: all of them.
  double widening = 0.0;
  Utility utility = Utility::sign;
  double points_scale = 1.0;
  /// How many visits the evaluator's value of an action counts for in its mean (0: it only orders first
  /// visits).
  double prior_visits = 4.0;
  /// Part of an evaluated leaf's value that a playout gives, the rest being the evaluator's (lambda in Silver
  /// et al., "Mastering the game of Go with deep neural networks and tree search", 2016).
  double mixing = 0.0;
  /// Leaves that wait for the evaluator at once; each is kept from being chosen again by a virtual loss.
  int leaf_batch = 8;
  /// Most actions of a leaf that the evaluator values: those that the game's policy likes best. The others
  /// count as the worst of them. 0: all. The root's are all valued.
  int leaf_moves = 0;
  /// Trees grown side by side from different seeds, one thread each, their root statistics added up. Rollouts
  /// only.
  int threads = 1;
  std::uint64_t seed = 0;
  /// Nodes after which the tree stops growing (its leaves are then valued without being expanded).
  std::uint32_t max_nodes = 1u << 20;
};

using Clock = std::chrono::steady_clock;

/// When run() stops: after so many iterations more, or at a moment, whichever comes first.
struct Until {
  std::uint64_t iterations = std::numeric_limits<std::uint64_t>::max();
  Clock::time_point deadline = Clock::time_point::max();
};

/// What is known of a legal action at the root. The value is the acting seat's utility in [-1, 1].
struct RootAction {
  Action action;
  std::uint64_t visits;
  double value;
};

}  // namespace bothost::search
