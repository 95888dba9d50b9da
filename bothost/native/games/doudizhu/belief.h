// How well hidden hands explain what the others were seen to do, and what kind of players that makes them.
#pragma once
#include <array>

#include "core/rng.h"
#include "doudizhu/policy.h"
#include "doudizhu/view.h"

namespace bothost::doudizhu {

/// What another player may turn out to be: hands and types are believed in together, by what was played
/// (type-based reasoning, Albrecht and Stone, "Autonomous agents modelling other agents", 2018). Nobody at
/// the table need be any of them: `taste` tells likely hands from unlikely ones of any sound player.
enum class Type : std::uint8_t {
  taste,      ///< plays by a softmax of the rule player's preferences
  rule,       ///< plays what the rule player prefers
  partition,  ///< plays by the partition of the hand alone, see rhcp.h
};
inline constexpr std::size_t kTypes = 3;
/// Of each seat.
using Types = std::array<Type, kSeats>;

/// What the other seats did, were their hands so.
class Explanation {
 public:
  /// Log of its probability, each play counting as the power `trust` of its own, within (0, 1]: no type is
  /// the player's own, and one misunderstanding makes the next likely. Minus infinity of hands that could not
  /// have been played so; 0 where the view does not know the history.
  double log_likelihood(double trust) const;
  /// Types of the seats by their probability after it; before the first play all are rule players, lest a bid
  /// count on weaker ones.
  Types draw(Rng& rng, double trust) const;

 private:
  friend Explanation explain(const View& view, const State& deal);
  /// The same of what a seat did, were it of a type.
  std::array<std::array<double, kTypes>, kSeats> logs_{};
  bool known_ = false;
};

/// `deal` is a sample of the view. Some microseconds for each play of the others.
Explanation explain(const View& view, const State& deal);

/// The play of one type in playouts; it errs with a chance of `noise`.
Action choose_as(Type type, const Sight& sight, Rng& rng, double noise);

}  // namespace bothost::doudizhu
