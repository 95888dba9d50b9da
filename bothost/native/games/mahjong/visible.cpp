#include "mahjong/visible.h"

#include <algorithm>
#include <cmath>

namespace bothost::mahjong {
namespace {

/// Pairs of unseen neighbours that make a chow with the number tile `t`: 0..3. A pair counts less if fewer
/// copies of its tiles are unseen.
double unseen_chows(const Counts& unseen, int t) {
  double chows = 0;
  const auto pair_free = [&](int a, int b) {
    return std::min(3, static_cast<int>(unseen[at(a)])) * std::min(3, static_cast<int>(unseen[at(b)])) / 9.0;
  };
  const int r = rank_of(t);
  if (r >= 2) chows += pair_free(t - 2, t - 1);
  if (r >= 1 && r <= 7) chows += pair_free(t - 1, t + 1);
  if (r <= 6) chows += pair_free(t + 1, t + 2);
  return chows;
}

// --- danger

/// What a winning discard costs more than an opponent's win costs anyway.
constexpr double kCost = 16;

/// Chance that a seat waits, by its melds (0..4) and discards.
double waiting(const Table& table, int seat, int discards) {
  constexpr double kSlope[] = {0.014, 0.022, 0.034, 0.055, 0.2};
  const double slope = kSlope[table.num_melds[at(seat)]];
  return std::min(0.8, slope * std::max(0, discards - 2 + table.num_melds[at(seat)]));
}

/// The one suit of a seat's two or more melds; -1 if there is no such suit.
int flush_suit(const Table& table, int seat) {
  int suit = -1, melds = 0;
  for (const auto& m : table.melds_of(seat)) {
    if (m.tile == kHidden || !is_number(m.tile)) continue;
    if (suit >= 0 && suit_of(m.tile) != suit) return -1;
    suit = suit_of(m.tile);
    ++melds;
  }
  return melds >= 2 ? suit : -1;
}

/// Chance that a waiting hand waits for a kind, from the unseen tiles.
double wanted(const Counts& unseen, int t) {
  const double own = unseen[at(t)] / 3.0;
  if (!is_number(t)) return 0.045 * std::min(1.0, own);
  return 0.022 * unseen_chows(unseen, t) + 0.02 * std::min(1.0, own);
}

/// Kinds that were discarded since the hand of `seat` last changed: it did not win by them.
std::array<bool, kKinds> let_pass(const View& view, int seat) {
  std::array<bool, kKinds> out{};
  const auto log = view.log().entries();
  for (auto e = log.rbegin(); e != log.rend(); ++e) {
    if (e->kind == Event::Kind::play) out[e->tile] = true;
    if (e->seat == seat && e->kind != Event::Kind::answer) break;
  }
  return out;
}

// --- draw rates

/// Own draws of a seat's hand.
constexpr double kDraws = 21;
constexpr std::size_t kClasses = 6;

/// Terminals, 2 and 8, 3 and 7, 4 to 6, winds, dragons.
std::size_t class_of(int t) {
  if (is_dragon(t)) return 5;
  if (is_wind(t)) return 4;
  return at(std::min({rank_of(t), 8 - rank_of(t), 3}));
}

/// Logarithm of a rate: a linear function of the features of a kind.
struct LogRate {
  std::array<double, kClasses> early, late;
  /// Per copy that others discarded, at most two: for number tiles, for honours, and an addition late in a
  /// hand.
  double number_out, honour_out, number_out_late, honour_out_late;
  /// Per pair of unseen neighbours that makes a chow with the tile.
  double chows, chows_late;
  /// Per unseen copy.
  double number_unseen, honour_unseen;
};

constexpr LogRate kDrawn = {{0.165, 0.256, 0.339, 0.345, 0.309, 0.282},
                            {0.024, -0.142, -0.172, -0.207, -0.049, -0.050},
                            0.071,
                            0.112,
                            0.021,
                            0.083,
                            -0.065,
                            -0.205,
                            -0.030,
                            -0.073};
constexpr LogRate kDiscarded = {{0.545, 0.550, 0.531, 0.427, 0.616, 0.631},
                                {-0.418, -0.473, -0.397, -0.396, -0.788, -0.897},
                                0.057,
                                -0.120,
                                0.129,
                                0.638,
                                -0.167,
                                -0.021,
                                -0.056,
                                -0.077};
constexpr LogRate kDiscardedBefore = {{0.508, 0.501, 0.467, 0.363, 0.535, 0.553},
                                      {-0.464, -0.505, -0.398, -0.397, -0.764, -0.881},
                                      0.067,
                                      -0.121,
                                      0.122,
                                      0.669,
                                      -0.146,
                                      -0.044,
                                      -0.046,
                                      -0.058};

}  // namespace

std::array<double, kKinds> danger(const View& view) {
  std::array<double, kKinds> out{};
  const auto unseen = view.unseen();
  const auto& table = view.table();
  std::array<double, kKinds> chance_wanted{};
  for (int t = 0; t < kKinds; ++t) chance_wanted[at(t)] = wanted(unseen, t);
  for (int i = 1; i < kSeats; ++i) {
    const int seat = (view.seat() + i) % kSeats;
    const auto discards = view.discards(seat);
    const double waits = waiting(table, seat, static_cast<int>(discards.size()));
    const auto passed = let_pass(view, seat);
    const int flush = flush_suit(table, seat);
    for (int t = 0; t < kKinds; ++t) {
      if (passed[at(t)]) continue;
      double chance = waits * chance_wanted[at(t)];
      if (flush >= 0 && is_number(t)) chance *= suit_of(t) == flush ? 1.6 : 0.4;
      if (std::ranges::find(discards, t) != discards.end()) chance *= 0.5;
      out[at(t)] += chance * kCost;
    }
  }
  return out;
}

DrawRates draw_rates(const View& view, double left) {
  const auto unseen = view.unseen();
  const double late = std::max(0.0, 1 - left / kDraws);
  Counts out{};
  for (int i = 1; i < kSeats; ++i)
    for (const auto t : view.discards((view.seat() + i) % kSeats)) ++out[t];
  DrawRates result;
  for (int t = 0; t < kKinds; ++t) {
    const auto c = class_of(t);
    const bool number = is_number(t);
    const double chows = number ? unseen_chows(unseen, t) : 0;
    const double lie = std::min<int>(out[at(t)], 2), hidden = unseen[at(t)];
    const auto rate = [&](const LogRate& r) {
      const double of_lying =
          number ? r.number_out + r.number_out_late * late : r.honour_out + r.honour_out_late * late;
      return std::exp(r.early[c] + r.late[c] * late + of_lying * lie +
                      (r.chows + r.chows_late * late) * chows +
                      (number ? r.number_unseen : r.honour_unseen) * hidden);
    };
    result.drawn[at(t)] = rate(kDrawn);
    result.discarded[at(t)] = rate(kDiscarded);
    result.discarded_before[at(t)] = rate(kDiscardedBefore);
  }
  return result;
}

}  // namespace bothost::mahjong
