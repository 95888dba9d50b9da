// How often each kind of tile comes to a seat, by its own draws and by the discards of others.
#pragma once
#include <array>

#include "mahjong/view.h"

namespace bothost::mahjong {

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
