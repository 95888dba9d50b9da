#include "doudizhu/analysis.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "doudizhu/generate.h"

namespace bothost::doudizhu {
namespace {

using std::popcount;

constexpr int kSingleBase = 2 * 7 + kPlayCost;  // value of a unit of rank r in a partition: 2 r - kSingleBase

/// Sums of the positions of the bits of a byte.
constexpr std::array<std::uint8_t, 256> kBitSums = [] {
  std::array<std::uint8_t, 256> out{};
  for (unsigned byte = 0; byte < 256; ++byte)
    for (unsigned bit = 0; bit < 8; ++bit)
      out[byte] = static_cast<std::uint8_t>(out[byte] + (byte >> bit & 1) * bit);
  return out;
}();

int rank_sum(RankMask m) {
  const RankMask high = m >> 8;
  return kBitSums[m & 255] + kBitSums[high] + 8 * popcount(high);
}

/// What is left after the chains: disjoint masks of the ranks held once, twice, three and four times (a
/// rocket taken out), and the lengths and starts of the planes among the chains.
struct Rest {
  RankMask solos, pairs, trios, fours;
  bool rocket;
  int num_planes;
  std::array<std::uint8_t, 4> plane_length;
};

// --- fewest plays

/// Units left over once the bodies took kickers: every plane and four takes all of its kickers or none, trios
/// take one unit each. A pair may be broken into two solos.
int units_left(int solos, int pairs, int trios, int bodies, const std::uint8_t* need) {
  if (bodies == 0) return std::max(0, solos + pairs - trios);
  int best = units_left(solos, pairs, trios, bodies - 1, need + 1);
  const int n = *need;
  if (solos + 2 * pairs >= n) {
    const int broken = std::max(0, (n - solos + 1) / 2);
    best = std::min(best, units_left(solos - n + 2 * broken, pairs - broken, trios, bodies - 1, need + 1));
  }
  if (pairs >= n) best = std::min(best, units_left(solos, pairs - n, trios, bodies - 1, need + 1));
  return best;
}

int close_fewest(const Rest& r) {
  const int n1 = popcount(r.solos), n2 = popcount(r.pairs), n3 = popcount(r.trios), n4 = popcount(r.fours);
  int best = std::numeric_limits<int>::max();
  std::uint8_t need[10];
  for (int i = 0; i < r.num_planes; ++i) need[i] = r.plane_length[at(i)];
  for (int jokers_apart = 0; jokers_apart <= (r.rocket ? 1 : 0); ++jokers_apart)
    for (int split_trios = 0; split_trios <= n3; ++split_trios)                   // into a pair and a solo
      for (int split_fours = 0; split_fours <= n4; ++split_fours)                 // into two pairs
        for (int trio_fours = 0; trio_fours <= n4 - split_fours; ++trio_fours) {  // into a trio and a solo
          const int fours = n4 - split_fours - trio_fours, trios = n3 - split_trios + trio_fours;
          const int solos = n1 + split_trios + trio_fours + 2 * jokers_apart;
          const int pairs = n2 + split_trios + 2 * split_fours;
          for (int i = 0; i < fours; ++i) need[r.num_planes + i] = 2;
          const int bodies = r.num_planes + fours;
          const int plays =
              bodies + trios + (r.rocket && !jokers_apart) + units_left(solos, pairs, trios, bodies, need);
          best = std::min(best, plays);
        }
  return best;
}

// --- best partition

struct Units {
  RankMask solos, pairs;
  int value;
};

/// Removes the n lowest ranks of the mask. False where there are fewer.
bool take_lowest(RankMask& mask, int n) {
  for (; n > 0; --n) {
    if (!mask) return false;
    mask &= mask - 1;
  }
  return true;
}

int units_value(Units u, int trios) {
  for (; trios > 0 && (u.solos | u.pairs); --trios) {
    const RankMask low = (u.solos | u.pairs) & -(u.solos | u.pairs);
    (u.solos & low ? u.solos : u.pairs) ^= low;
  }
  return u.value + 2 * (rank_sum(u.solos) + rank_sum(u.pairs)) -
         kSingleBase * (popcount(u.solos) + popcount(u.pairs));
}

int with_planes(const Rest& r, Units u, int trios, int index) {
  if (index == r.num_planes) return units_value(u, trios);
  int best = with_planes(r, u, trios, index + 1);
  const int n = r.plane_length[at(index)];
  if (Units v = u; take_lowest(v.solos, n)) best = std::max(best, with_planes(r, v, trios, index + 1));
  if (Units v = u; take_lowest(v.pairs, n)) best = std::max(best, with_planes(r, v, trios, index + 1));
  return best;
}

int with_fours(const Rest& r, Units u, int trios, RankMask fours) {
  if (!fours) return with_planes(r, u, trios, 0);
  const int rank = std::countr_zero(fours);
  fours &= fours - 1;
  Units bomb = u;
  bomb.value += 2 * (rank + 7) - kPlayCost;
  int best = with_fours(r, bomb, trios, fours);
  u.value += rank - kPlayCost;
  if (Units v = u; take_lowest(v.solos, 2)) best = std::max(best, with_fours(r, v, trios, fours));
  if (Units v = u; take_lowest(v.pairs, 2)) best = std::max(best, with_fours(r, v, trios, fours));
  return best;
}

int close_value(const Rest& r) {
  const int trios = popcount(r.trios);
  Units u{r.solos, r.pairs, 2 * rank_sum(r.trios) - kSingleBase * trios + (r.rocket ? 40 - kPlayCost : 0)};
  return with_fours(r, u, trios, r.fours);
}

// --- walk over sets of chains

/// What is asked of the partitions of a hand.
enum class Target { fewest, value };

template <Target target>
struct Walk {
  int best = target == Target::fewest ? std::numeric_limits<int>::max() : std::numeric_limits<int>::min();
  Rest rest{};
  bool rocket;

  /// `so_far`: plays, or their value, of the chains taken out.
  void close(Cards hand, int so_far) {
    const Ranks m(hand);
    rest.solos = m.one & ~m.two;
    rest.pairs = m.two & ~m.three;
    rest.trios = m.three & ~m.four;
    rest.fours = m.four;
    rest.rocket = rocket;
    if constexpr (target == Target::fewest)
      best = std::min(best, so_far + close_fewest(rest));
    else
      best = std::max(best, so_far + close_value(rest));
  }

  /// Chains are chosen in ascending order of (width, start, length), widths downwards.
  void go(Cards hand, int width, int start, int length, int so_far) {
    close(hand, so_far);
    for (int w = width; w >= 1; --w) {
      const Ranks m(hand);
      const RankMask mask = (w == 1 ? m.one : w == 2 ? m.two : m.three) & kChainMask;
      const int s0 = w == width ? start : 0;
      for (RankMask starts = detail::runs(mask, kMinChain[w]) >> s0 << s0; starts; starts &= starts - 1) {
        const int s = std::countr_zero(starts);
        const int shortest = w == width && s == start ? std::max(length, kMinChain[w]) : kMinChain[w];
        const int longest = std::min(std::countr_one(mask >> s), kMaxChain[w]);
        Cards body = 0;
        for (int n = 1; n <= longest; ++n) {
          const int top = s + n - 1;
          body += card(top, w);
          if (n < shortest) continue;
          // A plane is counted among the plays with its kickers, by close.
          if (w == 3) rest.plane_length[at(rest.num_planes++)] = static_cast<std::uint8_t>(n);
          const int worth = target == Target::fewest ? w < 3 : (w == 3 ? top : 2 * (top - 7)) - kPlayCost;
          go(hand - body, w, s, n, so_far + worth);
          if (w == 3) --rest.num_planes;
        }
      }
    }
  }
};

/// Cached results of a hand.
struct Entry {
  static constexpr std::int16_t kNoValue = std::numeric_limits<std::int16_t>::min();
  static constexpr std::uint8_t kNoFewest = 255;
  Cards hand = ~Cards{0};
  std::int16_t value = kNoValue;
  std::uint8_t fewest = kNoFewest;
};

/// Direct-mapped, 256 KB per thread.
Entry& remembered(Cards hand) {
  constexpr int kBits = 14;
  thread_local std::vector<Entry> cache(1u << kBits);
  Entry& e = cache[(hand * 0x9e3779b97f4a7c15ULL) >> (64 - kBits)];
  if (e.hand != hand) e = {.hand = hand};
  return e;
}

template <Target target>
int walked(Cards hand) {
  Walk<target> walk;
  walk.rocket = contains(hand, kRocket);
  walk.go(walk.rocket ? hand - kRocket : hand, 3, 0, 0, 0);
  return walk.best;
}

/// Every lead that uses a card of the lowest rank held.
std::vector<Action> leads_of_lowest(Cards hand) {
  thread_local std::vector<Action> room(kMoveRoom);
  const auto& u = Universe::get();
  const int low = std::countr_zero(hand) / 4;
  std::vector<Action> out;
  std::copy_if(room.data(), Generator(hand, kSameRankKickers).lead(room.data()), std::back_inserter(out),
               [&](Action a) { return count_of(u[a].cards, low) > 0; });
  return out;
}

/// Depth-first search for a partition into exactly `plays` plays; the bound leaves few branches.
bool partition_into(Cards hand, int plays, std::vector<Action>& out) {
  if (hand == 0) return plays == 0;
  if (plays == 0) return false;
  for (const Action a : leads_of_lowest(hand)) {
    const Cards rest = hand - Universe::get()[a].cards;
    if (rest ? fewest_plays_bound(rest) > plays - 1 : plays != 1) continue;
    out.push_back(a);
    if (partition_into(rest, plays - 1, out)) return true;
    out.pop_back();
  }
  return false;
}

void weakest_first(std::vector<Action>& plays) {
  std::ranges::stable_sort(plays, [](Action a, Action b) {
    return play_value(Universe::get()[a]) < play_value(Universe::get()[b]);
  });
}

}  // namespace

std::vector<Action> shortest_partition(Cards hand) {
  std::vector<Action> out;
  if (hand == 0) return out;
  for (int plays = fewest_plays_bound(hand); !partition_into(hand, plays, out); ++plays) out.clear();
  weakest_first(out);
  return out;
}

int fewest_plays(Cards hand) { return static_cast<int>(shortest_partition(hand).size()); }

int fewest_plays_bound(Cards hand) {
  if (hand == 0) return 0;
  Entry& e = remembered(hand);
  if (e.fewest == Entry::kNoFewest) e.fewest = static_cast<std::uint8_t>(walked<Target::fewest>(hand));
  return e.fewest;
}

int play_value(const Move& m) {
  const int top = m.rank + m.length - 1;
  if (m.kind == Kind::pass || m.kind == Kind::call) return 0;
  if (m.kind == Kind::rocket) return 40;
  if (m.kind >= Kind::bomb) return 2 * (top + 7);  // and shuttles
  return m.kind >= Kind::trio_chain ? top : 2 * (top - 7);
}

int hand_value(Cards hand) {
  if (hand == 0) return 0;
  Entry& e = remembered(hand);
  if (e.value == Entry::kNoValue) e.value = static_cast<std::int16_t>(walked<Target::value>(hand));
  return e.value;
}

std::vector<Action> best_partition(Cards hand) {
  std::vector<Action> out;
  while (hand) {
    Action best = kPass;
    int best_value = std::numeric_limits<int>::min();
    for (const Action a : leads_of_lowest(hand)) {
      const Move& m = Universe::get()[a];
      const int value = play_value(m) - kPlayCost + hand_value(hand - m.cards);
      if (value > best_value) {
        best_value = value;
        best = a;
      }
    }
    out.push_back(best);
    hand -= Universe::get()[best].cards;
  }
  weakest_first(out);
  return out;
}

}  // namespace bothost::doudizhu
