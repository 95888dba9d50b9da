// A rule player of the pairing game.
//
// It weighs each pair that it could collect by what the two cards add to its library now (points and
// completed sets), by how far they bring unfinished sets, and by what the pool card would have been worth to
// the opponent. Skills are spent when they pay: a forced pair on a second rich card of the pool or instead of
// a lost one, a replacement on a poor card.
#pragma once
#include <string>
#include <vector>

#include "pairing/pairing.h"

namespace bothost::pairing {

/// Weights, in points of the game.
struct Weights {
  /// Of what a pool card would be worth to the opponent.
  double deny = 0.6;
  /// Of what the hand card is worth: it would probably be collected later anyway.
  double keep = 0.8;
  /// Of a set's bonus, times the square of how far it is complete.
  double promise = 0.35;
  /// Worth from which a pair of any colours deserves skill B.
  double force_from = 16.0;
};

/// Why an action was chosen.
struct Reason {
  enum class Kind : std::uint8_t { force, replace, no_skill, pair, poorest } kind;
  /// Of the pair or of the poorest card, in points.
  double worth = 0.0;
  /// replace: of an unseen card.
  double average = 0.0;

  /// For a person to read.
  std::string text() const;
};

struct Choice {
  Action action;
  Reason reason;
};

/// The view must be asked. Deterministic, and the same plan at every step of a turn; about a microsecond.
Choice choose(const Pairing::View& view, const Weights& weights);

/// (deals, actions), row by row: the lead with which the view's seat ends the hand after each of `actions`,
/// if the rule player plays on for both, in states sampled from the view, which must be asked. The actions
/// must be legal. The sampled states do not depend on them.
std::vector<float> leads_after(const Pairing::View& view, const ActionList& actions, std::size_t deals,
                               Rng& rng);

}  // namespace bothost::pairing
