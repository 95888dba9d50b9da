#include "mahjong/wait.h"

#include <algorithm>

#include "mahjong/shape.h"

namespace bothost::mahjong {
namespace {

/// Whether `c` (kinds 0..33) splits into chows, pungs and, if asked, one pair. Any number of copies.
bool splits(Counts& c, std::size_t t, bool pair) {
  while (t < kKinds && c[t] == 0) ++t;
  if (t == kKinds) return !pair;
  const auto take = [&](int n, bool pair_left) {
    add(c[t], -n);
    const bool ok = splits(c, t, pair_left);
    add(c[t], n);
    return ok;
  };
  if (c[t] >= 3 && take(3, pair)) return true;
  if (pair && c[t] >= 2 && take(2, false)) return true;
  if (!is_number(static_cast<int>(t)) || rank_of(static_cast<int>(t)) > 6 || !c[t + 1] || !c[t + 2])
    return false;
  --c[t], --c[t + 1], --c[t + 2];
  const bool ok = splits(c, t, pair);
  ++c[t], ++c[t + 1], ++c[t + 2];
  return ok;
}

/// Whether the tiles, of which one kind may be there five times, are sets and a pair, or a knitted straight
/// with the rest.
bool completes(Counts& hand, int melds) {
  if (splits(hand, 0, true)) return true;
  const TileMask one = kinds_with(hand, 1);
  return melds <= 1 && std::ranges::any_of(kKnitted, [&](TileMask perm) {
           if (perm & ~one) return false;
           Counts rest = hand;
           for (auto m = perm; m; m &= m - 1) --rest[lowest(m)];
           return splits(rest, 0, true);
         });
}

}  // namespace

bool waits_for_another(const Counts& standing, int melds, Tile but) {
  const auto useful = useful_tiles(standing, melds);
  if (useful.shanten == 0 && useful.tiles & ~bit(but)) return true;
  Counts hand = standing;
  for (auto four = kinds_with(hand, 4) & ~bit(but); four; four &= four - 1) {
    ++hand[lowest(four)];
    if (completes(hand, melds)) return true;
    --hand[lowest(four)];
  }
  return false;
}

}  // namespace bothost::mahjong
