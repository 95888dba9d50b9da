// How well hidden hands explain the others' plays, and which types of players they suggest.
#pragma once
#include <array>

#include "core/rng.h"
#include "doudizhu/player_model.h"
#include "doudizhu/policy.h"
#include "doudizhu/view.h"

namespace bothost::doudizhu {

/// Types that another player may be of. Hands and types are inferred together from the plays (type-based
/// reasoning, Albrecht and Stone, "Autonomous agents modelling other agents", 2018). A real player may be of
/// none of them: `taste` separates likely hands from unlikely ones for any sound player.
enum class Type : std::uint8_t {
  taste,      ///< plays by a softmax of the rule player's preferences
  rule,       ///< plays what the rule player prefers
  partition,  ///< plays by the partition of the hand only; see rhcp.cpp
  learned,    ///< draws from the probabilities of a PlayerModel; none is of this type where there is no model
};
inline constexpr std::size_t kTypes = 4;
/// The type of each seat.
using Types = std::array<Type, kSeats>;

/// The probabilities of the other seats' plays, given their hands in a deal.
class Explanation {
 public:
  /// Log of the probability of all plays, each raised to `exponent` within (0, 1]. No type fits a player
  /// exactly, and errors of the model are correlated, so an exponent below 1 is needed. Minus infinity for
  /// hands that could not make these plays; 0 if the view does not know the history.
  double log_likelihood(double exponent) const;
  /// Types of the seats, drawn by their posterior probability. Before the first play all are rule players, so
  /// that a bid does not count on weaker ones.
  Types draw(Rng& rng, double exponent) const;

 private:
  friend Explanation explain(const View& view, const State& deal, const PlayerModel* model);
  /// Per seat and type, the log of the probability of the seat's plays.
  std::array<std::array<double, kTypes>, kSeats> logs_{};
  bool known_ = false;
};

/// `deal` is a sample of the view; `model`: null for none. It takes some microseconds for each play of the
/// others.
Explanation explain(const View& view, const State& deal, const PlayerModel* model);

/// The play of one type in playouts. It errs with a chance of `noise`, but for the learned type, which draws
/// anyway. `model`: null if there is no such type.
Action choose_as(Type type, const Sight& sight, const PlayerModel* model, Rng& rng, double noise);

}  // namespace bothost::doudizhu
