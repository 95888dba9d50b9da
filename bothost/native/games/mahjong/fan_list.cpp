#include "mahjong/fan_list.h"

#include <algorithm>

namespace bothost::mahjong {

namespace {

/// The name of a fan with dashes.
template <std::size_t N>
struct Id {
  char text[N];
  constexpr Id(const char (&name)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i] == '_' ? '-' : name[i];
  }
};
template <Id id>
constexpr std::string_view kId{id.text, sizeof(id.text) - 1};

}  // namespace

const std::array<FanInfo, kFans> kFanInfo = {{
#define FAN(name, chinese, points) {kId<Id(#name)>, chinese, points},
#include "mahjong/fan_names.h"
#undef FAN
}};

namespace {

constexpr std::array<FanSet, kFans> make_implied() {
  using enum Fan;
  std::array<FanSet, kFans> t{};
  const auto says = [&](Fan f, std::initializer_list<Fan> implied) { t[at(f)] = FanSet(implied); };
  says(big_four_winds, {big_three_winds, all_pungs, prevalent_wind, seat_wind, pung_of_terminals_or_honors});
  says(big_three_dragons, {two_dragons_pungs, dragon_pung});
  says(all_green, {half_flush, one_voided_suit});
  says(nine_gates, {full_flush, concealed_hand, one_voided_suit, no_honors});
  says(four_kongs, {single_wait, all_pungs});
  says(seven_shifted_pairs,
       {seven_pairs, full_flush, concealed_hand, one_voided_suit, no_honors, single_wait});
  says(thirteen_orphans, {all_types, all_terminals_and_honors, concealed_hand, single_wait});
  says(all_terminals, {all_terminals_and_honors, all_pungs, outside_hand, pung_of_terminals_or_honors,
                       no_honors, double_pung});
  says(little_four_winds, {big_three_winds});
  says(little_three_dragons, {two_dragons_pungs, dragon_pung});
  says(all_honors, {all_terminals_and_honors, all_pungs, outside_hand, pung_of_terminals_or_honors});
  says(four_concealed_pungs, {all_pungs, concealed_hand});
  says(pure_terminal_chows, {seven_pairs, full_flush, all_chows, pure_double_chow, two_terminal_chows,
                             one_voided_suit, no_honors});
  says(quadruple_chow, {pure_shifted_pungs, tile_hog, pure_double_chow, pure_triple_chow});
  says(four_pure_shifted_pungs, {pure_triple_chow, pure_shifted_pungs, all_pungs});
  says(four_pure_shifted_chows, {pure_shifted_chows, two_terminal_chows, short_straight});
  says(all_terminals_and_honors, {all_pungs, pung_of_terminals_or_honors, outside_hand});
  says(seven_pairs, {concealed_hand, single_wait});
  says(greater_honors_and_knitted_tiles, {all_types, concealed_hand, single_wait});
  says(all_even_pungs, {all_pungs, all_simples, no_honors});
  says(full_flush, {one_voided_suit, no_honors});
  says(pure_triple_chow, {pure_shifted_pungs, pure_double_chow});
  says(pure_shifted_pungs, {pure_triple_chow});
  says(upper_tiles, {upper_four, no_honors});
  says(middle_tiles, {all_simples, no_honors});
  says(lower_tiles, {lower_four, no_honors});
  says(three_suited_terminal_chows, {all_chows, no_honors, mixed_double_chow, two_terminal_chows});
  says(all_five, {all_simples, no_honors});
  says(lesser_honors_and_knitted_tiles, {all_types, concealed_hand, single_wait});
  says(upper_four, {no_honors});
  says(lower_four, {no_honors});
  says(reversible_tiles, {one_voided_suit});
  says(last_tile_draw, {self_drawn});
  says(out_with_replacement_tile, {self_drawn});
  says(robbing_the_kong, {last_tile});
  says(half_flush, {one_voided_suit});
  says(melded_hand, {single_wait});
  says(fully_concealed_hand, {self_drawn});
  says(all_chows, {no_honors});
  says(all_simples, {no_honors});
  return t;
}

}  // namespace

constexpr std::array<FanSet, kFans> kImplied = make_implied();
constexpr FanSet kImplying = [] {
  FanSet implying;
  for (std::size_t f = 0; f < kFans; ++f)
    if (!(kImplied[f] == FanSet())) implying.insert(static_cast<Fan>(f));
  return implying;
}();

Fan two_chows(int a, int b) {
  const int sa = a / 7, sb = b / 7, lo = std::min(a % 7, b % 7), hi = std::max(a % 7, b % 7);
  if (sa != sb) return lo == hi ? Fan::mixed_double_chow : kNoFan;
  if (lo == hi) return Fan::pure_double_chow;
  if (hi - lo == 3) return Fan::short_straight;
  return lo == 0 && hi == 6 ? Fan::two_terminal_chows : kNoFan;
}

Fan three_chows(int a, int b, int c) {
  int r[3] = {a % 7, b % 7, c % 7};
  std::sort(r, r + 3);
  const int d = r[1] - r[0];
  if (r[2] - r[1] != d) return kNoFan;
  const bool same = a / 7 == b / 7 && b / 7 == c / 7;
  const bool all_three = a / 7 != b / 7 && b / 7 != c / 7 && a / 7 != c / 7;
  if (!same && !all_three) return kNoFan;
  if (d == 0) return same ? Fan::pure_triple_chow : Fan::mixed_triple_chow;
  if (d == 3) return same ? Fan::pure_straight : Fan::mixed_straight;
  if (d == 1) return same ? Fan::pure_shifted_chows : Fan::mixed_shifted_chows;
  return d == 2 && same ? Fan::pure_shifted_chows : kNoFan;
}

Fan three_pungs(int a, int b, int c) {
  int r[3] = {rank_of(a), rank_of(b), rank_of(c)};
  std::sort(r, r + 3);
  const bool same = suit_of(a) == suit_of(b) && suit_of(b) == suit_of(c);
  const bool all_three = suit_of(a) != suit_of(b) && suit_of(b) != suit_of(c) && suit_of(a) != suit_of(c);
  if (all_three && r[0] == r[2]) return Fan::triple_pung;
  if (r[1] != r[0] + 1 || r[2] != r[1] + 1) return kNoFan;
  return same ? Fan::pure_shifted_pungs : all_three ? Fan::mixed_shifted_pungs : kNoFan;
}

}  // namespace bothost::mahjong
