#include "mahjong/fan.h"

#include <algorithm>
#include <bit>

#include "core/types.h"
#include "mahjong/fan_parts.h"

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
           Counts rest = without(hand, perm);
           return splits(rest, 0, true);
         });
}

/// Whether another kind than `but` would complete these standing tiles (one short of a hand with `melds`
/// melds): as four sets and a pair, seven pairs or a knitted straight. A fifth copy counts as a wait, as the
/// official judge has it.
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

class Calculator {
 public:
  Calculator(const Counts& standing, std::span<const Meld> melds, const WinContext& win)
      : standing_(standing), all_(standing), melds_(melds), win_(win) {
    check();
    kinds_ = kinds_with(all_, 1);
    hogs_ = std::popcount(kinds_with(all_, 4) & ~kong_kinds_);
    how_.emplace(melds, win);
    how_->nine_gates = melds.empty() && nine_gates(standing_, win.win_tile);
  }

  std::optional<FanResult> best() {
    if (needed_standard(standing_, static_cast<int>(melds_.size())) == 0) {
      for (std::size_t i = 0; i < melds_.size(); ++i) sets_[i] = melds_[i];
      Counts rest = standing_;
      read(rest, 0, melds_.size(), -1);
    }
    if (melds_.size() <= 1) knitted_straights();
    if (melds_.empty()) special_hands();
    return best_;
  }

 private:
  void check() {
    const int melds = static_cast<int>(melds_.size());
    check_hand(standing_, melds);
    int sum = 3 * melds;
    for (const int c : standing_) sum += c;
    if (sum != 14) throw InvalidInput("a winning hand has 14 tiles less three per meld");
    for (const auto& m : melds_) {
      if (m.tile >= kKinds) throw InvalidInput("a meld of no tile");
      if (m.kind == Meld::chow && !is_middle(m.tile))
        throw InvalidInput("no chow has " + tile_name(m.tile) + " in its middle");
      if (m.kind == Meld::kong) kong_kinds_ |= bit(m.tile);
      add_tiles(m, all_);
    }
    for (const int c : all_)
      if (c > 4) throw InvalidInput("a kind of tile is held more than four times");
    if (win_.win_tile >= kKinds || standing_[win_.win_tile] == 0)
      throw InvalidInput("the winning tile must be among the standing tiles");
    if (win_.seat_wind > 3 || win_.prevalent_wind > 3) throw InvalidInput("a wind is 0 to 3");
    if (win_.flowers > kFlowers) throw InvalidInput("there are eight flowers");
  }

  void keep(Tally& tally) {
    const auto r = tally.result(win_.flowers);
    if (!best_ || r.points > best_->points) best_ = r;
  }

  // Seven pairs, thirteen orphans, honours and knitted tiles.
  void special_hands() {
    if (std::popcount(kinds_) >= 13) {
      orphans_or_knitted();
      return;
    }
    for (const int c : standing_)
      if (c % 2) return;
    HandParts parts;
    parts.add_tiles(kinds_, false);
    Tally t = tally_of_kinds(tables_, parts, hogs_);
    const int lowest = std::countr_zero(kinds_);
    const bool shifted = std::popcount(kinds_) == 7 && lowest < 27 && kinds_ >> lowest == 0x7f &&
                         suit_of(lowest) == suit_of(lowest + 6);
    t.add(shifted ? Fan::seven_shifted_pairs : Fan::seven_pairs);
    add_concealment(t, *how_, true);
    t.add(how_->fans);
    keep(t);
  }

  void orphans_or_knitted() {
    Tally t;
    if (kinds_ == kOrphanMask) {
      t.add(Fan::thirteen_orphans);
    } else {
      if (std::popcount(kinds_) != 14) return;
      const bool fits = std::ranges::any_of(
          kKnitted, [this](TileMask perm) { return (kinds_ & ~(perm | kHonourMask)) == 0; });
      if (!fits) return;
      const int honours = std::popcount(kinds_ & kHonourMask);
      t.add(honours == 7 ? Fan::greater_honors_and_knitted_tiles : Fan::lesser_honors_and_knitted_tiles);
      if (honours == 5) t.add(Fan::knitted_straight);
    }
    add_concealment(t, *how_, true);
    t.add(how_->fans);
    keep(t);
  }

  void knitted_straights() {
    const TileMask held = kinds_with(standing_, 1);
    for (const auto perm : kKnitted) {
      if (perm & ~held) continue;
      Counts rest = without(standing_, perm);
      if (needed_standard(rest, 3 + static_cast<int>(melds_.size())) != 0) continue;
      knitted_ = perm;
      if (!melds_.empty()) sets_[0] = melds_[0];
      read(rest, 0, melds_.size(), -1);
      knitted_ = 0;
    }
  }

  // Every way to split `c` into sets and a pair, each once: at the lowest kind left decide on the pung and
  // the pair, the remaining copies must begin chows.
  void read(Counts& c, std::size_t t, std::size_t n, int pair) {
    while (t < kKinds && c[t] == 0) ++t;
    if (t == kKinds) {
      evaluate(n, pair);
      return;
    }
    const int copies = c[t];
    for (int pung = 0; pung <= (copies >= 3); ++pung)
      for (int eyes = 0; eyes <= (pair < 0 && copies - 3 * pung >= 2); ++eyes) {
        const int chows = copies - 3 * pung - 2 * eyes;
        if (chows > 0 && (!is_number(static_cast<int>(t)) || rank_of(static_cast<int>(t)) > 6 ||
                          c[t + 1] < chows || c[t + 2] < chows))
          continue;
        std::size_t m = n;
        const auto tile = static_cast<Tile>(t);
        if (pung) sets_[m++] = {Meld::pung, tile, true};
        for (int i = 0; i < chows; ++i) sets_[m++] = {Meld::chow, static_cast<Tile>(t + 1), true};
        const auto change = [&](int sign) {
          if (chows == 0) return;
          add(c[t + 1], sign * chows);
          add(c[t + 2], sign * chows);
        };
        change(-1);
        read(c, t + 1, m, eyes ? static_cast<int>(t) : pair);
        change(+1);
      }
  }

  void evaluate(std::size_t sets, int pair) {
    HandParts parts;
    int concealed = 0;
    TileMask chows = knitted_;
    for (std::size_t i = 0; i < sets; ++i) {
      const auto& s = sets_[i];
      parts.add_set(tables_, set_index(s));
      if (s.kind != Meld::chow)
        concealed += s.concealed;
      else if (i >= melds_.size())
        chows |= tiles_of(s);
    }
    parts.add_pair(tables_, pair);
    if (knitted_) parts.add_tiles(knitted_, true);
    // A pung that the discard completed is not concealed, unless the discard may as well complete a chow.
    if (!win_.self_drawn && !(chows & bit(win_.win_tile)) && pair != win_.win_tile) --concealed;
    Tally t = tally_of(tables_, parts, pair, hogs_, concealed, knitted_ != 0, *how_);
    add_wait(t, sets, pair);
    keep(t);
  }

  /// Edge, closed and single wait, when the hand waited for this one kind only.
  void add_wait(Tally& t, std::size_t sets, int pair) {
    if (t.has(Fan::melded_hand) || t.has(Fan::four_kongs)) return;
    const int w = win_.win_tile;
    Fan wait = pair == w ? Fan::single_wait : kNoFan;
    for (std::size_t i = melds_.size(); i < sets; ++i) {
      const auto& s = sets_[i];
      if (s.kind != Meld::chow) continue;
      if (s.tile == w) wait = std::min(wait, Fan::closed_wait);
      if ((s.tile == w - 1 && rank_of(w) == 2) || (s.tile == w + 1 && rank_of(w) == 6)) wait = Fan::edge_wait;
    }
    if (wait != kNoFan && only_wait()) t.add(wait);
  }

  /// Found once, for all readings that ask.
  bool only_wait() {
    if (only_wait_ < 0) {
      Counts before = standing_;
      --before[win_.win_tile];
      only_wait_ = !waits_for_another(before, static_cast<int>(melds_.size()), win_.win_tile);
    }
    return only_wait_ == 1;
  }

  Counts standing_, all_;
  std::span<const Meld> melds_;
  const WinContext& win_;
  const FanTables& tables_ = FanTables::get();
  TileMask kinds_ = 0, kong_kinds_ = 0, knitted_ = 0;
  std::optional<Circumstances> how_;  // once the hand is checked
  int hogs_ = 0, only_wait_ = -1;
  std::array<Meld, 4> sets_{};
  std::optional<FanResult> best_;
};

}  // namespace

std::optional<FanResult> calculate_fans(const Counts& standing, std::span<const Meld> melds,
                                        const WinContext& win) {
  return Calculator(standing, melds, win).best();
}

}  // namespace bothost::mahjong
