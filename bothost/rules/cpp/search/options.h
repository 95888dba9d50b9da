// What a caller may choose about a search.
#pragma once
#include <chrono>
#include <cstdint>
#include <limits>

#include "core/types.h"

namespace bothost::search {

/// How a leaf is valued.
enum class Leaf : std::uint8_t {
  rollout,    ///< a random playout to the end of the hand
  evaluator,  ///< the caller's values, by LeafBatch and feed()
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
  Utility utility = Utility::sign;
  double points_scale = 1.0;
  /// How many visits the evaluator's value of an action counts for in its mean (0: it only orders first
  /// visits).
  double prior_visits = 4.0;
  /// Leaves that wait for the evaluator at once; each is kept from being chosen again by a virtual loss.
  int leaf_batch = 8;
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
