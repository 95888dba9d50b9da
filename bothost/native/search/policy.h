// What a game may provide to a search about good play: optional static members of a game `G`.
#pragma once
#include <concepts>
#include <memory>
#include <span>
#include <utility>

#include "core/rng.h"
#include "core/types.h"

namespace bothost::search {

/// A fast sound policy for playouts. It uses only what the seat knows, and plays at random with a chance of
/// `noise`.
///   Action G::playout_action(state, seat, rng, noise)
template <class G>
concept HasPlayoutPolicy = requires(const typename G::State& state, Seat seat, Rng& rng) {
  { G::playout_action(state, seat, rng, 0.0) } -> std::same_as<Action>;
};

/// Preferences for the legal actions before any search, for progressive widening: larger is better.
///   void G::preferences(state, seat, actions, out)
template <class G>
concept HasPreferences = requires(const typename G::State& state, Seat seat, std::span<const Action> actions,
                                  std::span<float> out) { G::preferences(state, seat, actions, out); };

/// How well the hidden cards of `deal`, a sample of the view, explain the others' actions. Deals are weighted
/// by this likelihood. With a deal come the likely types of the players, `G::Types`, which playouts use.
/// `model`, a `const G::PlayerModel*` of how players move, may be null.
///   Explanation G::explain(view, deal, model), with double log_likelihood(exponent) and G::Types draw(rng,
///   exponent)
///   Action G::playout_action(state, seat, types, model, rng, noise)
/// The probability of each action is raised to `exponent`, within (0, 1].
template <class G>
concept HasLikelihood =
    requires(const typename G::View& view, const typename G::State& deal, Seat seat,
             const typename G::Types& types, const typename G::PlayerModel* model, Rng& rng) {
      { G::explain(view, deal, model).log_likelihood(1.0) } -> std::convertible_to<double>;
      { G::explain(view, deal, model).draw(rng, 1.0) } -> std::same_as<typename G::Types>;
      { G::playout_action(deal, seat, types, model, rng, 0.0) } -> std::same_as<Action>;
    };

struct NoTypes {};
template <class G>
struct TypesOf {
  using type = NoTypes;
};
template <HasLikelihood G>
struct TypesOf<G> {
  using type = typename G::Types;
};

/// A game's model of how players move, without the game.
class AnyPlayerModel {
 public:
  virtual ~AnyPlayerModel() = default;
};
/// The model of the game `G`.
template <HasLikelihood G>
struct PlayerModelOf final : AnyPlayerModel {
  explicit PlayerModelOf(typename G::PlayerModel made) : model(std::move(made)) {}
  typename G::PlayerModel model;
};

/// The side of a seat, if the game has sides; else every seat is its own side.
///   int G::side(state, seat)
template <class G>
int side_of(const typename G::State& state, Seat seat) {
  if constexpr (requires { G::side(state, seat); })
    return G::side(state, seat);
  else
    return seat;
}

}  // namespace bothost::search
