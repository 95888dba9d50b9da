#include "mahjong/shape.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>

#include "core/types.h"

namespace bothost::mahjong {
namespace {

constexpr int kMostTiles = 14;
constexpr int kLoSize = 3125, kHiSize = 625;
constexpr std::uint8_t kFar = 60;  // more than any distance, and kFar * 4 still fits a byte

int digit_sum(int key) {
  int sum = 0;
  for (; key; key /= 5) sum += key % 5;
  return sum;
}

/// All bits of the lanes for which a comparison holds.
template <class Comparison>
SuitUseful widen(Comparison holds) {
  using Signed = std::int16_t __attribute__((vector_size(32)));
  return reinterpret_cast<SuitUseful>(__builtin_convertvector(holds, Signed));
}
SuitDistance least(SuitDistance a, SuitDistance b) { return a < b ? a : b; }
SuitDistance all(std::uint8_t x) { return SuitDistance{} + x; }

/// Lane i is lane from(i) of `a`, or kFar where that is 16.
template <auto from>
SuitDistance moved(SuitDistance a) {
  return __builtin_shufflevector(a, all(kFar), from(0), from(1), from(2), from(3), from(4), from(5), from(6),
                                 from(7), from(8), from(9), from(10), from(11), from(12), from(13), from(14),
                                 from(15));
}
/// Both halves moved up by kBy lanes.
template <int kBy>
SuitDistance up(SuitDistance a) {
  return moved<[](int i) { return i % 8 >= kBy ? i - kBy : 16; }>(a);
}
/// The lower half moved into the upper one, kBy lanes further.
template <int kBy>
SuitDistance with_pair(SuitDistance a) {
  return moved<[](int i) { return i >= 8 + kBy ? i - 8 - kBy : 16; }>(a);
}

/// Distances of two disjoint groups of kinds together: the cheapest split of the melds and of the pair.
SuitDistance join(SuitDistance a, SuitDistance b) {
  SuitDistance r = least(a + all(b[0]), with_pair<0>(a) + all(b[8]));
  r = least(r, least(up<1>(a) + all(b[1]), with_pair<1>(a) + all(b[9])));
  r = least(r, least(up<2>(a) + all(b[2]), with_pair<2>(a) + all(b[10])));
  r = least(r, least(up<3>(a) + all(b[3]), with_pair<3>(a) + all(b[11])));
  r = least(r, least(up<4>(a) + all(b[4]), with_pair<4>(a) + all(b[12])));
  return r;
}

/// As join, but only the distance of `melds` melds and a pair.
int join_one(SuitDistance a, SuitDistance b, int melds) {
  int best = kFar;
  for (int j = 0; j <= melds; ++j) best = std::min({best, a[melds - j] + b[8 + j], a[8 + melds - j] + b[j]});
  return best;
}

struct Groups {
  const SuitDistance* part[4];
  explicit Groups(const Counts& hand) {
    for (std::size_t g = 0; g < 4; ++g) part[g] = &DistanceTable::get().distance(hand, g);
  }
  int needed(int melds) const { return join_one(join(join(*part[0], *part[1]), *part[2]), *part[3], melds); }
};

/// Adds every set of melds and pair whose tiles fit, at distance 0.
class WinningGroups {
 public:
  template <class Index>
  WinningGroups(int kinds, Index index, std::vector<SuitDistance>& out)
      : kinds_(kinds), chows_(kinds == 9 ? 7 : 0) {
    add(0, 0, index, out);
  }

 private:
  template <class Index>
  void add(int first, int melds, const Index& index, std::vector<SuitDistance>& out) {
    out[index(count_)][melds] = 0;
    for (int i = 0; i < kinds_; ++i) {
      if (count_[i] > 2) continue;
      mahjong::add(count_[i], 2);
      out[index(count_)][8 + melds] = 0;
      mahjong::add(count_[i], -2);
    }
    if (melds == 4) return;
    for (int m = first; m < kinds_ + chows_; ++m) {
      change(m, 1);
      if (std::all_of(count_, count_ + kinds_, [](int c) { return c <= 4; })) add(m, melds + 1, index, out);
      change(m, -1);
    }
  }
  void change(int meld, int sign) {
    if (meld < kinds_)
      mahjong::add(count_[meld], 3 * sign);
    else
      for (int i = meld - kinds_; i < meld - kinds_ + 3; ++i) mahjong::add(count_[i], sign);
  }
  int kinds_, chows_;
  std::uint8_t count_[9] = {};
};

/// Bits 0x01 of the eight bytes gathered into the low eight bits.
std::uint64_t gather(std::uint64_t ones) { return (ones * 0x0102040810204080ULL) >> 56; }

int needed_orphans(TileMask one, TileMask two) {
  return 14 - std::popcount(one & kOrphanMask) - ((two & kOrphanMask) != 0 ? 1 : 0);
}

int needed_honours_knitted(TileMask one) {
  int most = 0;
  for (const auto perm : kKnitted) most = std::max(most, std::popcount(one & (perm | kHonourMask)));
  return 14 - std::min(most, 14);
}

int needed_pairs(TileMask two, TileMask four, TileMask odd) {
  const int pairs = std::min(7, std::popcount(two) + std::popcount(four));
  return 7 - pairs + std::max(0, 7 - pairs - std::popcount(odd));
}

/// Knitted straight, if it is below `bound`; else `bound`.
int needed_knitted(const Counts& hand, TileMask one, int melds, int bound) {
  for (const auto perm : kKnitted) {
    const int missing = 9 - std::popcount(one & perm);
    if (missing < bound) bound = std::min(bound, missing + Groups(without(hand, perm)).needed(1 - melds));
  }
  return bound;
}

struct Kinds {
  TileMask one, two, three, four;
  explicit Kinds(const Counts& hand)
      : one(kinds_with(hand, 1)),
        two(kinds_with(hand, 2)),
        three(kinds_with(hand, 3)),
        four(kinds_with(hand, 4)) {}
  TileMask odd() const { return (one & ~two) | (three & ~four); }
};

/// All but that of the knitted straight; `standard` is known.
Distances most_distances(const Kinds& k, int melds, int standard) {
  if (melds > 0) return {standard, kNever, kNever, kNever, kNever};
  return {standard, needed_pairs(k.two, k.four, k.odd()), needed_orphans(k.one, k.two), kNever,
          needed_honours_knitted(k.one)};
}

}  // namespace

const DistanceTable& DistanceTable::get() {
  static const DistanceTable table;
  return table;
}

DistanceTable::DistanceTable() : lo_rank_(kLoSize), hi_base_(kHiSize) {
  std::vector<int> lo(kLoSize);
  std::iota(lo.begin(), lo.end(), 0);
  std::ranges::stable_sort(lo, [](int a, int b) { return digit_sum(a) < digit_sum(b); });
  std::array<std::uint32_t, 21> prefix{};  // lo parts of at most n tiles
  for (int i = 0; i < kLoSize; ++i) {
    lo_rank_[at(lo[at(i)])] = static_cast<std::uint16_t>(i);
    for (auto n = at(digit_sum(lo[at(i)])); n < prefix.size(); ++n) ++prefix[n];
  }
  std::uint32_t size = 0;
  for (int h = 0; h < kHiSize; ++h) {
    hi_base_[at(h)] = size;
    if (const int left = kMostTiles - digit_sum(h); left >= 0) size += prefix[at(left)];
  }
  suits_ = {std::vector<SuitDistance>(size, all(kFar)), std::vector<SuitUseful>(size)};
  WinningGroups(9, [this](const std::uint8_t* c) { return suit_index(c); }, suits_.distance);
  relax(suits_, 9);
  honours_ = {std::vector<SuitDistance>(78125, all(kFar)), std::vector<SuitUseful>(78125)};
  WinningGroups(7, [](const std::uint8_t* c) { return honour_index(c); }, honours_.distance);
  relax(honours_, 7);
}

void DistanceTable::relax(Table& table, int kinds) const {
  // First what must be added, from the fullest hand down; then what the hand holds beyond a target costs
  // nothing. Neither pass leaves the hands of at most 14 tiles: hand -> common part -> target only shrinks,
  // then grows. A tile is useful where it lies on a shortest such way; the tiles to add may be added in any
  // order.
  constexpr int kPower[] = {1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125};
  const auto place = [&](int key) {
    return kinds == 7 ? at(key) : at(hi_base_[at(key / kLoSize)] + lo_rank_[at(key % kLoSize)]);
  };
  std::vector<std::uint8_t> tiles(at(kPower[kinds]));
  for (int i = 0, size = 1; i < kinds; ++i, size *= 5)
    for (int k = size; k < 5 * size; ++k) tiles[at(k)] = static_cast<std::uint8_t>(tiles[at(k - size)] + 1);
  for (int key = kPower[kinds] - 1; key >= 0; --key) {
    if (tiles[at(key)] >= kMostTiles) continue;
    const auto here = place(key);
    SuitDistance v = table.distance[here];
    SuitUseful useful{};
    for (int i = 0; i < kinds; ++i) {
      if (key / kPower[i] % 5 == 4) continue;
      const auto bit = static_cast<std::uint16_t>(1u << i);
      const SuitUseful rank = SuitUseful{} + bit;
      const SuitDistance via = table.distance[place(key + kPower[i])] + all(1);
      useful = (useful & ~widen(via < v)) | (widen(via <= v) & rank);
      v = least(v, via);
    }
    table.distance[here] = v;
    table.useful[here] = useful;
  }
  for (int key = 1; key < kPower[kinds]; ++key) {
    if (tiles[at(key)] > kMostTiles) continue;
    const auto here = place(key);
    SuitDistance v = table.distance[here];
    SuitUseful useful = table.useful[here];
    for (int i = 0; i < kinds; ++i) {
      if (key / kPower[i] % 5 == 0) continue;
      const auto less = place(key - kPower[i]);
      const SuitDistance via = table.distance[less];
      useful = (useful & ~widen(via < v)) | (widen(via <= v) & table.useful[less]);
      v = least(v, via);
    }
    table.distance[here] = v;
    table.useful[here] = useful;
  }
}

TileMask kinds_with(const Counts& hand, int copies) {
  const std::uint64_t lift = 0x0101010101010101ULL * static_cast<std::uint64_t>(0x80 - copies);
  TileMask mask = 0;
  for (std::size_t i = 0; i < 32; i += 8) {
    std::uint64_t x;
    std::memcpy(&x, hand.data() + i, 8);
    if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap64(x);
    mask |= gather(((x + lift) >> 7) & 0x0101010101010101ULL) << i;
  }
  mask |= static_cast<TileMask>(hand[32] >= copies) << 32 | static_cast<TileMask>(hand[33] >= copies) << 33;
  return mask;
}

Distances distances(const Counts& hand, int melds) {
  const Kinds k(hand);
  auto d = most_distances(k, melds, needed_standard(hand, melds));
  if (melds <= 1) d[at(Shape::knitted_straight)] = needed_knitted(hand, k.one, melds, kNever);
  return d;
}

int needed_standard(const Counts& hand, int melds) { return Groups(hand).needed(4 - melds); }

int needed_tiles(const Counts& hand, int melds) {
  int best = Groups(hand).needed(4 - melds);
  if (melds > 1) return best;
  const TileMask one = kinds_with(hand, 1);
  if (melds == 0) {
    const Kinds k(hand);
    best = std::min({best, needed_pairs(k.two, k.four, k.odd()), needed_orphans(k.one, k.two),
                     needed_honours_knitted(k.one)});
  }
  return needed_knitted(hand, one, melds, best);
}

namespace {

struct NeededAndUseful {
  int needed;
  TileMask tiles;
};

/// Lane by lane what the other groups need for the shares that a group leaves them of kSets sets and the
/// pair.
template <int kSets>
SuitDistance counterpart(SuitDistance others) {
  return moved<[](int i) {
    const int m = i % 8;
    return kSets < m ? 16 : i < 8 ? 8 + kSets - m : kSets - m;
  }>(others);
}

/// The union of all lanes.
unsigned any_lane(SuitUseful v) {
  std::uint64_t w[4];
  std::memcpy(w, &v, sizeof w);
  std::uint64_t x = (w[0] | w[1]) | (w[2] | w[3]);
  x |= x >> 32;
  return static_cast<unsigned>((x | x >> 16) & 0xffff);
}

template <int kSets>
NeededAndUseful standard_with_useful(const Counts& hand) {
  const Groups g(hand);
  const SuitDistance ab = join(*g.part[0], *g.part[1]), cd = join(*g.part[2], *g.part[3]);
  const SuitDistance rest[4] = {join(cd, *g.part[1]), join(cd, *g.part[0]), join(ab, *g.part[3]),
                                join(ab, *g.part[2])};
  const int needed = join_one(rest[0], *g.part[0], kSets);
  TileMask tiles = 0;
  for (std::size_t s = 0; s < 4; ++s) {
    // Every split of the sets and the pair between this group and the others that needs no more than must be:
    // a tile that lowers this group's share lowers the whole.
    const auto best = *g.part[s] + counterpart<kSets>(rest[s]) == all(static_cast<std::uint8_t>(needed));
    tiles |= TileMask{any_lane(DistanceTable::get().useful(hand, s) & widen(best))} << (9 * s);
  }
  return {needed, tiles};
}

/// Tiles needed for `sets` sets (0..4) and a pair, and the kinds whose arrival lowers that.
NeededAndUseful standard_with_useful(const Counts& hand, int sets) {
  constexpr NeededAndUseful (*kBySets[])(const Counts&) = {standard_with_useful<0>, standard_with_useful<1>,
                                                           standard_with_useful<2>, standard_with_useful<3>,
                                                           standard_with_useful<4>};
  return kBySets[sets](hand);
}

TileMask useful_knitted(const Counts& hand, int melds, int needed) {
  const TileMask one = kinds_with(hand, 1);
  TileMask tiles = 0;
  for (const auto perm : kKnitted) {
    const int missing = 9 - std::popcount(one & perm);
    if (missing > needed) continue;
    const Counts rest = without(hand, perm);
    const auto [other, useful] = standard_with_useful(rest, 1 - melds);
    if (missing + other > needed) continue;
    tiles |= perm & ~one;
    if (other > 0) tiles |= useful & ~kinds_with(hand, 4);
  }
  return tiles;
}

/// Useful tiles of one shape, of which `needed` tiles are needed.
TileMask useful_of(const Counts& hand, const Kinds& k, int melds, Shape shape, int needed) {
  if (needed == 0 || needed >= kNever) return 0;
  switch (shape) {
    case Shape::standard: return standard_with_useful(hand, 4 - melds).tiles;
    case Shape::seven_pairs: {
      const int pairs = std::min(7, std::popcount(k.two) + std::popcount(k.four));
      const TileMask any = 7 - pairs > std::popcount(k.odd()) ? ~k.four & ((TileMask{1} << kKinds) - 1) : 0;
      return k.odd() | any;
    }
    case Shape::thirteen_orphans: return (k.two & kOrphanMask) == 0 ? kOrphanMask : kOrphanMask & ~k.one;
    case Shape::knitted_straight: return useful_knitted(hand, melds, needed);
    default: {
      TileMask tiles = 0;
      for (const auto perm : kKnitted)
        if (14 - std::popcount(k.one & (perm | kHonourMask)) == needed)
          tiles |= (perm | kHonourMask) & ~k.one;
      return tiles;
    }
  }
}

}  // namespace

Useful useful_tiles_of(const Counts& hand, int melds, Shape shape) {
  const int needed = distances(hand, melds)[at(shape)];
  return {needed - 1, useful_of(hand, Kinds(hand), melds, shape, needed)};
}

Useful useful_tiles(const Counts& hand, int melds) {
  const Kinds k(hand);
  const auto standard = standard_with_useful(hand, 4 - melds);
  auto d = most_distances(k, melds, standard.needed);
  auto& knitted = d[at(Shape::knitted_straight)];
  int needed = *std::ranges::min_element(d);
  if (melds <= 1) knitted = needed_knitted(hand, k.one, melds, needed + 1);
  needed = std::min(needed, knitted);
  Useful best{needed - 1, standard.needed == needed && needed > 0 ? standard.tiles : 0};
  for (std::size_t s = 1; s < kShapes; ++s)
    if (d[s] == needed) best.tiles |= useful_of(hand, k, melds, static_cast<Shape>(s), needed);
  return best;
}

void check_hand(const Counts& hand, int melds) {
  int sum = 0, most = 0;
  for (const int c : hand) {
    most = std::max(most, c);
    sum += c;
  }
  if (most > 4) throw InvalidInput("a kind of tile is held more than four times");
  if (sum > kMostTiles) throw InvalidInput("a hand holds at most 14 tiles, not " + std::to_string(sum));
  if (melds < 0 || melds > 4) throw InvalidInput("a hand has 0 to 4 melds, not " + std::to_string(melds));
}

}  // namespace bothost::mahjong
