// What a game may tell a search about good play, all optional static members of a game `G`.
#pragma once
#include <concepts>
#include <span>

#include "core/rng.h"
#include "core/types.h"

namespace bothost::search {

/// A fast sound policy for playouts: it may look at what the seat knows, and errs with a chance of `noise`.
///   Action G::playout_action(state, seat, rng, noise)
template <class G>
concept HasPlayoutPolicy = requires(const typename G::State& state, Seat seat, Rng& rng) {
  { G::playout_action(state, seat, rng, 0.0) } -> std::same_as<Action>;
};

/// How well the legal actions look before any search, for progressive widening: larger is better.
///   void G::preferences(state, seat, actions, out)
template <class G>
concept HasPreferences = requires(const typename G::State& state, Seat seat, std::span<const Action> actions,
                                  std::span<float> out) { G::preferences(state, seat, actions, out); };

/// How well it explains what the view saw of the others that the hidden cards are as in `deal`, a sample of
/// the view: deals are weighted by its likelihood. With a deal come types that the players may be of in it,
/// `G::Types`, and playouts take them to be so.
///   Explanation G::explain(view, deal), with double log_likelihood(trust) and G::Types draw(rng, trust)
///   Action G::playout_action(state, seat, types, rng, noise)
/// Every action counts as the power `trust` of its probability, within (0, 1].
template <class G>
concept HasLikelihood = requires(const typename G::View& view, const typename G::State& deal, Seat seat,
                                 const typename G::Types& types, Rng& rng) {
  { G::explain(view, deal).log_likelihood(1.0) } -> std::convertible_to<double>;
  { G::explain(view, deal).draw(rng, 1.0) } -> std::same_as<typename G::Types>;
  { G::playout_action(deal, seat, types, rng, 0.0) } -> std::same_as<Action>;
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

/// The side that a seat is on, where a game has sides; else every seat is its own.
///   int G::side(state, seat)
template <class G>
int side_of(const typename G::State& state, Seat seat) {
  if constexpr (requires { G::side(state, seat); })
    return G::side(state, seat);
  else
    return seat;
}

}  // namespace bothost::search
