#include "mahjong/fan_list.h"

#include <algorithm>

namespace bothost::mahjong {

const std::array<FanInfo, kFans> kFanInfo = {{
    {"big-four-winds", "大四喜", 88},
    {"big-three-dragons", "大三元", 88},
    {"all-green", "绿一色", 88},
    {"nine-gates", "九莲宝灯", 88},
    {"four-kongs", "四杠", 88},
    {"seven-shifted-pairs", "连七对", 88},
    {"thirteen-orphans", "十三幺", 88},
    {"all-terminals", "清幺九", 64},
    {"little-four-winds", "小四喜", 64},
    {"little-three-dragons", "小三元", 64},
    {"all-honors", "字一色", 64},
    {"four-concealed-pungs", "四暗刻", 64},
    {"pure-terminal-chows", "一色双龙会", 64},
    {"quadruple-chow", "一色四同顺", 48},
    {"four-pure-shifted-pungs", "一色四节高", 48},
    {"four-pure-shifted-chows", "一色四步高", 32},
    {"three-kongs", "三杠", 32},
    {"all-terminals-and-honors", "混幺九", 32},
    {"seven-pairs", "七对", 24},
    {"greater-honors-and-knitted-tiles", "七星不靠", 24},
    {"all-even-pungs", "全双刻", 24},
    {"full-flush", "清一色", 24},
    {"pure-triple-chow", "一色三同顺", 24},
    {"pure-shifted-pungs", "一色三节高", 24},
    {"upper-tiles", "全大", 24},
    {"middle-tiles", "全中", 24},
    {"lower-tiles", "全小", 24},
    {"pure-straight", "清龙", 16},
    {"three-suited-terminal-chows", "三色双龙会", 16},
    {"pure-shifted-chows", "一色三步高", 16},
    {"all-five", "全带五", 16},
    {"triple-pung", "三同刻", 16},
    {"three-concealed-pungs", "三暗刻", 16},
    {"lesser-honors-and-knitted-tiles", "全不靠", 12},
    {"knitted-straight", "组合龙", 12},
    {"upper-four", "大于五", 12},
    {"lower-four", "小于五", 12},
    {"big-three-winds", "三风刻", 12},
    {"mixed-straight", "花龙", 8},
    {"reversible-tiles", "推不倒", 8},
    {"mixed-triple-chow", "三色三同顺", 8},
    {"mixed-shifted-pungs", "三色三节高", 8},
    {"chicken-hand", "无番和", 8},
    {"last-tile-draw", "妙手回春", 8},
    {"last-tile-claim", "海底捞月", 8},
    {"out-with-replacement-tile", "杠上开花", 8},
    {"robbing-the-kong", "抢杠和", 8},
    {"all-pungs", "碰碰和", 6},
    {"half-flush", "混一色", 6},
    {"mixed-shifted-chows", "三色三步高", 6},
    {"all-types", "五门齐", 6},
    {"melded-hand", "全求人", 6},
    {"two-concealed-kongs", "双暗杠", 6},
    {"two-dragons-pungs", "双箭刻", 6},
    {"concealed-and-melded-kong", "明暗杠", 5},
    {"outside-hand", "全带幺", 4},
    {"fully-concealed-hand", "不求人", 4},
    {"two-melded-kongs", "双明杠", 4},
    {"last-tile", "和绝张", 4},
    {"dragon-pung", "箭刻", 2},
    {"prevalent-wind", "圈风刻", 2},
    {"seat-wind", "门风刻", 2},
    {"concealed-hand", "门前清", 2},
    {"all-chows", "平和", 2},
    {"tile-hog", "四归一", 2},
    {"double-pung", "双同刻", 2},
    {"two-concealed-pungs", "双暗刻", 2},
    {"concealed-kong", "暗杠", 2},
    {"all-simples", "断幺", 2},
    {"pure-double-chow", "一般高", 1},
    {"mixed-double-chow", "喜相逢", 1},
    {"short-straight", "连六", 1},
    {"two-terminal-chows", "老少副", 1},
    {"pung-of-terminals-or-honors", "幺九刻", 1},
    {"melded-kong", "明杠", 1},
    {"one-voided-suit", "缺一门", 1},
    {"no-honors", "无字", 1},
    {"edge-wait", "边张", 1},
    {"closed-wait", "嵌张", 1},
    {"single-wait", "单钓将", 1},
    {"self-drawn", "自摸", 1},
    {"flower-tiles", "花牌", 1},
}};

namespace {

constexpr std::array<FanSet, kFans> make_implied() {
  using enum Fan;
  std::array<FanSet, kFans> t{};
  const auto says = [&](Fan f, std::initializer_list<Fan> implied) {
    t[static_cast<std::size_t>(f)] = FanSet(implied);
  };
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

constexpr int kChows = 21;

constexpr Fan find_two(int a, int b) {
  const int sa = a / 7, sb = b / 7, lo = std::min(a % 7, b % 7), hi = std::max(a % 7, b % 7);
  if (sa != sb) return lo == hi ? Fan::mixed_double_chow : kNoFan;
  if (lo == hi) return Fan::pure_double_chow;
  if (hi - lo == 3) return Fan::short_straight;
  return lo == 0 && hi == 6 ? Fan::two_terminal_chows : kNoFan;
}

constexpr Fan find_three(int a, int b, int c) {
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

struct ChowTables {
  std::array<std::array<Fan, kChows>, kChows> two{};
  std::array<std::array<std::array<Fan, kChows>, kChows>, kChows> three{};
  constexpr ChowTables() {
    for (int a = 0; a < kChows; ++a)
      for (int b = 0; b < kChows; ++b) {
        const auto x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
        two[x][y] = find_two(a, b);
        for (int c = 0; c < kChows; ++c) three[x][y][static_cast<std::size_t>(c)] = find_three(a, b, c);
      }
  }
};
constexpr ChowTables kChowTables;

}  // namespace

constexpr std::array<FanSet, kFans> kImplied = make_implied();
constexpr FanSet kImplying = [] {
  FanSet implying;
  for (std::size_t f = 0; f < kFans; ++f)
    if (!(kImplied[f] == FanSet())) implying.insert(static_cast<Fan>(f));
  return implying;
}();

Fan two_chows(int a, int b) {
  return kChowTables.two[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
}

Fan three_chows(int a, int b, int c) {
  return kChowTables
      .three[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)][static_cast<std::size_t>(c)];
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
