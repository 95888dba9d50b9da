#include "mahjong/targets.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "mahjong/fan_parts.h"
#include "mahjong/patterns.h"

namespace bothost::mahjong {

/// Copies of each kind, as masks of the kinds with at least 1, 2, 3 and 4 of them: all change in a few
/// instructions.
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

namespace {

constexpr int size_of(TileMask m) { return std::popcount(m); }

/// Copies in own melds.
Counts on_table(const Holding& holding) {
  Counts counts{};
  for (const auto& m : holding.on_table()) add_tiles(m, counts);
  return counts;
}

/// The kinds of each set.
constexpr std::array<TileMask, kSets> kTilesOf = [] {
  std::array<TileMask, kSets> tiles{};
  for (std::size_t s = 0; s < kSets; ++s) tiles[s] = tiles_of(set_at(s));
  return tiles;
}();

/// Vectors of targets that no search uses at present. They keep their memory, within bounds: a thread lives
/// for days, and would end with the largest vectors that any of its positions ever needed.
thread_local std::vector<std::vector<Target>> unused;
constexpr std::size_t kMostUnused = 16, kMostRoom = 1 << 12;

}  // namespace

class TargetSearch {
 public:
  TargetSearch(Targets& out, int depth)
      : out_(out),
        hand_(out.holding_.standing),
        melds_(out.holding_.on_table()),
        depth_(depth),
        start_(hand_, out.unseen_),
        how_(melds_, out.win_by(kHidden)),
        how_of_last_copy_(how_) {
    how_of_last_copy_.fans.insert(Fan::last_tile);
    const Counts shown = on_table(out.holding_);
    for (const auto& m : melds_)
      if (m.kind == Meld::kong) kongs_ |= tiles_of(m);
    last_copy_ = kinds_with(shown, 3) & ~kongs_;
    for (std::size_t t = 0; t < kKinds; ++t)
      if (hand_[t] + shown[t] + out.unseen_[t] == 4) whole_ |= bit(t);
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
  /// What is left of the tiles while a target takes its own.
  struct Stock {
    Stock(const Counts& hand, const Counts& unseen) : held(hand), all(sum(hand, unseen)) {}
    static Counts sum(const Counts& a, const Counts& b) {
      Counts c;
      for (std::size_t t = 0; t < kKinds; ++t) c[t] = static_cast<std::uint8_t>(a[t] + b[t]);
      return c;
    }
    /// Standing tiles; those and the unseen ones.
    Copies held, all;
  };

  /// The missing tiles of a target so far.
  struct MissingTiles {
    std::array<std::uint16_t, 14> arrivals{};
    int size = 0;
    /// The last one, and whether a pung needs it.
    Tile last = 0;
    bool of_pung = false;

    void add(Source source, std::size_t tile, int unseen) {
      arrivals[at(size++)] = static_cast<std::uint16_t>(arrival(source, tile, unseen));
      last = static_cast<Tile>(tile);
    }
  };

  /// Some sets of a target.
  struct alignas(32) Branch {
    Stock stock;
    HandParts parts;
    MissingTiles missing;
    /// Kinds in chows of standing tiles, or in a knitted straight.
    TileMask chows = 0;
    /// Concealed pungs and kongs.
    int concealed = 0;
  };

  /// Sets and pairs that are still possible, by their missing tiles.
  void collect() {
    for (std::size_t s = 0; s < kSets; ++s) {
      const int needed = needed_for(start_, s);
      if (needed <= depth_) sets_[at(needed)] |= bit(s);
    }
    for (std::size_t t = 0; t < kKinds; ++t) {
      const int needed = std::max(0, 2 - hand_[t]);
      if (needed <= out_.unseen_[t] && needed <= depth_) pairs_[at(needed)] |= bit(t);
    }
    least_pair_ = depth_ + 1;
    for (int n = 2; n >= 0; --n)
      if (pairs_[at(n)]) least_pair_ = n;
  }

  /// Missing tiles of one more set; more than any depth if its tiles are not left.
  static int needed_for(const Stock& stock, std::size_t set) {
    const auto& held = stock.held.least;
    const TileMask kind = kTilesOf[set];
    if (set < kChowSets) return kind & ~stock.all.least[0] ? kNever : size_of(kind & ~held[0]);
    if (!(stock.all.least[2] & kind)) return kNever;
    return !(held[0] & kind) + !(held[1] & kind) + !(held[2] & kind);
  }

  /// Adds a set whose tiles are left. `claimed`: whether the last missing tile may be claimed for it.
  void add_set(Branch& branch, std::size_t set, bool claimed) const {
    auto& [held, all] = branch.stock;
    branch.parts.add_set(tables_, set);
    if (set < kChowSets) {
      const TileMask kinds = kTilesOf[set];
      branch.chows |= kinds;
      for (TileMask missing = kinds & ~held.least[0]; missing; missing &= missing - 1) {
        const bool last = (missing & (missing - 1)) == 0;
        branch.missing.add(last && claimed ? chow : own, lowest(missing), all.of(lowest(missing)));
        branch.missing.of_pung = false;
      }
      held.take(kinds);
      all.take(kinds);
      return;
    }
    const auto t = set - kChowSets;
    const int have = held.of(t);
    branch.concealed += have >= 3;
    for (int n = have; n < 3; ++n) {
      branch.missing.add(n == 2 && claimed ? any : own, t, all.of(t) - n);
      branch.missing.of_pung = true;
    }
    held.take_three(bit(t));
    all.take_three(bit(t));
  }

  void standard() {
    Branch branch{start_, {}, {}, 0, how_.concealed};
    auto following = patterns_.start();
    for (const auto& m : melds_) {
      following = patterns_.with(following, set_index(m), true);
      branch.parts.add_set(tables_, set_index(m));
    }
    shape_ = Shape::standard;
    if (melds_.size() == 4)
      add_pair(branch, following.all());
    else
      add_sets(branch, following, 4 - static_cast<int>(melds_.size()), 0, ~TileMask{0});
  }

  /// Adds `slots` sets: those of `from` that need `fewest` tiles alone, and those that need more.
  void add_sets(const Branch& branch, const Following& following, int slots, int fewest, TileMask from) {
    const bool any_hand = following.free[0].contains(Patterns::kAny);
    const TileMask allowed = patterns_.sets(following);
    const int before = branch.missing.size;
    for (int needed = fewest; needed < 4; ++needed, from = ~TileMask{0}) {
      // Beside other sets a set needs at least as many tiles as alone, and later sets need no fewer.
      const int most = depth_ - before - needed * (slots - 1) - least_pair_;
      if (needed > most) return;
      const bool any = any_hand && before + needed <= kAnyHand;
      for (TileMask sets = sets_[at(needed)] & from & (any ? ~TileMask{0} : allowed); sets;
           sets &= sets - 1) {
        const auto set = lowest(sets);
        const int missing = needed_for(branch.stock, set);
        if (missing > most) continue;
        const bool still_any = any && before + missing <= kAnyHand;
        if (slots == 1) {
          const auto patterns = patterns_.with_last(following, set, still_any);
          if (!patterns.any()) continue;
          Branch next = branch;
          add_set(next, set, true);
          add_pair(next, patterns);
        } else {
          const auto next_following = patterns_.with(following, set, still_any);
          if (!next_following.all().any()) continue;
          Branch next = branch;
          add_set(next, set, true);
          add_sets(next, next_following, slots - 1, needed, ~TileMask{0} << set);
        }
      }
    }
  }

  /// Adds the pair, which completes a target.
  void add_pair(Branch& branch, const PatternSet& patterns) {
    const int left = depth_ - branch.missing.size;
    const bool any_hand = patterns.contains(Patterns::kAny);
    const TileMask allowed = patterns_.pairs(patterns);
    const auto& held = branch.stock.held.least;
    const TileMask tiles = branch.stock.all.least[1] & (left >= 2   ? ~TileMask{0}
                                                        : left == 1 ? held[0]
                                                                    : held[1]);
    for (int alone = 0; alone <= 2; ++alone)
      for (TileMask pairs = pairs_[at(alone)] & tiles; pairs; pairs &= pairs - 1) {
        const TileMask kind = pairs & -pairs;
        const int needed = branch.missing.size + !(held[0] & kind) + !(held[1] & kind);
        if (!(allowed & kind) && !(any_hand && needed <= kAnyHand)) continue;
        const int before = branch.missing.size;
        const auto [last, of_pung] = std::pair{branch.missing.last, branch.missing.of_pung};
        complete(branch, lowest(kind), needed);
        branch.missing.size = before;
        branch.missing.last = last;
        branch.missing.of_pung = of_pung;
      }
  }

  /// Adds the missing tiles of the pair, too.
  void complete(Branch& branch, std::size_t pair, int needed) {
    ++out_.counts_[at(needed)];
    if (needed == 0) return;
    const auto& held = branch.stock.held.least;
    const auto& all = branch.stock.all.least;
    auto& missing = branch.missing;
    for (int n = 2 - (needed - missing.size); n < 2; ++n) {
      missing.add(own, pair, branch.stock.all.of(pair) - n);
      missing.of_pung = false;
    }
    const TileMask kind = bit(pair), spare = (held[0] & ~kind) | (held[2] & kind);
    if (needed == 1) return one_tile(missing, spare, spare_counts(branch, pair));
    const TileMask gone = ~((all[0] & ~kind) | (all[2] & kind)) & whole_;
    // The fan calculation does not count a pung as concealed if a discard completes it.
    const bool in_chow = (branch.chows >> missing.last & 1) != 0;
    const int concealed = branch.concealed + (missing.of_pung && in_chow);
    HandParts parts = branch.parts;
    parts.add_pair(tables_, static_cast<int>(pair));
    const auto* how = last_copy_ >> missing.last & 1 ? &how_of_last_copy_ : &how_;
    std::optional<Circumstances> gates;
    if (melds_.empty() && std::has_single_bit(parts.types) && parts.types < 8 &&
        nine_gates(standing(spare_counts(branch, pair), missing), missing.last)) {
      how = &gates.emplace(*how);
      gates->nine_gates = true;
    }
    Tally tally = tally_of(tables_, parts, static_cast<int>(pair), size_of(gone & ~kongs_), concealed,
                           shape_ == Shape::knitted_straight, *how);
    const auto& fans = tally.counted();
    const bool hidden = fans.contains(Fan::concealed_hand);
    const int points = tally.points() - (hidden ? points_of(Fan::concealed_hand) : 0);
    // Drawn, a win counts a point more, or four if the hand is concealed.
    if (points + (hidden ? points_of(Fan::fully_concealed_hand) : 1) < out_.minimum_) return;
    keep(missing, spare, points, fans).concealed = hidden;
  }

  Target& keep(const MissingTiles& missing, TileMask spare, int points, const FanSet& fans) {
    auto& target = out_.targets_.emplace_back();
    target.fans = fans;
    target.spare = spare;
    target.missing = missing.arrivals;
    target.points = static_cast<std::int16_t>(points);
    target.tiles_needed = static_cast<std::uint8_t>(missing.size);
    target.shape = shape_;
    return target;
  }

  /// Standing copies that a target of these sets and pair leaves unused.
  static Counts spare_counts(const Branch& branch, std::size_t pair) {
    Counts spare;
    for (std::size_t t = 0; t < kKinds; ++t) spare[t] = static_cast<std::uint8_t>(branch.stock.held.of(t));
    spare[pair] = static_cast<std::uint8_t>(std::max(0, spare[pair] - 2));
    return spare;
  }

  /// The standing tiles of the target that leaves `spare` unused.
  Counts standing(const Counts& spare, const MissingTiles& missing) const {
    Counts tiles;
    for (std::size_t t = 0; t < kKinds; ++t) tiles[t] = static_cast<std::uint8_t>(hand_[t] - spare[t]);
    for (int i = 0; i < missing.size; ++i) ++tiles[missing.arrivals[at(i)] / 5 % kKinds];
    return tiles;
  }

  /// One tile wins: its exact fans by the best reading.
  void one_tile(const MissingTiles& missing, TileMask spare, const Counts& spare_counts) {
    const Tile tile = missing.last;
    if (std::exchange(found_[tile][std::min<std::size_t>(lowest(spare), kKinds)], true))
      return;  // another reading of the same hand
    const Counts tiles = standing(spare_counts, missing);
    Wait wait{tile, {}, {}};
    WinContext win = out_.win_by(tile);
    for (std::size_t drawn = 0; drawn < 2; ++drawn) {
      win.self_drawn = drawn == 1;
      const auto fans = calculate_fans(tiles, melds_, win);
      if (!fans || fans->points < out_.minimum_) continue;
      wait.points[drawn] = fans->points;
      wait.fans[drawn] = fans_of(*fans);
    }
    if (wait.points[0] == 0 && wait.points[1] == 0) return;
    keep(missing, spare, 0, {}).wait = static_cast<std::int16_t>(out_.waits_.size());
    out_.waits_.push_back(wait);
  }

  void knitted_straights() {
    shape_ = Shape::knitted_straight;
    for (const auto perm : kKnitted) {
      if (perm & ~start_.all.least[0]) continue;
      Branch branch{start_, {}, {}, perm, how_.concealed};
      take(branch, perm);
      if (branch.missing.size > depth_) continue;
      branch.parts.add_tiles(perm, true);
      if (!melds_.empty()) {
        branch.parts.add_set(tables_, set_index(melds_.front()));
        add_pair(branch, patterns_.start().all());
        continue;
      }
      for (int needed = 0; needed < 4 && branch.missing.size + needed <= depth_; ++needed)
        for (TileMask sets = sets_[at(needed)]; sets; sets &= sets - 1) {
          if (branch.missing.size + needed_for(branch.stock, lowest(sets)) > depth_) continue;
          Branch next = branch;
          add_set(next, lowest(sets), false);
          add_pair(next, patterns_.start().all());
        }
    }
  }

  /// Takes one of each of `kinds`, of which there must be one. Only the last missing tile of a target can be
  /// claimed for them.
  static void take(Branch& branch, TileMask kinds) {
    for (TileMask missing = kinds & ~branch.stock.held.least[0]; missing; missing &= missing - 1)
      branch.missing.add(own, lowest(missing), branch.stock.all.of(lowest(missing)));
    branch.stock.held.take(kinds);
    branch.stock.all.take(kinds);
  }

  /// A special hand of one fan that counts whatever its tiles are.
  void special(const Branch& branch, Fan fan) {
    if (branch.missing.size > depth_) return;
    ++out_.counts_[at(branch.missing.size)];
    if (branch.missing.size == 0 || points_of(fan) < out_.minimum_) return;
    keep(branch.missing, branch.stock.held.least[0], points_of(fan), FanSet{fan});
  }

  /// Four of a kind are two pairs. They come first, as pairs that the hand has.
  void seven_pairs() {
    shape_ = Shape::seven_pairs;
    const auto& held = start_.held.least;
    const int wanted = 7 - size_of(held[1]) - size_of(held[3]);
    if (wanted > 3 || wanted > depth_) return;
    Branch branch{start_, {}, {}, 0, 0};
    for (int i = 0; i < 2; ++i) branch.stock.held.take(held[3]), branch.stock.all.take(held[3]);
    const TileMask singles = held[0] & ~held[1] & start_.all.least[1];
    some_of(singles, wanted, [&](TileMask kinds) {
      Branch next = branch;
      // Both copies of a kind come one after the other: each lacks one at most.
      take(next, held[1] | kinds);
      take(next, held[1] | kinds);
      special(next, Fan::seven_pairs);
    });
  }

  void orphans() {
    shape_ = Shape::thirteen_orphans;
    const auto& held = start_.held.least;
    const TileMask twice = held[1] & kOrphanMask;
    if (13 - size_of(held[0] & kOrphanMask) + (twice == 0) > depth_) return;
    for (auto m = twice ? twice : kOrphanMask; m; m &= m - 1) {
      const TileMask pair = m & -m;
      if (kOrphanMask & ~start_.all.least[0] || !(start_.all.least[1] & pair)) continue;
      Branch branch{start_, {}, {}, 0, 0};
      take(branch, pair);
      take(branch, kOrphanMask);
      special(branch, Fan::thirteen_orphans);
    }
  }

  void honours_and_knitted() {
    shape_ = Shape::honours_and_knitted;
    const TileMask one = start_.held.least[0];
    for (const auto perm : kKnitted) {
      const TileMask all = perm | kHonourMask;
      const int wanted = 14 - size_of(one & all);
      if (wanted > depth_ || wanted < 0) continue;
      some_of(all & ~one & start_.all.least[0], wanted, [&](TileMask kinds) {
        Branch branch{start_, {}, {}, 0, 0};
        take(branch, (one & all) | kinds);
        special(branch, Fan::lesser_honors_and_knitted_tiles);
      });
    }
  }

  /// Calls `found` with every choice of `size` of `kinds`.
  template <class Found>
  static void some_of(TileMask kinds, int size, Found found, TileMask chosen = 0) {
    if (size <= 0) return size == 0 ? found(chosen) : void();
    for (; size_of(kinds) >= size; kinds &= kinds - 1) {
      const TileMask next = kinds & -kinds;
      some_of(kinds & ~next, size - 1, found, chosen | next);
    }
  }

  const Patterns& patterns_ = Patterns::get();
  const FanTables& tables_ = FanTables::get();
  Targets& out_;
  const Counts& hand_;
  std::span<const Meld> melds_;
  const int depth_;
  const Stock start_;
  std::array<TileMask, 4> sets_{};
  std::array<TileMask, 3> pairs_{};
  int least_pair_ = 0;
  Circumstances how_, how_of_last_copy_;
  /// Kinds of own kongs; kinds whose other three copies lie in own melds; kinds of which all four copies are
  /// the hand's or unseen.
  TileMask kongs_ = 0, last_copy_ = 0, whole_ = 0;
  Shape shape_ = Shape::standard;
  /// Wins found, by the last tile and the spare tile; the last index means no spare tile.
  std::array<std::array<bool, kKinds + 1>, kKinds> found_{};
};

Targets::Targets(const Holding& holding, const Outlook& outlook)
    : holding_(holding),
      seat_wind_(outlook.seat_wind),
      prevalent_wind_(outlook.prevalent_wind),
      minimum_(outlook.minimum) {
  Counts held = on_table(holding);
  for (std::size_t t = 0; t < kKinds; ++t) add(held[t], holding.standing[t]);
  possible_ = *std::ranges::max_element(held) <= 4;
  if (!possible_) return;
  for (std::size_t t = 0; t < kKinds; ++t)
    unseen_[t] = std::min<std::uint8_t>(outlook.unseen[t], static_cast<std::uint8_t>(4 - held[t]));
  if (unused.empty()) return;
  targets_ = std::move(unused.back());
  unused.pop_back();
}

Targets::~Targets() {
  if (targets_.capacity() > kMostRoom || unused.size() == kMostUnused) return;
  targets_.clear();
  unused.push_back(std::move(targets_));
}

void Targets::find(int depth) {
  if (!possible_ || depth <= depth_) return;
  targets_.clear();
  waits_.clear();
  counts_ = {};
  depth_ = depth;
  TargetSearch(*this, depth).run();
}

WinContext Targets::win_by(Tile tile) const {
  WinContext win;
  win.win_tile = tile;
  win.seat_wind = seat_wind_;
  win.prevalent_wind = prevalent_wind_;
  return win;
}

int Targets::nearest() const {
  int least = kNever;
  for (const auto& target : targets_) least = std::min<int>(least, target.tiles_needed);
  return least;
}

int Targets::count(int depth) const {
  int sum = 0;
  for (int n = 1; n <= depth; ++n) sum += counts_[at(n)];
  return sum;
}

}  // namespace bothost::mahjong
