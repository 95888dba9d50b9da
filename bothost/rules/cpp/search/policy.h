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

/// Log of how likely the others would have done what the view saw, were the hidden cards as in `deal`, a
/// sample of the view: deals are weighted by it.
///   double G::log_likelihood(view, deal)
template <class G>
concept HasLikelihood = requires(const typename G::View& view, const typename G::State& deal) {
  { G::log_likelihood(view, deal) } -> std::convertible_to<double>;
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
