// How readily the copies of each kind come to a seat.
#pragma once
#include <array>

#include "mahjong/view.h"

namespace bothost::mahjong {

/// By kind, how often a copy that the seat does not see is drawn by it or discarded by others, against one of
/// all unseen tiles taken alike: others keep middle tiles and pairs of dragons, and let go of what nobody
/// needs, so that late in a hand the unseen winds lie in the wall and the unseen fives in other hands.
struct Supply {
  std::array<double, kKinds> drawn{}, discarded{};
  /// By the seat before alone, whose discards make chows.
  std::array<double, kKinds> discarded_before{};
};

/// An estimate from what lies open. Source: Poisson regressions on the discards of about 1,000 hands of four
/// rule players; the mean over all unseen copies there is 1. `left`: the seat's own draws that are left.
Supply supply(const View& view, double left);

}  // namespace bothost::mahjong
