// What a seat estimates from the tiles that it sees: what a discard may cost, and how often each kind of tile
// comes to it, by its own draws and by the discards of others.
#pragma once
#include <array>

#include "mahjong/view.h"

namespace bothost::mahjong {

/// By kind, the points that the seat is expected to lose because an opponent wins by this discard. The
/// estimate uses visible facts: each opponent's progress (melds, discards), whether its melds suggest a
/// flush, the tiles it did not claim since its hand last changed, and the unseen copies of the tile and its
/// neighbours.
std::array<double, kKinds> danger(const View& view);

/// By kind, the rate of an unseen copy relative to the mean over all unseen copies. Others keep middle tiles
/// and pairs of dragons and discard what no one needs. Late in a hand the unseen winds are therefore in the
/// wall, and the unseen fives in other hands.
struct DrawRates {
  std::array<double, kKinds> drawn{}, discarded{};
  /// Discarded by the previous seat, whose discards alone can be claimed for a chow.
  std::array<double, kKinds> discarded_before{};
};

/// An estimate from the visible tiles. Source: Poisson regressions on the discards of about 1,000 hands of
/// four rule players; the mean over all unseen copies there is 1. `left`: the seat's remaining draws.
DrawRates draw_rates(const View& view, double left);

}  // namespace bothost::mahjong
