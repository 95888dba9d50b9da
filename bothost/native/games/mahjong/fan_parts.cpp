#include "mahjong/fan_parts.h"

#include <algorithm>
#include <bit>
#include <map>
#include <stdexcept>

namespace bothost::mahjong {
namespace {

constexpr TileMask kWinds = TileMask{0xf} << 27, kDragons = TileMask{7} << 31;
constexpr TileMask kTerminals = ranks(0x101);
constexpr TileMask kEven = ranks(0b010101010);
constexpr TileMask kGreen = TileMask{0b10101110} << 9 | bit(kDragonGreen);

/// The fans that tiles of these kinds allow, if all other tiles do.
FanSet allowed_by_kinds(TileMask kinds) {
  FanSet fans;
  const auto within = [&](TileMask m, Fan fan) {
    if ((kinds & ~m) == 0) fans.insert(fan);
  };
  within(kTerminals, Fan::all_terminals);
  within(kTerminals | kHonourMask, Fan::all_terminals_and_honors);
  within(ranks(0b011111110), Fan::all_simples);
  within(ranks(0x00f), Fan::lower_four);
  within(ranks(0x007), Fan::lower_tiles);
  within(ranks(0x1e0), Fan::upper_four);
  within(ranks(0x1c0), Fan::upper_tiles);
  within(ranks(0x038), Fan::middle_tiles);
  within(kGreen, Fan::all_green);
  within(kReversible, Fan::reversible_tiles);
  return fans;
}

unsigned types_of(TileMask kinds) {
  unsigned types = 0;
  for (; kinds; kinds &= kinds - 1) types |= 1U << type_of(std::countr_zero(kinds));
  return types;
}

/// A set, or the pair, of these kinds. `pung`, `chow`: whether it may be in a hand of pungs or of chows
/// alone.
FanTables::Part part_of(TileMask kinds, bool pung, bool chow) {
  FanTables::Part part{allowed_by_kinds(kinds), types_of(kinds)};
  if (pung) part.allows.insert(Fan::all_pungs);
  if (pung && (kinds & ~kEven) == 0) part.allows.insert(Fan::all_even_pungs);
  if (chow) part.allows.insert(Fan::all_chows);
  if (kinds & (kTerminals | kHonourMask)) part.allows.insert(Fan::outside_hand);
  if (kinds & ranks(0x010)) part.allows.insert(Fan::all_five);
  return part;
}

/// The fans of all tiles by the types among them.
FanSet fans_of_types(unsigned types) {
  const int suits = std::popcount(types & 7U);
  const bool honours = types > 7;
  FanSet fans;
  if (!honours) fans.insert(Fan::no_honors);
  if (suits == 0) fans.insert(Fan::all_honors);
  if (suits == 1) fans.insert(honours ? Fan::half_flush : Fan::full_flush);
  if (suits == 2) fans.insert(Fan::one_voided_suit);
  if (types == 31) fans.insert(Fan::all_types);
  return fans;
}

// ------------------------------------------------------------------------------------------------- chows

/// Chows as set indices, ascending. The fan of all four, with the suit of the fives that it needs or -1.
Fan four_chows(const std::array<int, 4>& c, int& fives) {
  fives = -1;
  const int d = c[1] - c[0];
  if (c[0] / 7 == c[3] / 7) {
    if (c[2] - c[1] == d && c[3] - c[2] == d && d <= 2)
      return d == 0 ? Fan::quadruple_chow : Fan::four_pure_shifted_chows;
    if (c[0] % 7 != 0 || d != 0 || c[2] != c[0] + 6 || c[3] != c[2]) return kNoFan;
    fives = c[0] / 7;
    return Fan::pure_terminal_chows;
  }
  if (c[0] % 7 != 0 || d != 6 || c[2] % 7 != 0 || c[3] != c[2] + 6) return kNoFan;
  fives = 3 - c[0] / 7 - c[2] / 7;
  return Fan::three_suited_terminal_chows;
}

/// No three chows combine. The pairs that do are scored as a forest: each chow joins those combined before
/// it once (the account-once rule). Which of the pairs fall away does not change the points; like the
/// official judge we give up repeated fans first, the later in the list the sooner.
Tally pairs_of_chows(std::span<const int> c) {
  Tally tally;
  std::array<int, 4> times{};
  const auto size = static_cast<int>(c.size());
  int found = 0, most = size - 1;
  for (int i = 0; i < size; ++i) {
    bool alone = true;
    for (int j = 0; j < size; ++j) {
      const Fan f = i == j ? kNoFan : two_chows(c[at(i)], c[at(j)]);
      alone = alone && f == kNoFan;
      if (j > i && f != kNoFan) {
        ++times[at(static_cast<int>(f) - static_cast<int>(Fan::pure_double_chow))];
        ++found;
      }
    }
    most -= alone;
  }
  for (int keep = 1; found > most && keep >= 0; --keep)
    for (int k = 3; k >= 0 && found > most; --k)
      while (times[at(k)] > keep && found > most) --times[at(k)], --found;
  for (int k = 0; k < 4; ++k)
    tally.add(static_cast<Fan>(static_cast<int>(Fan::pure_double_chow) + k), times[at(k)]);
  return tally;
}

/// The dearest combination of three, then the fourth chow joined at most once to one of them.
Tally combined_chows(std::span<const int> c) {
  Fan best = kNoFan, extra = kNoFan;
  int worth = 0;
  for (std::size_t out = 0; c.size() >= 3 && out < c.size(); ++out) {
    std::array<int, 3> in{};  // of four chows, those but `out`; of three, all
    for (std::size_t i = 0, n = 0; i < c.size(); ++i)
      if (c.size() == 3 || i != out) in[n++] = c[i];
    const Fan f = three_chows(in[0], in[1], in[2]);
    if (f == kNoFan) continue;
    Fan e = kNoFan;
    if (c.size() == 4)
      for (const int other : in) e = std::min(e, two_chows(c[out], other));
    const int w = points_of(f) + (e != kNoFan);
    if (w > worth) best = f, extra = e, worth = w;
  }
  if (best == kNoFan) return pairs_of_chows(c);
  Tally tally;
  tally.add(best);
  if (extra != kNoFan) tally.add(extra, 1);
  return tally;
}

FanTables::Chows fans_of_chows(std::span<const int> c) {
  FanTables::Chows chows;
  if (c.size() == 4) {
    const Fan four = four_chows({c[0], c[1], c[2], c[3]}, chows.suit_of_fives);
    if (four != kNoFan && chows.suit_of_fives < 0) {
      chows.fans.add(four);
      return chows;
    }
    chows.with_fives = four;
  }
  if (c.size() >= 2) chows.fans = combined_chows(c);
  return chows;
}

// ------------------------------------------------------------------------------------------------- pungs

/// Pungs of number tiles: `pungs` has at least two.
void add_number_pungs(Tally& t, TileMask pungs) {
  std::array<int, 4> p{};
  std::size_t n = 0;
  for (; pungs; pungs &= pungs - 1) p[n++] = std::countr_zero(pungs);
  if (n == 4 && suit_of(p[0]) == suit_of(p[3]) && p[3] - p[0] == 3) {
    t.add(Fan::four_pure_shifted_pungs);
    return;
  }
  Fan best = kNoFan;
  int doubles = 0;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) {
      doubles += rank_of(p[a]) == rank_of(p[b]);
      for (std::size_t c = b + 1; c < n; ++c) best = std::min(best, three_pungs(p[a], p[b], p[c]));
    }
  if (best != kNoFan) t.add(best);
  // Three pungs of one rank are the triple pung, and nothing can double them.
  if (best != Fan::triple_pung) t.add(Fan::double_pung, doubles);
}

void add_pungs(Tally& t, TileMask pungs, int pair, const Circumstances& how) {
  const TileMask seat = bit(kWindEast + how.seat_wind);
  const TileMask prevalent = bit(kWindEast + how.prevalent_wind);
  const TileMask winds = pungs & kWinds;
  const int dragons = std::popcount(pungs & kDragons);
  int honours = std::popcount(winds & ~seat & ~prevalent), terminals = std::popcount(pungs & kTerminals);
  if (winds & seat) t.add(Fan::seat_wind);
  if (winds & prevalent) t.add(Fan::prevalent_wind);
  if (winds == kWinds) t.add(Fan::big_four_winds);
  if (std::popcount(winds) == 3) {
    t.add(is_wind(pair) ? Fan::little_four_winds : Fan::big_three_winds);
    honours = 0;
  }
  if (dragons == 3) t.add(Fan::big_three_dragons);
  if (dragons == 2) t.add(is_dragon(pair) ? Fan::little_three_dragons : Fan::two_dragons_pungs);
  if (dragons == 1) t.add(Fan::dragon_pung);
  if (how.nine_gates && terminals > 0) --terminals;
  t.add(Fan::pung_of_terminals_or_honors, terminals + honours);
  const TileMask numbers = pungs & ~kHonourMask;
  if (numbers & (numbers - 1)) add_number_pungs(t, numbers);
}

}  // namespace

Circumstances::Circumstances(std::span<const Meld> melds, const WinContext& win)
    : seat_wind(win.seat_wind), prevalent_wind(win.prevalent_wind), self_drawn(win.self_drawn) {
  int shown = 0, kongs = 0, concealed_kongs = 0;  // copies of the winning tile in the winner's own melds
  for (const auto& m : melds) {
    if (tiles_of(m) >> win.win_tile & 1) shown += m.kind == Meld::chow ? 1 : 3;
    melded += !m.concealed;
    concealed += m.concealed;
    kongs += m.kind == Meld::kong;
    concealed_kongs += m.kind == Meld::kong && m.concealed;
  }
  if (win.fourth_tile || shown == 3) fans.insert(Fan::last_tile);
  if (win.kong) fans.insert(win.self_drawn ? Fan::out_with_replacement_tile : Fan::robbing_the_kong);
  if (win.wall_last) fans.insert(win.self_drawn ? Fan::last_tile_draw : Fan::last_tile_claim);
  two_concealed_kongs = kongs == 2 && concealed_kongs == 2;
  if (kongs == 1) fans.insert(concealed_kongs ? Fan::concealed_kong : Fan::melded_kong);
  if (kongs == 2)
    fans.insert(concealed_kongs == 0   ? Fan::two_melded_kongs
                : concealed_kongs == 1 ? Fan::concealed_and_melded_kong
                                       : Fan::two_concealed_kongs);
  if (kongs == 3) fans.insert(Fan::three_kongs);
  if (kongs == 4) fans.insert(Fan::four_kongs);
}

const FanTables& FanTables::get() {
  static const FanTables tables;
  return tables;
}

FanTables::FanTables() {
  for (std::size_t s = 0; s < kSets; ++s)
    set[s] = part_of(tiles_of(set_at(s)), s >= kChowSets, s < kChowSets);
  for (int t = 0; t < kKinds; ++t) pair[at(t)] = part_of(bit(t), true, is_number(t));
  for (std::size_t types = 0; types < of_types.size(); ++types)
    of_types[types] = fans_of_types(static_cast<unsigned>(types));
  // Combinations in ascending order of their size. Each is found from its parts in ascending order.
  std::map<std::vector<int>, unsigned> number{{{}, 0}};
  std::vector<std::vector<int>> combinations{{}};
  const auto number_of = [&](std::vector<int> chows) {
    std::ranges::sort(chows);
    const auto [found, fresh] = number.try_emplace(chows, static_cast<unsigned>(combinations.size()));
    if (fresh) combinations.push_back(std::move(chows));
    return found->second;
  };
  for (std::size_t i = 0; i < combinations.size(); ++i) {
    const auto chows = combinations[i];
    const auto found = fans_of_chows(chows);
    auto known = std::ranges::find(outcomes_, found);
    outcome_[i] = static_cast<std::uint8_t>(known - outcomes_.begin());
    if (known == outcomes_.end()) outcomes_.push_back(found);
    for (std::size_t c = 0; chows.size() < 4 && c < kChowSets; ++c) {
      auto more = chows;
      more.push_back(static_cast<int>(c));
      next_[i][c] = static_cast<std::uint16_t>(number_of(std::move(more)));
    }
  }
  if (combinations.size() != kCombinations || outcomes_.size() > 256)
    throw std::logic_error("the tables of chows have other sizes");
}

void HandParts::add_tiles(TileMask tiles, bool knitted) {
  FanTables::Part part{allowed_by_kinds(tiles), types_of(tiles)};
  if (knitted) part.allows.insert(Fan::all_chows);
  add(part);
}

bool nine_gates(const Counts& standing, Tile win) {
  const int suit = suit_of(win);
  if (suit == 3 || (kinds_with(standing, 1) & ~(TileMask{0x1ff} << 9 * suit))) return false;
  for (int t = 9 * suit; t < 9 * suit + 9; ++t)
    if (standing[at(t)] - (t == win) != (is_terminal(t) ? 3 : 1)) return false;
  return true;
}

Tally tally_of_kinds(const FanTables& tables, const HandParts& parts, int hogs) {
  Tally t(parts.allowed);
  t.add(tables.of_types[parts.types]);
  if (hogs) t.add(Fan::tile_hog, hogs);
  return t;
}

void add_concealment(Tally& t, const Circumstances& how, bool inherent) {
  if (how.melded == 0) {
    if (how.self_drawn)
      t.add(inherent ? Fan::self_drawn : Fan::fully_concealed_hand);
    else if (!inherent)
      t.add(Fan::concealed_hand);
  } else if (how.self_drawn) {
    t.add(Fan::self_drawn);
  } else if (how.melded == 4) {
    t.add(Fan::melded_hand);
  }
}

Tally tally_of(const FanTables& tables, const HandParts& parts, int pair, int hogs, int concealed,
               bool knitted, const Circumstances& how) {
  Tally t = tally_of_kinds(tables, parts, hogs);
  const auto& chows = tables.of(parts.chows);
  if (chows.suit_of_fives >= 0 && pair == 9 * chows.suit_of_fives + 4)
    t.add(chows.with_fives);
  else
    t.add(chows.fans);
  if (parts.pungs) add_pungs(t, parts.pungs, pair, how);
  if (concealed == 4) t.add(Fan::four_concealed_pungs);
  if (concealed == 3) t.add(Fan::three_concealed_pungs);
  // Two concealed kongs are themselves two concealed pungs.
  if (concealed == 2 && !how.two_concealed_kongs) t.add(Fan::two_concealed_pungs);
  if (knitted) t.add(Fan::knitted_straight);
  if (how.nine_gates) t.add(Fan::nine_gates);
  add_concealment(t, how, how.nine_gates || concealed == 4);
  t.add(how.fans);
  return t;
}

}  // namespace bothost::mahjong
