#include "doudizhu/belief.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "doudizhu/policy.h"
#include "doudizhu/rhcp.h"

namespace bothost::doudizhu {
namespace {

/// Half points of preference that make a play e times as likely, for `taste`.
constexpr double kTemperature = 6.0;
/// Share of plays that do not follow the type: any legal play is equally likely.
constexpr double kChance = 0.1;
constexpr std::array<double, kTypes> kPrior{1.0 / 3, 1.0 / 3, 1.0 / 3};

/// Adds the logs of the probabilities that a player of each type plays `action`, one of `moves`.
void add_logs(const Sight& sight, std::span<const Action> moves, Action action,
              std::array<double, kTypes>& logs) {
  thread_local std::vector<float> likes;
  likes.resize(moves.size());
  preferences(sight, moves, likes);
  const auto most = std::ranges::max_element(likes);
  double sum = 0, own = 0;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const double weight = std::exp((likes[i] - *most) / kTemperature);
    sum += weight;
    if (moves[i] == action) own = weight;
  }
  const Action preferred = moves[at(most - likes.begin())];
  const bool by_partition = choose_by_partition(sight, moves).action == action;
  const std::array<double, kTypes> shares{own / sum, preferred == action ? 1.0 : 0.0,
                                          by_partition ? 1.0 : 0.0};
  for (std::size_t type = 0; type < kTypes; ++type)
    logs[type] += std::log((1 - kChance) * shares[type] + kChance / static_cast<double>(moves.size()));
}

/// Probabilities of a seat's types, up to a common factor. `most` is the largest of the logs.
std::array<double, kTypes> weights(const std::array<double, kTypes>& logs, double most, double exponent) {
  std::array<double, kTypes> out{};
  for (std::size_t type = 0; type < kTypes; ++type)
    out[type] = kPrior[type] * std::exp(exponent * (logs[type] - most));
  return out;
}

}  // namespace

double Explanation::log_likelihood(double exponent) const {
  double out = 0;
  for (const auto& logs : logs_) {
    const double most = *std::ranges::max_element(logs);
    if (most == -std::numeric_limits<double>::infinity()) return most;
    const auto w = weights(logs, most, exponent);
    out += exponent * most + std::log(std::accumulate(w.begin(), w.end(), 0.0));
  }
  return out;
}

Types Explanation::draw(Rng& rng, double exponent) const {
  Types out{};
  if (!known_) return out;
  for (std::size_t seat = 0; seat < kSeats; ++seat) {
    const auto w = weights(logs_[seat], *std::ranges::max_element(logs_[seat]), exponent);
    double left = rng.uniform() * std::accumulate(w.begin(), w.end(), 0.0);
    std::size_t type = 0;
    while (type + 1 < kTypes && (left -= w[type]) >= 0) ++type;
    out[seat] = static_cast<Type>(type);
  }
  return out;
}

Action choose_as(Type type, const Sight& sight, Rng& rng, double noise) {
  if (type != Type::partition) return choose_quickly(sight, rng, noise);
  if (noise > 0 && rng.uniform() < noise) return choose_quickly(sight, rng, 1.0);
  return choose_by_partition(sight).action;
}

Explanation explain(const View& view, const State& deal) {
  Explanation out;
  const Public& seen = view.table();
  if (!seen.complete || seen.phase != Phase::play) return out;
  out.known_ = seen.size > seen.calls;
  const auto& u = Universe::get();
  thread_local std::vector<Action> room(kMoveRoom);
  std::array<Cards, kSeats> hands{deal.dealt(0), deal.dealt(1), deal.dealt(2)};
  hands[at(seen.landlord)] += deal.bottom();
  Public table;
  table.begin_bidding(seen.first, view.rules());
  for (int i = 0; i < seen.calls; ++i) table.call(table.turn, seen.history[at(i)], view.rules());
  table.show_bottom(deal.bottom());
  for (int i = seen.calls; i < seen.size; ++i) {
    const Action action = seen.history[at(i)];
    const Seat seat = table.turn;
    Cards& hand = hands[at(seat)];
    if (!contains(hand, u[action].cards)) {
      out.logs_[at(seat)].fill(-std::numeric_limits<double>::infinity());
      return out;
    }
    if (seat != view.seat()) {
      const std::span<const Action> moves{room.data(), legal_of(table, view.rules(), hand, room.data())};
      const Cards unseen = kDeck - hand - table.played[0] - table.played[1] - table.played[2];
      if (moves.size() > 1)
        add_logs({view.rules(), table, seat, hand, unseen}, moves, action, out.logs_[at(seat)]);
    }
    hand -= u[action].cards;
    table.play(seat, action, u[action]);
  }
  return out;
}

}  // namespace bothost::doudizhu
