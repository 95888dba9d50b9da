#include "mahjong/draw_rates.h"

#include <algorithm>
#include <cmath>

#include "mahjong/danger.h"

namespace bothost::mahjong {
namespace {

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
