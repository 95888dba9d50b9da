#include "mahjong/fan.h"

#include <algorithm>
#include <bit>

#include "core/types.h"
#include "mahjong/fan_list.h"
#include "mahjong/reading.h"
#include "mahjong/wait.h"

namespace bothost::mahjong {
namespace {

constexpr TileMask bit(int t) { return TileMask{1} << t; }
/// Ranks (bits 0..8) in all three suits.
constexpr TileMask kWinds = TileMask{0xf} << 27, kDragons = TileMask{7} << 31;
constexpr TileMask kTerminals = ranks(0x101);
constexpr TileMask kGreen = TileMask{0b10101110} << 9 | bit(kDragonGreen);
constexpr TileMask kReversible = TileMask{0b110111010} << 9 | TileMask{0b110011111} << 18 | bit(kDragonWhite);

class Calculator {
 public:
  Calculator(const Counts& standing, std::span<const Meld> melds, const WinContext& win)
      : standing_(standing), all_(standing), melds_(melds), win_(win) {
    check();
    kinds_ = kinds_with(all_, 1);
  }

  ReadingFans of(const Reading& reading, bool count_wait) {
    sets_ = reading.sets;
    knitted_ = reading.knitted;
    Tally t = tally(reading.size, reading.pair, count_wait);
    return {t.counted(), t.points()};
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
      if (m.kind == Meld::chow) {
        if (!is_number(m.tile) || rank_of(m.tile) == 0 || rank_of(m.tile) == 8)
          throw InvalidInput("no chow has " + tile_name(m.tile) + " in its middle");
        for (int t = m.tile - 1; t <= m.tile + 1; ++t) ++all_[static_cast<std::size_t>(t)];
        shown_ += win_.win_tile + 1 >= m.tile && win_.win_tile <= m.tile + 1;
      } else {
        all_[m.tile] = static_cast<std::uint8_t>(all_[m.tile] + (m.kind == Meld::kong ? 4 : 3));
        shown_ += m.tile == win_.win_tile ? 3 : 0;
        kong_kinds_ |= m.kind == Meld::kong ? bit(m.tile) : 0;
      }
      melded_ += !m.concealed;
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

  // How the tile came: the same for every reading.
  void add_circumstances(Tally& t) const {
    if (win_.fourth_tile || shown_ == 3) t.add(Fan::last_tile);
    if (win_.kong) t.add(win_.self_drawn ? Fan::out_with_replacement_tile : Fan::robbing_the_kong);
    if (win_.wall_last) t.add(win_.self_drawn ? Fan::last_tile_draw : Fan::last_tile_claim);
  }

  /// `inherent`: the fan is always concealed, so that only the self-draw counts.
  void add_concealment(Tally& t, bool inherent) const {
    if (melded_ == 0) {
      if (win_.self_drawn)
        t.add(inherent ? Fan::self_drawn : Fan::fully_concealed_hand);
      else if (!inherent)
        t.add(Fan::concealed_hand);
    } else if (win_.self_drawn) {
      t.add(Fan::self_drawn);
    } else if (melded_ == 4) {
      t.add(Fan::melded_hand);
    }
  }

  // What the kinds of tiles alone tell.
  void add_kinds(Tally& t) const {
    const TileMask k = kinds_;
    const auto within = [k](TileMask m) { return (k & ~m) == 0; };
    const int suits = ((k & 0x1ff) != 0) + ((k >> 9 & 0x1ff) != 0) + ((k >> 18 & 0x1ff) != 0);
    const bool honours = (k & kHonourMask) != 0;
    if (!honours) {
      t.add(Fan::no_honors);
      if (suits == 1) t.add(Fan::full_flush);
      if (within(kTerminals)) t.add(Fan::all_terminals);
      if ((k & kTerminals) == 0) t.add(Fan::all_simples);
      if (within(ranks(0x00f))) t.add(within(ranks(0x007)) ? Fan::lower_tiles : Fan::lower_four);
      if (within(ranks(0x1e0))) t.add(within(ranks(0x1c0)) ? Fan::upper_tiles : Fan::upper_four);
      if (within(ranks(0x038))) t.add(Fan::middle_tiles);
    } else if (suits == 0) {
      t.add(Fan::all_honors);
    } else {
      if (suits == 1) t.add(Fan::half_flush);
      if (within(kTerminals | kHonourMask)) t.add(Fan::all_terminals_and_honors);
      if (suits == 3 && (k & kWinds) && (k & kDragons)) t.add(Fan::all_types);
    }
    if (suits == 2) t.add(Fan::one_voided_suit);
    if (within(kGreen)) t.add(Fan::all_green);
    if (within(kReversible)) t.add(Fan::reversible_tiles);
    t.add(Fan::tile_hog, std::popcount(kinds_with(all_, 4) & ~kong_kinds_));
  }

  // Seven pairs, thirteen orphans, honours and knitted tiles.
  void special_hands() {
    if (std::popcount(kinds_) >= 13) {
      orphans_or_knitted();
      return;
    }
    for (const int c : standing_)
      if (c % 2) return;
    Tally t;
    add_kinds(t);
    const int lowest = std::countr_zero(kinds_);
    const bool shifted = std::popcount(kinds_) == 7 && lowest < 27 && kinds_ >> lowest == 0x7f &&
                         suit_of(lowest) == suit_of(lowest + 6);
    t.add(shifted ? Fan::seven_shifted_pairs : Fan::seven_pairs);
    add_concealment(t, true);
    add_circumstances(t);
    keep(t);
  }

  void orphans_or_knitted() {
    Tally t;
    if (kinds_ == kOrphanMask) {
      t.add(Fan::thirteen_orphans);
    } else {
      if (std::popcount(kinds_) != 14) return;
      const bool fits = std::any_of(kKnitted.begin(), kKnitted.end(),
                                    [this](TileMask perm) { return (kinds_ & ~(perm | kHonourMask)) == 0; });
      if (!fits) return;
      const int honours = std::popcount(kinds_ & kHonourMask);
      t.add(honours == 7 ? Fan::greater_honors_and_knitted_tiles : Fan::lesser_honors_and_knitted_tiles);
      if (honours == 5) t.add(Fan::knitted_straight);
    }
    add_concealment(t, true);
    add_circumstances(t);
    keep(t);
  }

  void knitted_straights() {
    for (const auto perm : kKnitted) {
      if (perm & ~kinds_) continue;
      Counts rest = standing_;
      bool holds = true;
      for (auto m = perm; m; m &= m - 1) {
        auto& c = rest[static_cast<std::size_t>(std::countr_zero(m))];
        holds = holds && c > 0;
        c = static_cast<std::uint8_t>(c - (c > 0));
      }
      if (!holds || needed_standard(rest, 3 + static_cast<int>(melds_.size())) != 0) continue;
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
          c[t + 1] = static_cast<std::uint8_t>(c[t + 1] + sign * chows);
          c[t + 2] = static_cast<std::uint8_t>(c[t + 2] + sign * chows);
        };
        change(-1);
        read(c, t + 1, m, eyes ? static_cast<int>(t) : pair);
        change(+1);
      }
  }

  void evaluate(std::size_t sets, int pair) {
    Tally t = tally(sets, pair, true);
    keep(t);
  }

  Tally tally(std::size_t sets, int pair, bool count_wait) {
    Tally t;
    add_kinds(t);
    int chow[4], chows = 0, pungs = 0, concealed = 0, melded_kongs = 0, concealed_kongs = 0;
    Tile pung[4];
    bool in_chow = (knitted_ & bit(win_.win_tile)) != 0;
    for (std::size_t i = 0; i < sets; ++i) {
      const auto& s = sets_[i];
      if (s.kind == Meld::chow) {
        chow[chows++] = suit_of(s.tile) * 7 + rank_of(s.tile) - 1;
        if (i >= melds_.size() && s.tile <= win_.win_tile + 1 && win_.win_tile <= s.tile + 1) in_chow = true;
      } else {
        pung[pungs++] = s.tile;
        concealed += s.concealed;
        if (s.kind == Meld::kong) ++(s.concealed ? concealed_kongs : melded_kongs);
      }
    }
    // A pung that the discard completed is not concealed, unless the discard may as well complete a chow.
    if (!win_.self_drawn && !in_chow && pair != win_.win_tile) --concealed;
    if (chows >= 2) add_chows(t, chow, chows, pair);
    if (pungs >= 1) add_pungs(t, pung, pungs, pair);
    add_concealed_pungs(t, concealed, melded_kongs, concealed_kongs);
    if (knitted_)
      t.add(Fan::knitted_straight);
    else
      add_whole_hand(t, sets, chows, pungs, pair);
    if (chows == static_cast<int>(sets) && is_number(pair)) t.add(Fan::all_chows);
    const bool gates = melds_.empty() && nine_gates();
    if (gates) t.add(Fan::nine_gates);
    add_concealment(t, gates || t.has(Fan::four_concealed_pungs));
    add_circumstances(t);
    if (count_wait) add_wait(t, sets, pair);
    return t;
  }

  /// Chows: the dearest combination, then each further chow joined at most once to those already combined.
  void add_chows(Tally& t, const int* c, int n, int pair) const {
    if (n == 4 && add_four_chows(t, c, pair)) return;
    Fan best = kNoFan, extra = kNoFan;
    int worth = 0;
    for (int out = 0; n >= 3 && out < n; ++out) {
      // Leave one of four chows out, or none of three.
      const int a = out == 0 ? 1 : 0, b = out <= 1 ? 2 : 1, d = out <= 2 ? 3 : 2;
      const int x = n == 4 ? c[a] : c[0], y = n == 4 ? c[b] : c[1], z = n == 4 ? c[d] : c[2];
      const Fan f = three_chows(x, y, z);
      if (f == kNoFan) continue;
      Fan e = kNoFan;
      if (n == 4) e = std::min({two_chows(c[out], x), two_chows(c[out], y), two_chows(c[out], z)});
      const int w = points_of(f) + (e != kNoFan);
      if (w > worth) best = f, extra = e, worth = w;
    }
    if (best != kNoFan) {
      t.add(best);
      if (extra != kNoFan) t.add(extra);
      return;
    }
    add_chow_pairs(t, c, n);
  }

  static bool add_four_chows(Tally& t, const int* unsorted, int pair) {
    int c[4] = {unsorted[0], unsorted[1], unsorted[2], unsorted[3]};
    std::sort(c, c + 4);
    const int eyes = is_number(pair) && rank_of(pair) == 4 ? suit_of(pair) : -1;
    if (c[0] / 7 == c[3] / 7) {
      const int d = c[1] - c[0];
      if (c[2] - c[1] == d && c[3] - c[2] == d && d <= 2) {
        t.add(d == 0 ? Fan::quadruple_chow : Fan::four_pure_shifted_chows);
        return true;
      }
      if (c[0] % 7 == 0 && c[1] == c[0] && c[2] == c[0] + 6 && c[3] == c[2] && eyes == c[0] / 7) {
        t.add(Fan::pure_terminal_chows);
        return true;
      }
    } else if (c[0] % 7 == 0 && c[1] == c[0] + 6 && c[2] % 7 == 0 && c[3] == c[2] + 6 && eyes >= 0 &&
               eyes != c[0] / 7 && eyes != c[2] / 7) {
      t.add(Fan::three_suited_terminal_chows);
      return true;
    }
    return false;
  }

  /// No three chows combine. The pairs that do are scored as a forest: each chow joins those combined before
  /// it once (the account-once rule). Which of the pairs fall away does not change the points; like the
  /// official judge we give up repeated fans first, the later in the list the sooner.
  static void add_chow_pairs(Tally& t, const int* c, int n) {
    int times[4] = {}, found = 0, most = n - 1;
    for (int i = 0; i < n; ++i) {
      bool alone = true;
      for (int j = 0; j < n; ++j) {
        const Fan f = i == j ? kNoFan : two_chows(c[i], c[j]);
        alone = alone && f == kNoFan;
        if (j > i && f != kNoFan) {
          ++times[static_cast<int>(f) - static_cast<int>(Fan::pure_double_chow)];
          ++found;
        }
      }
      most -= alone;
    }
    for (int keep = 1; found > most && keep >= 0; --keep)
      for (int k = 3; k >= 0 && found > most; --k)
        while (times[k] > keep && found > most) --times[k], --found;
    for (int k = 0; k < 4; ++k)
      t.add(static_cast<Fan>(static_cast<int>(Fan::pure_double_chow) + k), times[k]);
  }

  void add_pungs(Tally& t, const Tile* p, int n, int pair) const {
    int winds = 0, dragons = 0, honour_pungs = 0, terminals = 0;
    const Tile seat = static_cast<Tile>(kWindEast + win_.seat_wind);
    const Tile prevalent = static_cast<Tile>(kWindEast + win_.prevalent_wind);
    for (int i = 0; i < n; ++i) {
      if (is_wind(p[i])) {
        ++winds;
        if (p[i] == prevalent) t.add(Fan::prevalent_wind);
        if (p[i] == seat) t.add(Fan::seat_wind);
        honour_pungs += p[i] != seat && p[i] != prevalent;
      } else if (is_dragon(p[i])) {
        ++dragons;
      } else {
        terminals += is_terminal(p[i]);
      }
    }
    if (winds == 4) t.add(Fan::big_four_winds);
    if (winds == 3) {
      t.add(is_wind(pair) ? Fan::little_four_winds : Fan::big_three_winds);
      honour_pungs = 0;
    }
    if (dragons == 3) t.add(Fan::big_three_dragons);
    if (dragons == 2) t.add(is_dragon(pair) ? Fan::little_three_dragons : Fan::two_dragons_pungs);
    if (dragons == 1) t.add(Fan::dragon_pung);
    if (melds_.empty() && terminals > 0 && nine_gates()) --terminals;
    t.add(Fan::pung_of_terminals_or_honors, terminals + honour_pungs);
    if (n >= 2) add_pung_groups(t, p, n);
  }

  static void add_pung_groups(Tally& t, const Tile* unsorted, int n) {
    int p[4], k = 0;
    for (int i = 0; i < n; ++i)
      if (is_number(unsorted[i])) p[k++] = unsorted[i];
    if (k == 4) {
      int s[4] = {p[0], p[1], p[2], p[3]};
      std::sort(s, s + 4);
      if (suit_of(s[0]) == suit_of(s[3]) && s[3] - s[0] == 3) {
        t.add(Fan::four_pure_shifted_pungs);
        return;
      }
    }
    Fan best = kNoFan;
    for (int a = 0; a < k; ++a)
      for (int b = a + 1; b < k; ++b)
        for (int c = b + 1; c < k; ++c) best = std::min(best, three_pungs(p[a], p[b], p[c]));
    if (best != kNoFan) t.add(best);
    int doubles = 0;
    for (int a = 0; a < k; ++a)
      for (int b = a + 1; b < k; ++b) doubles += rank_of(p[a]) == rank_of(p[b]);
    // Three pungs of one rank are the triple pung, and nothing can double them.
    if (best != Fan::triple_pung) t.add(Fan::double_pung, doubles);
  }

  static void add_concealed_pungs(Tally& t, int concealed, int melded_kongs, int concealed_kongs) {
    switch (melded_kongs + concealed_kongs) {
      case 1:
        t.add(melded_kongs ? Fan::melded_kong : Fan::concealed_kong);
        break;
      case 2:
        t.add(melded_kongs == 2      ? Fan::two_melded_kongs
              : concealed_kongs == 2 ? Fan::two_concealed_kongs
                                     : Fan::concealed_and_melded_kong);
        break;
      case 3:
        t.add(Fan::three_kongs);
        break;
      case 4:
        t.add(Fan::four_kongs);
        break;
      default:
        break;
    }
    if (concealed == 4) t.add(Fan::four_concealed_pungs);
    if (concealed == 3) t.add(Fan::three_concealed_pungs);
    // Two concealed kongs are themselves two concealed pungs.
    if (concealed == 2 && !t.has(Fan::two_concealed_kongs)) t.add(Fan::two_concealed_pungs);
  }

  void add_whole_hand(Tally& t, std::size_t sets, int chows, int pungs, int pair) const {
    if (pungs == 4) {
      t.add(Fan::all_pungs);
      if ((kinds_ & ~ranks(0b010101010)) == 0) t.add(Fan::all_even_pungs);
    }
    bool outside = !is_number(pair) || is_terminal(pair);
    bool five = is_number(pair) && rank_of(pair) == 4;
    for (std::size_t i = 0; i < sets && (outside || five); ++i) {
      const auto& s = sets_[i];
      const int r = rank_of(s.tile);
      if (s.kind == Meld::chow) {
        outside = outside && (r == 1 || r == 7);
        five = five && r >= 3 && r <= 5;
      } else {
        outside = outside && (!is_number(s.tile) || is_terminal(s.tile));
        five = five && is_number(s.tile) && r == 4;
      }
    }
    if (outside) t.add(Fan::outside_hand);
    if (five && chows + pungs == 4) t.add(Fan::all_five);
  }

  bool nine_gates() const {
    const int s = suit_of(win_.win_tile);
    if (s == 3 || (kinds_ & ~(TileMask{0x1ff} << 9 * s))) return false;
    for (int r = 0; r < 9; ++r) {
      const int t = 9 * s + r;
      const int before = standing_[static_cast<std::size_t>(t)] - (t == win_.win_tile);
      if (before != (r == 0 || r == 8 ? 3 : 1)) return false;
    }
    return true;
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
  TileMask kinds_ = 0, kong_kinds_ = 0, knitted_ = 0;
  int melded_ = 0, only_wait_ = -1;
  int shown_ = 0;  // copies of the winning tile in the winner's own melds
  std::array<Meld, 4> sets_{};
  std::optional<FanResult> best_;
};

}  // namespace

ReadingFans reading_fans(const Reading& reading, const Counts& standing, std::span<const Meld> melds,
                         const WinContext& win, bool count_wait) {
  return Calculator(standing, melds, win).of(reading, count_wait);
}

std::optional<FanResult> calculate_fans(const Counts& standing, std::span<const Meld> melds,
                                        const WinContext& win) {
  return Calculator(standing, melds, win).best();
}

}  // namespace bothost::mahjong
