// Tile counts as bit masks, so that all kinds change in a few instructions.
#pragma once
#include "mahjong/shape.h"

namespace bothost::mahjong {

/// Copies of each kind, as masks of the kinds with at least 1, 2, 3 and 4 of them.
struct Copies {
  using Masks = TileMask __attribute__((vector_size(32)));
  Masks least;

  explicit Copies(const Counts& counts)
      : least{kinds_with(counts, 1), kinds_with(counts, 2), kinds_with(counts, 3), kinds_with(counts, 4)} {}
  int of(std::size_t t) const {
    const Masks bits = least >> t & 1;
    return static_cast<int>(bits[0] + bits[1] + bits[2] + bits[3]);
  }
  /// Takes one of each of `kinds`, if there is one.
  void take(TileMask kinds) {
    least = (least & ~kinds) | (__builtin_shufflevector(least, Masks{}, 1, 2, 3, 4) & kinds);
  }
  /// Takes three of one kind, or all if there are fewer.
  void take_three(TileMask kind) {
    least = (least & ~kind) | (__builtin_shufflevector(least, Masks{}, 3, 4, 5, 6) & kind);
  }
};

}  // namespace bothost::mahjong
