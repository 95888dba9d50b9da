#include "mahjong/targets.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "mahjong/patterns.h"

namespace bothost::mahjong {
namespace {

constexpr int bit_count(TileMask m) { return std::popcount(m); }

class Search {
 public:
  Search(const Counts& hand, std::span<const Meld> melds, const Counts& unseen, int depth,
         TargetVisitor& visitor)
      : patterns_(Patterns::get()),
        hand_(hand),
        melds_(melds),
        unseen_(unseen),
        depth_(depth),
        visitor_(visitor) {
    for (std::size_t i = 0; i < melds.size(); ++i) target_.reading.sets[i] = melds[i];
    target_.reading.size = melds.size();
  }

  void run() {
    collect();
    standard();
    if (melds_.size() <= 1) knitted_straights();
    if (!melds_.empty()) return;
    seven_pairs();
    orphans();
    honours_and_knitted();
  }

 private:
  struct SetCandidate {
    std::size_t index;
    Meld set;
    int tiles_needed;
  };
  struct PairCandidate {
    std::size_t tile;
    int tiles_needed;
  };

  /// Sets and pairs that are still possible, fewest missing tiles first.
  void collect() {
    const auto fewest_needed = [](const auto& a, const auto& b) { return a.tiles_needed < b.tiles_needed; };
    for (std::size_t s = 0; s < kSets; ++s) {
      const int before = target_.tiles_needed;
      const Meld set = set_at(s);
      if (take_set(set, 0) && target_.tiles_needed <= depth_) sets_.push_back({s, set, target_.tiles_needed});
      drop_set(set, before);
    }
    std::stable_sort(sets_.begin(), sets_.end(), fewest_needed);
    for (std::size_t t = 0; t < kKinds; ++t) {
      const int tiles_needed = std::max(0, 2 - hand_[t]);
      if (tiles_needed <= unseen_[t] && tiles_needed <= depth_) pairs_.push_back({t, tiles_needed});
    }
    std::stable_sort(pairs_.begin(), pairs_.end(), fewest_needed);
  }

  /// Takes one more tile for the target; false if no copy is left. The caller drops what was taken either
  /// way.
  bool take(int t, std::uint8_t part) {
    auto& n = target_.standing[static_cast<std::size_t>(t)];
    const int held = hand_[static_cast<std::size_t>(t)];
    if (++n <= held) return true;
    target_.missing[static_cast<std::size_t>(target_.tiles_needed++)] = {static_cast<Tile>(t), part};
    return n - held <= unseen_[static_cast<std::size_t>(t)];
  }
  void drop(int t, int copies) {
    auto& n = target_.standing[static_cast<std::size_t>(t)];
    n = static_cast<std::uint8_t>(n - copies);
  }
  bool take_set(const Meld& set, std::uint8_t part) {
    bool holds = true;
    for (int i = 0; i < 3; ++i) holds &= take(set.kind == Meld::chow ? set.tile - 1 + i : set.tile, part);
    return holds;
  }
  void drop_set(const Meld& set, int needed_before) {
    if (set.kind == Meld::chow)
      for (int i = -1; i <= 1; ++i) drop(set.tile + i, 1);
    else
      drop(set.tile, 3);
    target_.tiles_needed = needed_before;
  }

  void standard() {
    Following following = patterns_.start();
    for (const auto& m : melds_)
      following =
          patterns_.with(following, set_index(m.kind == Meld::chow ? Meld::chow : Meld::pung, m.tile));
    target_.shape = Shape::standard;
    add_sets(0, 4 - static_cast<int>(melds_.size()), following);
  }

  void add_sets(std::size_t first, int slots, const Following& following) {
    if (slots == 0) return add_pair(following);
    const int least_pair = pairs_.empty() ? depth_ + 1 : pairs_.front().tiles_needed;
    for (std::size_t i = first; i < sets_.size(); ++i) {
      const auto& [index, plain, tiles_needed] = sets_[i];
      // Beside other sets a set needs at least as many tiles as alone, and later sets need no fewer.
      const int before = target_.tiles_needed;
      if (before + tiles_needed * slots + least_pair > depth_) return;
      auto next = patterns_.with(following, index);
      Meld set = plain;
      auto& size = target_.reading.size;
      const bool comes = next.all().any() && take_set_checked(set, static_cast<std::uint8_t>(size));
      if (comes) {
        if (target_.tiles_needed > kAnyHand) next.free[0].erase(Patterns::kAny);
        if (target_.tiles_needed + tiles_needed * (slots - 1) + least_pair <= depth_ && next.all().any()) {
          set.concealed = target_.tiles_needed == before;
          target_.reading.sets[size++] = set;
          add_sets(i, slots - 1, next);
          --size;
        }
        drop_set(set, before);
      }
    }
  }

  bool take_set_checked(const Meld& set, std::uint8_t part) {
    const int before = target_.tiles_needed;
    if (take_set(set, part)) return true;
    drop_set(set, before);
    return false;
  }

  void add_pair(const Following& following) {
    const auto patterns = following.all();
    for (const auto& [t, tiles_needed] : pairs_) {
      const int before = target_.tiles_needed;
      if (before + tiles_needed > depth_) return;
      auto allowed = patterns & patterns_.pair(static_cast<int>(t));
      if (!allowed.any()) continue;
      const int tile = static_cast<int>(t);
      const bool first = take(tile, kPairPart), second = take(tile, kPairPart);
      if (target_.tiles_needed > kAnyHand) allowed.erase(Patterns::kAny);
      if (first && second && target_.tiles_needed <= depth_ && allowed.any()) {
        target_.reading.pair = static_cast<Tile>(t);
        visitor_.visit(target_);
      }
      drop(tile, 2);
      target_.tiles_needed = before;
    }
  }

  void knitted_straights() {
    target_.shape = Shape::knitted_straight;
    const auto everything = patterns_.start();
    for (const auto perm : kKnitted) {
      target_.reading.knitted = perm;
      bool holds = true;
      for (auto m = perm; m; m &= m - 1) holds &= take(std::countr_zero(m), kSinglePart);
      if (holds && target_.tiles_needed <= depth_) {
        if (melds_.empty())
          add_last_set();
        else
          add_pair(everything);
      }
      for (auto m = perm; m; m &= m - 1) drop(std::countr_zero(m), 1);
      target_.tiles_needed = 0;
    }
    target_.reading.knitted = 0;
  }

  void add_last_set() {
    auto any = patterns_.start();
    for (const auto& candidate : sets_) {
      const int before = target_.tiles_needed;
      if (before + candidate.tiles_needed > depth_) return;
      Meld set = candidate.set;
      if (!take_set_checked(set, 0)) continue;
      set.concealed = target_.tiles_needed == before;
      target_.reading.sets[0] = set;
      target_.reading.size = 1;
      add_pair(any);
      target_.reading.size = 0;
      drop_set(set, before);
    }
  }

  /// Visits the target of the tiles `kinds`, `copies` of each, together with what was taken already.
  void whole(Shape shape, TileMask kinds, int copies) {
    target_.shape = shape;
    const int before = target_.tiles_needed;
    bool holds = true;
    for (auto m = kinds; m; m &= m - 1)
      for (int i = 0; i < copies; ++i) holds &= take(std::countr_zero(m), kSinglePart);
    if (holds && target_.tiles_needed <= depth_) visitor_.visit(target_);
    for (auto m = kinds; m; m &= m - 1) drop(std::countr_zero(m), copies);
    target_.tiles_needed = before;
  }

  /// Four of a kind are two pairs. They come first, as pairs that the hand has.
  void seven_pairs() {
    const TileMask two = kinds_with(hand_, 2), four = kinds_with(hand_, 4);
    const int wanted = 7 - bit_count(two) - bit_count(four);
    if (wanted > 3 || wanted > depth_) return;
    for (auto m = four; m; m &= m - 1) target_.standing[static_cast<std::size_t>(std::countr_zero(m))] = 2;
    TileMask singles = kinds_with(hand_, 1) & ~two;
    for (auto m = singles; m; m &= m - 1)
      if (unseen_[static_cast<std::size_t>(std::countr_zero(m))] == 0) singles &= ~(m & -m);
    some_of(singles, wanted, [&](TileMask kinds) { whole(Shape::seven_pairs, two | kinds, 2); });
    target_.standing.fill(0);
  }

  void orphans() {
    const TileMask one = kinds_with(hand_, 1) & kOrphanMask;
    const TileMask twice = kinds_with(hand_, 2) & kOrphanMask;
    const int tiles_needed = 13 - bit_count(one) + (twice == 0);
    if (tiles_needed > depth_) return;
    for (auto m = twice ? twice : kOrphanMask; m; m &= m - 1) {
      const TileMask pair = m & -m;
      take(std::countr_zero(pair), kSinglePart);
      whole(Shape::thirteen_orphans, kOrphanMask, 1);
      drop(std::countr_zero(pair), 1);
      target_.tiles_needed = 0;
    }
  }
  void honours_and_knitted() {
    const TileMask one = kinds_with(hand_, 1);
    for (const auto perm : kKnitted) {
      const TileMask all = perm | kHonourMask;
      const int wanted = 14 - bit_count(one & all);
      if (wanted > depth_ || wanted < 0) continue;
      TileMask open = all & ~one;
      for (auto m = open; m; m &= m - 1)
        if (unseen_[static_cast<std::size_t>(std::countr_zero(m))] == 0) open &= ~(m & -m);
      some_of(open, wanted,
              [&](TileMask kinds) { whole(Shape::honours_and_knitted, (one & all) | kinds, 1); });
    }
  }

  /// Calls `found` with every choice of `size` of `kinds`.
  template <class Found>
  static void some_of(TileMask kinds, int size, Found found, TileMask chosen = 0) {
    if (size <= 0) return size == 0 ? found(chosen) : void();
    for (; bit_count(kinds) >= size; kinds &= kinds - 1) {
      const TileMask next = kinds & -kinds;
      some_of(kinds & ~next, size - 1, found, chosen | next);
    }
  }

  const Patterns& patterns_;
  const Counts& hand_;
  std::span<const Meld> melds_;
  const Counts& unseen_;
  int depth_;
  TargetVisitor& visitor_;
  std::vector<SetCandidate> sets_;
  std::vector<PairCandidate> pairs_;
  Target target_;
};

}  // namespace

void each_target(const Counts& hand, std::span<const Meld> melds, const Counts& unseen, int depth,
                 TargetVisitor& visitor) {
  Search(hand, melds, unseen, depth, visitor).run();
}

}  // namespace bothost::mahjong
