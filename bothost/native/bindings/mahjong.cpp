// Shapes and fans of Chinese Official mahjong, one by one and in batches: mahjong_* of
// bothost.native._native. Their documented face is bothost/rules/mahjong.py.
#include "mahjong/mahjong.h"

#include <algorithm>
#include <vector>

#include "bindings/bind.h"
#include "bindings/convert.h"
#include "core/types.h"
#include "mahjong/fan.h"
#include "mahjong/luck.h"
#include "mahjong/planner.h"
#include "mahjong/policy.h"
#include "mahjong/shape.h"

namespace bothost::python {
namespace {

using namespace bothost::mahjong;

using Hand = nb::ndarray<const std::uint8_t, nb::shape<34>, nb::c_contig, nb::device::cpu>;
using Hands = nb::ndarray<const std::uint8_t, nb::shape<-1, 34>, nb::c_contig, nb::device::cpu>;
using MeldRows = nb::ndarray<const std::uint8_t, nb::shape<-1, 4, 2>, nb::c_contig, nb::device::cpu>;
using WinRows = nb::ndarray<const std::uint8_t, nb::shape<-1, 8>, nb::c_contig, nb::device::cpu>;

Counts counts(const std::uint8_t* row) {
  Counts c;
  std::copy_n(row, kKinds, c.begin());
  return c;
}

Counts checked(const Hand& hand, int melds) {
  const Counts c = counts(hand.data());
  check_hand(c, melds);
  return c;
}

/// Rows (kind, tile) up to the first of kind 0; 1 chow (middle tile), 2 pung, 3 melded kong, 4 concealed
/// kong.
std::size_t read_melds(const std::uint8_t* row, std::array<Meld, 4>& melds) {
  std::size_t n = 0;
  for (; n < 4 && row[2 * n] != 0; ++n) {
    const int kind = row[2 * n];
    if (kind > 4) throw InvalidInput("a meld's kind is 0 to 4, not " + std::to_string(kind));
    melds[n] = {kind == 1 ? Meld::chow : kind == 2 ? Meld::pung : Meld::kong, row[2 * n + 1], kind == 4};
  }
  return n;
}

WinContext read_win(const std::uint8_t* row) {
  return {row[0], row[1] != 0, row[2] != 0, row[3] != 0, row[4] != 0, row[5], row[6], row[7]};
}

nb::object branches(const AnyState& state, nb::handle seat, const List<std::int64_t>& actions,
                    bool acceptance_weighted, nb::handle draws_object, const List<float>& weights) {
  const auto start = state_of<Mahjong>(state);  // a copy: another thread may play on
  const auto& game = state.game();
  std::vector<Action> list;
  for (const auto action : span_of(actions)) list.push_back(game.checked_action(action));
  const Seat who = game.checked_seat(integer(seat));
  const int draws = within(draws_object, "draws", 0, 1000);
  const auto appraisal = acceptance_weighted ? Appraisal::acceptance_weighted : Appraisal::plain;
  std::vector<float> out;
  without_gil([&] {
    const LuckNetwork critic(span_of(weights));
    for (const auto& scores : branch(start, who, list, appraisal, draws, critic))
      for (const double score : scores) out.push_back(static_cast<float>(score));
  });
  return array_of(std::move(out), {list.size(), std::size_t{kSeats}});
}

nb::tuple rule_choice(const AnyView& view, bool simple, bool acceptance_weighted) {
  const auto appraisal = acceptance_weighted ? Appraisal::acceptance_weighted : Appraisal::plain;
  const auto choice =
      simple ? choose_simply(view_of<Mahjong>(view)) : choose(view_of<Mahjong>(view), appraisal);
  return nb::make_tuple(choice.action, choice.reason, choice.worth);
}

nb::list fan_indices(const FanSet& fans) {
  nb::list out;
  fans.each([&](std::size_t f) { out.append(f); });
  return out;
}

nb::tuple as_tuple(const Prospect& p) {
  nb::list shapes;
  for (std::size_t s = 0; s < kShapes; ++s)
    if (p.shapes[s]) shapes.append(s);
  return nb::make_tuple(p.worth, p.chance, p.tiles_needed, p.points, static_cast<int>(p.shape),
                        fan_indices(p.fans), shapes, fan_indices(p.all_fans));
}

nb::tuple look_ahead_of(const AnyView& any, int depth) {
  if (depth < 0 || depth > 7) throw InvalidInput("the depth is 0 to 7");
  const auto& view = view_of<Mahjong>(any);
  auto targets = targets_of(view);
  targets.find(depth);
  const auto ahead = look_ahead(targets, Arrivals(outlook_of(view), targets.unseen()), depth, true);
  nb::list after;
  for (std::size_t t = 0; t < kKinds; ++t)
    if (view.hand()[t] > 0) after.append(nb::make_tuple(t, as_tuple(ahead.after[t])));
  return nb::make_tuple(as_tuple(ahead.now), after, ahead.targets);
}

nb::object luck_points(const AnyState& any, const List<float>& weights) {
  const auto state = state_of<Mahjong>(any);  // a copy, as above
  const auto luck = without_gil([&] { return luck_of(state, LuckNetwork(span_of(weights))); });
  return array_of(std::vector<double>(luck.begin(), luck.end()));
}

nb::tuple luck_inputs(const AnyState& any) {
  const auto state = state_of<Mahjong>(any);  // a copy, as above
  std::vector<float> inputs;
  std::vector<std::int8_t> drawers;
  std::vector<std::int16_t> wall;
  without_gil([&] {
    replay_draws(state, [&](const State& after) {
      BeforeDraw before(after);
      for (const auto& seat : before.inputs()) inputs.insert(inputs.end(), seat.begin(), seat.end());
      drawers.push_back(before.drawer());
      wall.push_back(static_cast<std::int16_t>(before.wall_tiles()));
    });
  });
  const std::size_t n = drawers.size();
  return nb::make_tuple(array_of(std::move(inputs), {n, std::size_t{kSeats}, kSeatInputs}),
                        array_of(std::move(drawers)), array_of(std::move(wall)));
}

}  // namespace

void bind_mahjong(nb::module_& m) {
  m.def("mahjong_fans", [] {
    nb::list out;
    for (const auto& f : kFanInfo) out.append(nb::make_tuple(f.id, f.chinese, static_cast<int>(f.points)));
    return out;
  });

  m.def("mahjong_distances", [](const Hand& hand, int melds) {
    const auto d = distances(checked(hand, melds), melds);
    return nb::make_tuple(d[0], d[1], d[2], d[3], d[4]);
  });

  m.def("mahjong_useful_tiles", [](const Hand& hand, int melds, int shape) {
    if (shape < -1 || shape > 4) throw InvalidInput("a shape is -1 (all) to 4");
    const auto c = checked(hand, melds);
    const auto u = shape < 0 ? useful_tiles(c, melds) : useful_tiles_of(c, melds, static_cast<Shape>(shape));
    return nb::make_tuple(u.shanten, u.tiles);
  });

  m.def("mahjong_shanten_many", [](const Hands& hands, int melds) {
    std::vector<std::int8_t> out(hands.shape(0));
    without_gil([&] {
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto c = counts(hands.data() + i * kKinds);
        check_hand(c, melds);
        out[i] = static_cast<std::int8_t>(shanten(c, melds));
      }
    });
    return array_of(std::move(out));
  });

  m.def("mahjong_fan_many", [](const Hands& standing, const MeldRows& melds, const WinRows& wins) {
    const std::size_t n = standing.shape(0);
    if (melds.shape(0) != n || wins.shape(0) != n) throw InvalidInput("the arrays must have equal lengths");
    std::vector<std::int16_t> points(n);
    std::vector<std::uint8_t> times(n * kFans);
    without_gil([&] {
      for (std::size_t i = 0; i < n; ++i) {
        std::array<Meld, 4> sets;
        const auto k = read_melds(melds.data() + 8 * i, sets);
        const auto r = calculate_fans(counts(standing.data() + i * kKinds), {sets.data(), k},
                                      read_win(wins.data() + 8 * i));
        points[i] = static_cast<std::int16_t>(r ? r->points : -1);
        if (r) std::ranges::copy(r->times, &times[i * kFans]);
      }
    });
    return nb::make_tuple(array_of(std::move(points)), array_of(std::move(times), {n, kFans}));
  });

  m.def("mahjong_rule_choice", &rule_choice);
  m.def("mahjong_branches", &branches);
  m.def("mahjong_look_ahead", &look_ahead_of);
  m.def("mahjong_dangers", [](const AnyView& view) {
    const auto d = danger(view_of<Mahjong>(view));
    return array_of(std::vector<double>(d.begin(), d.end()));
  });
  m.def("mahjong_luck", &luck_points);
  m.def("mahjong_luck_inputs", &luck_inputs);
}

}  // namespace bothost::python
