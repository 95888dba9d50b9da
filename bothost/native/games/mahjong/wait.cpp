#include "mahjong/wait.h"

#include <bit>

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

bool fifth_completes(Counts& h, std::size_t t) {
  ++h[t];
  const bool ok = splits(h, 0, true);
  --h[t];
  return ok;
}

bool waits_standard(Counts& h, Tile but) {
  const auto& table = DistanceTable::get();
  int sum[4] = {};
  for (std::size_t t = 0; t < kKinds; ++t) sum[t / 9] += h[t];
  bool whole[4];
  int pairs = 0, broken = 0;
  for (std::size_t g = 0; g < 4; ++g) {
    const auto& d = table.distance(h, g);
    whole[g] = sum[g] % 3 == 0 ? d[sum[g] / 3] == 0 : sum[g] % 3 == 2 && d[8 + sum[g] / 3] == 0;
    pairs += sum[g] % 3 == 2;
    broken += !whole[g];
  }
  for (std::size_t g = 0; g < 4; ++g) {
    if (broken - !whole[g] > 0) continue;
    // Group g takes the tile: with it and the other groups there must be one pair.
    const bool makes_pair = sum[g] % 3 == 1;
    if (sum[g] % 3 == 0 || pairs - (sum[g] % 3 == 2) + makes_pair != 1) continue;
    const int lane = (makes_pair ? 8 : 0) + (sum[g] + 1) / 3;
    const std::size_t end = g < 3 ? 9 * g + 9 : kKinds;
    for (std::size_t t = 9 * g; t < end; ++t) {
      if (t == but) continue;
      if (h[t] == 4) {
        if (fifth_completes(h, t)) return true;
        continue;
      }
      ++h[t];
      const auto& d = table.distance(h, g);
      --h[t];
      if (d[lane] == 0) return true;
    }
  }
  return false;
}

bool waits_pairs(const Counts& h, Tile but) {
  int single = -1;
  for (int t = 0; t < kKinds; ++t)
    if (h[at(t)] % 2) {
      if (single >= 0) return false;
      single = t;
    }
  return single != but;
}

bool waits_knitted(const Counts& h, Tile but) {
  const TileMask one = kinds_with(h, 1);
  for (const auto perm : kKnitted) {
    if (std::popcount(one & perm) < 8) continue;
    for (std::size_t t = 0; t < kKinds; ++t) {
      if (t == but || (perm & ~(one | bit(t)))) continue;
      Counts rest = h;
      ++rest[t];
      for (auto m = perm; m; m &= m - 1) --rest[lowest(m)];
      if (splits(rest, 0, true)) return true;
    }
  }
  return false;
}

}  // namespace

bool waits_for_another(const Counts& standing, int melds, Tile but) {
  Counts h = standing;
  return waits_standard(h, but) || (melds == 0 && waits_pairs(h, but)) ||
         (melds <= 1 && waits_knitted(h, but));
}

}  // namespace bothost::mahjong
