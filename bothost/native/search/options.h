// Options of a search.
#pragma once
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>

#include "core/types.h"
#include "search/policy.h"

namespace bothost::search {

/// How a leaf is valued.
enum class Leaf : std::uint8_t {
  rollout,    ///< a playout to the end of the hand
  evaluator,  ///< values of the caller, passed to feed()
};

/// The policy of the playouts.
enum class Playout : std::uint8_t {
  random,
  rule,  ///< the game's own policy, if it has one (search/policy.h)
};

/// How the other seats choose within the tree.
enum class Others : std::uint8_t {
  tree,    ///< UCT for their own side, with statistics shared over all their possible hands
  policy,  ///< the game's own policy for their hand in the deal, with the noise of playouts
};

/// The utility of a return, within [-1, 1].
enum class Utility : std::uint8_t {
  sign,    ///< win, draw, loss
  points,  ///< returns / points_scale, clamped
};

struct Options {
  /// C of UCT: v + C * sqrt(ln N / n), for utilities in [-1, 1].
  double exploration = 1.0;
  Leaf leaf = Leaf::rollout;
  Playout playout = Playout::random;
  /// Chance that a step of a rule playout is random.
  double playout_noise = 0.1;
  Others others = Others::tree;
  /// Number of deals that are sampled, weighted by how well they explain the others' actions, and resampled.
  /// More deals support sharper weights (resampling.h). 0: deals are sampled uniformly, one for each visit.
  int belief = 0;
  /// Of the same game as the search. Null: the others are of the types that the game knows without one.
  std::shared_ptr<const AnyPlayerModel> players;
  /// Progressive widening: a node with n visits considers the ceil(widening * sqrt(n + 1)) actions that the
  /// game's policy prefers (Coulom, "Computing Elo ratings of move patterns", 2007). 0: all actions.
  double widening = 0.0;
  Utility utility = Utility::sign;
  double points_scale = 1.0;
  /// Visits that the evaluator's value of an action counts for in its mean. 0: it only orders first visits.
  double prior_visits = 4.0;
  /// Share of a playout in the value of an evaluated leaf; the evaluator gives the rest (lambda in Silver et
  /// al., "Mastering the game of Go with deep neural networks and tree search", 2016).
  double mixing = 0.0;
  /// Leaves that wait for the evaluator at once. A virtual loss keeps a waiting leaf from being chosen again.
  int leaf_batch = 8;
  /// Most actions of a leaf that the evaluator values: those that the game's policy likes best. The others
  /// count as the worst of them. 0: all. The root's are all valued.
  int leaf_moves = 0;
  /// Trees with different seeds, one thread each. Their root statistics are added. Rollouts only.
  int threads = 1;
  std::uint64_t seed = 0;
  /// Limit of the tree's nodes. Beyond it leaves are valued and not expanded.
  std::uint32_t max_nodes = 1u << 20;
};

using Clock = std::chrono::steady_clock;

/// When run() stops: after this many further iterations or at the deadline, whichever comes first.
struct Until {
  std::uint64_t iterations = std::numeric_limits<std::uint64_t>::max();
  Clock::time_point deadline = Clock::time_point::max();
};

/// Statistics of a legal action at the root. The value is the acting seat's utility in [-1, 1].
struct RootAction {
  Action action;
  std::uint64_t visits;
  double value;
};

}  // namespace bothost::search
