#include "doudizhu/belief.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "doudizhu/policy.h"

namespace bothost::doudizhu {
namespace {

/// Half points of preference that make a play e times as likely, for `taste`.
constexpr double kTemperature = 6.0;
/// Share of plays that do not follow the type: any legal play is equally likely.
constexpr std::array<double, kTypes> kChance{0.1, 0.1, 0.1, 0.03};
/// The prior probability of each type, up to a common factor.
constexpr double kPrior = 1.0 / 3;
constexpr double kNever = -std::numeric_limits<double>::infinity();

/// How much the rule player likes each play. It lies in scratch of this thread, as the probabilities do.
std::span<float> liked(const Sight& sight, std::span<const Action> moves) {
  thread_local std::vector<float> likes(kMoveRoom);
  const std::span<float> out(likes.data(), moves.size());
  preferences(sight, moves, out);
  return out;
}

std::span<float> probabilities_of(const PlayerModel& model, const Sight& sight, std::span<const Action> moves,
                                  std::span<const float> likes) {
  thread_local std::vector<float> probabilities(kMoveRoom);
  const std::span<float> out(probabilities.data(), moves.size());
  model.probabilities(sight, moves, likes, out);
  return out;
}

/// Adds the logs of the probabilities that a player of each type plays `action`, one of `moves`.
void add_logs(const Sight& sight, std::span<const Action> moves, Action action, const PlayerModel* model,
              std::array<double, kTypes>& logs) {
  const auto likes = liked(sight, moves);
  const auto most = std::ranges::max_element(likes);
  double sum = 0, own = 0;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const double weight = std::exp((likes[i] - *most) / kTemperature);
    sum += weight;
    if (moves[i] == action) own = weight;
  }
  const Action preferred = moves[at(most - likes.begin())];
  const bool by_partition = choose_by_partition(sight, moves).action == action;
  const auto place = at(std::ranges::lower_bound(moves, action) - moves.begin());
  const double learned = model ? probabilities_of(*model, sight, moves, likes)[place] : 0.0;
  const std::array<double, kTypes> shares{own / sum, preferred == action ? 1.0 : 0.0,
                                          by_partition ? 1.0 : 0.0, learned};
  for (std::size_t type = 0; type < kTypes; ++type)
    logs[type] +=
        std::log((1 - kChance[type]) * shares[type] + kChance[type] / static_cast<double>(moves.size()));
}

/// Probabilities of a seat's types, up to a common factor. `most` is the largest of the logs.
std::array<double, kTypes> weights(const std::array<double, kTypes>& logs, double most, double exponent) {
  std::array<double, kTypes> out{};
  for (std::size_t type = 0; type < kTypes; ++type)
    out[type] = kPrior * std::exp(exponent * (logs[type] - most));
  return out;
}

/// A play drawn from the model's probabilities. Everybody takes the last play.
Action drawn(const PlayerModel& model, const Sight& sight, Rng& rng) {
  const auto moves = legal_actions(sight);
  if (moves.size() == 1) return moves[0];
  if (const Action a = last_play(sight.hand, moves); a != kPass) return a;
  const auto probabilities = probabilities_of(model, sight, moves, liked(sight, moves));
  double left = rng.uniform();
  std::size_t i = 0;
  while (i + 1 < moves.size() && (left -= probabilities[i]) >= 0) ++i;
  return moves[i];
}

}  // namespace

double Explanation::log_likelihood(double exponent) const {
  double out = 0;
  for (const auto& logs : logs_) {
    const double most = *std::ranges::max_element(logs);
    if (most == kNever) return most;
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
    for (std::size_t type = 0; type < kTypes && left >= 0; ++type) {
      if (w[type] > 0) out[seat] = static_cast<Type>(type);
      left -= w[type];
    }
  }
  return out;
}

Action choose_as(Type type, const Sight& sight, const PlayerModel* model, Rng& rng, double noise) {
  if (type == Type::learned) return drawn(*model, sight, rng);
  if (type != Type::partition) return choose_quickly(sight, rng, noise);
  if (noise > 0 && rng.uniform() < noise) return choose_quickly(sight, rng, 1.0);
  return choose_by_partition(sight).action;
}

Explanation explain(const View& view, const State& deal, const PlayerModel* model) {
  Explanation out;
  if (!model)
    for (auto& logs : out.logs_) logs[at(Type::learned)] = kNever;
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
      out.logs_[at(seat)].fill(kNever);
      return out;
    }
    if (seat != view.seat()) {
      const std::span<const Action> moves{room.data(), legal_of(table, view.rules(), hand, room.data())};
      const Cards unseen = kDeck - hand - table.played[0] - table.played[1] - table.played[2];
      if (moves.size() > 1)
        add_logs({view.rules(), table, seat, hand, unseen}, moves, action, model, out.logs_[at(seat)]);
    }
    hand -= u[action].cards;
    table.play(seat, action, u[action]);
  }
  return out;
}

}  // namespace bothost::doudizhu
