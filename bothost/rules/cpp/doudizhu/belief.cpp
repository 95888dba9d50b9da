#include "doudizhu/belief.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "doudizhu/policy.h"

namespace bothost::doudizhu {
namespace {

/// Log of the probability that a player of this taste plays `action`, one of `moves`.
double log_probability(const Sight& sight, std::span<const Action> moves, Action action, const Taste& taste) {
  thread_local std::vector<float> likes;
  likes.resize(moves.size());
  preferences(sight, moves, likes);
  const float most = *std::max_element(likes.begin(), likes.end());
  double sum = 0, own = 0;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const double weight = std::exp((likes[i] - most) / taste.temperature);
    sum += weight;
    if (moves[i] == action) own = weight;
  }
  const double n = static_cast<double>(moves.size());
  return std::log((1 - taste.chance) * own / sum + taste.chance / n);
}

}  // namespace

double log_likelihood(const View& view, const State& deal, const Taste& taste) {
  const Public& seen = view.table();
  if (!seen.complete || seen.phase != Phase::play) return 0.0;
  const auto& u = Universe::get();
  thread_local std::vector<Action> room(kMoveRoom);
  std::array<Cards, kSeats> hands{deal.dealt(0), deal.dealt(1), deal.dealt(2)};
  hands[static_cast<std::size_t>(seen.landlord)] += deal.bottom();
  Public table;
  table.begin_bidding(seen.first, view.rules());
  for (int i = 0; i < seen.calls; ++i)
    table.call(table.turn, seen.history[static_cast<std::size_t>(i)], view.rules());
  table.show_bottom(deal.bottom());
  double out = 0;
  for (int i = seen.calls; i < seen.size; ++i) {
    const Action action = seen.history[static_cast<std::size_t>(i)];
    const Seat seat = table.turn;
    Cards& hand = hands[static_cast<std::size_t>(seat)];
    if (!contains(hand, u[action].cards)) return -std::numeric_limits<double>::infinity();
    if (seat != view.seat()) {
      const Generator generator(hand, view.rules().allowed);
      Action* const end =
          table.last == 0 ? generator.lead(room.data()) : generator.follow(u[table.last], room.data());
      const std::span<const Action> moves{room.data(), end};
      const Cards unseen = kDeck - hand - table.played[0] - table.played[1] - table.played[2];
      if (moves.size() > 1)
        out += log_probability({view.rules(), table, seat, hand, unseen}, moves, action, taste);
    }
    hand -= u[action].cards;
    table.play(seat, action, u[action]);
  }
  return out;
}

}  // namespace bothost::doudizhu
