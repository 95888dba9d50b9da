#include "mahjong/luck.h"

#include <algorithm>
#include <cmath>

#include "mahjong/policy.h"
#include "mahjong/targets.h"
#include "mahjong/view.h"

namespace bothost::mahjong {
namespace {

/// Horizons of Reach::chances, and those whose chances stand there once more, times the payment.
constexpr std::size_t kHorizons = 5;
constexpr std::array<std::size_t, 3> kPaid = {1, 2, 4};
/// The share of the tiles in other hands that are discarded. It is rough: the network is fitted to what it
/// gives.
constexpr double kDiscarded = 0.3;

float win_payment(int points) { return 24.0F + 1.5F * static_cast<float>(points); }

Lanes scale(float share, int points) {
  const float paid = share * win_payment(points);
  return Lanes{share, share, share, share, share, paid, paid, paid};
}

int copies(const Counts& counts, TileMask kinds) {
  int sum = 0;
  for (; kinds; kinds &= kinds - 1) sum += counts[lowest(kinds)];
  return sum;
}

/// TileChances that a missing tile comes within each horizon, by `arrival`.
class TileChances {
 public:
  TileChances(const Counts& wall, int wall_tiles, const Counts& unseen) {
    for (const auto source : {own, chow, any})
      for (std::size_t t = 0; t < kKinds; ++t)
        for (int left = 1; left <= unseen[t]; ++left) {
          // Copies that the hand misses before this one.
          const int before = unseen[t] - left;
          const double drawn = std::max(0, wall[t] - before);
          const double claimed = std::max(0.0, wall[t] + kDiscarded * (unseen[t] - wall[t]) - before);
          auto missed =
              static_cast<float>(std::exp(-(drawn + kClaims[source] * claimed) / std::max(1, wall_tiles)));
          Lanes& chance = chances_[arrival(source, t, left)];
          for (std::size_t h = 0; h < kHorizons; ++h, missed *= missed) chance[h] = 1 - missed;
          for (std::size_t i = 0; i < kPaid.size(); ++i) chance[kHorizons + i] = chance[kPaid[i]];
        }
  }
  const Lanes& operator[](std::size_t arrival) const { return chances_[arrival]; }

 private:
  std::array<Lanes, kArrivals> chances_{};
};

/// Adds `x` times a row of weights.
template <std::size_t N>
void add_row(std::array<float, N>& sums, const float* row, float x) {
  for (std::size_t i = 0; i < N; ++i) sums[i] += x * row[i];
}

}  // namespace

// -------------------------------------------------------------------------------------------- the network

LuckNetwork::LuckNetwork(std::span<const float> weights) : weights_(weights.begin(), weights.end()) {
  if (weights.size() != kWeights)
    throw InvalidInput("the network has " + std::to_string(kWeights) + " weights, not " +
                       std::to_string(weights.size()));
}

BySeat<double> LuckNetwork::operator()(const SeatInputs& inputs, Seat drawer, int wall) const {
  const float* first = weights_.data();
  const float* second = first + (kInputs + 1) * kFirst;
  const float* third = second + (kFirst + 1) * kSecond;
  BySeat<double> values{};
  double mean = 0;
  for (int seat = 0; seat < kSeats; ++seat) {
    std::array<float, kFirst> hidden;
    std::copy_n(first + kInputs * kFirst, kFirst, hidden.begin());
    const float* row = first;
    for (int i = 0; i < kSeats; ++i)
      for (const float x : inputs[at((seat + i) % kSeats)]) {
        add_row(hidden, row, x);
        row += kFirst;
      }
    add_row(hidden, row + kFirst * at((seat - drawer + kSeats) % kSeats), 1.0F);
    add_row(hidden, row + kFirst * kSeats, static_cast<float>(wall) / 84.0F);
    std::array<float, kSecond> last;
    std::copy_n(second + kFirst * kSecond, kSecond, last.begin());
    for (std::size_t i = 0; i < kFirst; ++i)
      if (hidden[i] > 0) add_row(last, second + i * kSecond, hidden[i]);
    float value = third[kSecond];
    for (std::size_t i = 0; i < kSecond; ++i) value += std::max(last[i], 0.0F) * third[i];
    values[at(seat)] = value;
    mean += value / kSeats;
  }
  for (auto& value : values) value -= mean;
  return values;
}

// --------------------------------------------------------------------------------------------- its inputs

namespace {

BySeat<Holding> holdings(const State& state) {
  BySeat<Holding> hands;
  for (int s = 0; s < kSeats; ++s) hands[at(s)] = holding_of(state.hand(s), state.table().melds_of(s));
  --hands[at(state.table().actor)].standing[state.log().last().tile];
  return hands;
}

}  // namespace

BeforeDraw::BeforeDraw(const State& state)
    : state_(&state), drawer_(state.table().actor), hands_(holdings(state)) {
  for (int s = 0; s < (state.rules().wall == WallModel::shared ? 1 : kSeats); ++s)
    for (const auto t : state.wall().left(s)) ++wall_[t];
  ++wall_[state.log().last().tile];
  for (const int n : wall_) wall_tiles_ += n;
  unseen_.fill(wall_);
  for (int s = 0; s < kSeats; ++s)
    for (int other = 0; other < kSeats; ++other)
      for (std::size_t t = 0; other != s && t < kKinds; ++t)
        add(unseen_[at(s)][t], hands_[at(other)].standing[t]);
}

BeforeDraw::Reach BeforeDraw::reach_of(int seat, const Holding& holding) const {
  Outlook outlook;
  outlook.unseen = unseen_[at(seat)];
  outlook.seat_wind = static_cast<std::uint8_t>(seat);
  outlook.prevalent_wind = state_->table().wind;
  outlook.minimum = state_->rules().minimum;
  Targets targets(holding, outlook);
  constexpr int kDeepest = 7;
  int depth = std::max(1, needed_tiles(holding.standing, static_cast<int>(holding.num_melds))) + 1;
  targets.find(std::min(depth, kDeepest));
  while (targets.nearest() > depth && depth < kDeepest) targets.find(depth = std::min(depth + 2, kDeepest));
  const TileChances chances(wall_, wall_tiles_, targets.unseen());
  Reach reach;
  reach.nearest = std::min(9, targets.nearest());
  for (const auto& target : targets.all()) {
    if (target.tiles_needed > reach.nearest + 1) continue;
    if (target.tiles_needed == 1) {
      // A special hand counts at least its one fan, drawn or not.
      const std::size_t tile = target.missing[0] / 5 % kKinds;
      const auto points =
          target.wait >= 0 ? targets.wait(target).points : std::array<int, 2>{target.points, target.points};
      if (points[0] > 0) reach.claimed_wins |= bit(tile);
      if (points[1] == 0) continue;
      reach.drawn_wins |= bit(tile);
      reach.chances +=
          chances[arrival(points[0] > 0 ? any : own, tile, targets.unseen()[tile])] * scale(1, points[1]);
      continue;
    }
    Lanes chance = Lanes{} + 1;
    for (std::size_t i = 0; i < target.tiles_needed; ++i) chance *= chances[target.missing[i]];
    const bool open = target.points >= outlook.minimum && target.shape == Shape::standard;
    reach.chances += chance * scale(open               ? 1.0F
                                    : target.concealed ? 0.6F
                                                       : 0.3F,
                                    std::max<int>(8, target.points));
  }
  return reach;
}

SeatInputs BeforeDraw::inputs_of(const State& state, const BySeat<Holding>& hands) {
  BySeat<const Reach*> reaches;
  BySeat<TileMask> won_by_others{};
  for (int s = 0; s < kSeats; ++s) {
    const auto [found, fresh] = reaches_.try_emplace({s, hands[at(s)]});
    if (fresh) found->second = reach_of(s, hands[at(s)]);
    reaches[at(s)] = &found->second;
    for (int other = 0; other < kSeats; ++other)
      if (other != s) won_by_others[at(other)] |= found->second.claimed_wins;
  }
  const auto wall = static_cast<float>(std::max(1, wall_tiles_));
  SeatInputs inputs{};
  for (int s = 0; s < kSeats; ++s) {
    const auto& reach = *reaches[at(s)];
    auto& x = inputs[at(s)];
    for (std::size_t h = 0; h < kHorizons; ++h) x[h] = 1 - std::exp(-reach.chances[h]);
    for (std::size_t i = 0; i < kPaid.size(); ++i)
      if (reach.chances[kPaid[i]] > 1e-6F)
        x[5 + i] = reach.chances[kHorizons + i] / reach.chances[kPaid[i]] / 50;
    x[8] = 4 * static_cast<float>(copies(wall_, reach.drawn_wins)) / wall;
    x[9] = 4 * static_cast<float>(copies(wall_, reach.claimed_wins)) / wall;
    if (reach.nearest <= 5) x[9 + at(reach.nearest)] = 1;
    x[15] = static_cast<float>(copies(hands[at(s)].standing, won_by_others[at(s)])) / 4;
    x[16] = static_cast<float>(state.table().left_for(state.rules(), s)) / 21;
  }
  return inputs;
}

// --------------------------------------------------------------------------------------------- the values

BySeat<double> BeforeDraw::value(Tile tile, const LuckNetwork& network) {
  State state = state_->redrawn(tile);
  do play_by_rule(state);
  while (!state.terminal() && !state.has_drawn());
  if (state.terminal()) return state.scores();
  return network(inputs_of(state, holdings(state)), state.table().actor, wall_tiles_ - 1);
}

BySeat<double> luck_of(const State& state, const LuckNetwork& network) {
  BySeat<double> luck{};
  replay_draws(state, [&](const State& after) {
    BeforeDraw before(after);
    const std::size_t came = after.log().last().tile;
    for (std::size_t t = 0; t < kKinds; ++t) {
      if (before.wall()[t] == 0) continue;
      const double share =
          static_cast<double>(t == came) - before.wall()[t] / static_cast<double>(before.wall_tiles());
      const auto value = before.value(static_cast<Tile>(t), network);
      for (std::size_t s = 0; s < kSeats; ++s) luck[s] += share * value[s];
    }
  });
  return luck;
}

// ---------------------------------------------------------------------------------------------- branches

namespace {

/// Whether `state` waits for a horizon that is yet to come. Counts the draws.
bool goes_on(const State& state, int log_before, int& draws) {
  if (state.terminal()) return false;
  return !(state.has_drawn() && state.log().size > log_before && --draws == 0);
}

/// Takes `action`, and lets rule players play until the horizon.
BySeat<double> play_out(State state, Seat seat, Action action, Appraisal appraisal, int draws,
                        const LuckNetwork& critic) {
  int before = state.log().size;
  apply_checked(state, seat, action, NoEvents{});
  while (goes_on(state, before, draws)) {
    before = state.log().size;
    play_by_rule(state, appraisal);
  }
  return state.terminal() ? state.scores() : BeforeDraw(state).value(critic);
}

}  // namespace

std::vector<BySeat<double>> branch(const State& state, Seat seat, std::span<const Action> actions,
                                   Appraisal appraisal, int draws, const LuckNetwork& critic) {
  if (draws > 0 && state.rules().flowers) throw InvalidInput("the value of hands with flowers is not known");
  std::vector<BySeat<double>> out;
  for (const auto action : actions) out.push_back(play_out(state, seat, action, appraisal, draws, critic));
  return out;
}

}  // namespace bothost::mahjong
