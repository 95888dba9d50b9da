// Moves, hand analysis and the rule player of Dou Dizhu.
#include "doudizhu/doudizhu.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bindings/afterstates.h"
#include "bindings/bind.h"
#include "bindings/convert.h"
#include "bindings/parameters.h"
#include "core/options.h"
#include "doudizhu/analysis.h"
#include "doudizhu/policy.h"
#include "doudizhu/style.h"
#include "search/policy.h"

namespace bothost::python {
namespace {

using namespace doudizhu;

const Move& move_of(nb::handle action) {
  const auto a = integer(action);
  if (a < 0 || a >= Universe::get().num_actions())
    throw InvalidInput("action " + std::to_string(a) + " is not one of Dou Dizhu");
  return Universe::get()[static_cast<Action>(a)];
}

nb::tuple describe(nb::handle action) {
  const Move& m = move_of(action);
  return nb::make_tuple(to_text(m.cards), to_text(m.body), kKindNames[at(m.kind)], static_cast<int>(m.rank),
                        static_cast<int>(m.length), static_cast<int>(m.needs));
}

nb::object abstract_map() {
  const auto& u = Universe::get();
  std::vector<std::int16_t> out(at(u.num_actions()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto a = u[static_cast<Action>(i)].abstract;
    out[i] = static_cast<std::int16_t>(a == kNoAbstract ? -1 : a);
  }
  return array_of(std::move(out));
}

template <Choice (*policy)(const Sight&)>
nb::tuple choice_of(const AnyView& view) {
  const auto choice = policy(Sight::of(asked_view<Doudizhu>(view)));
  return nb::make_tuple(choice.action, choice.reason);
}

/// Habits by their names, and the other members of Style by theirs.
Style style_of(const Json& json) {
  OptionReader read(json);
  Style style;
  for (std::size_t i = 0; i < kHabitNames.size(); ++i) read(kHabitNames[i], style.habits[i], -1000, 1000);
  read("bombs_from", style.bombs_from, 0, 20);
  read("bid", style.bid, -1000, 1000);
  read("sees_wins", style.sees_wins);
  read("temperature", style.temperature, 0, 1000);
  read.refuse_others("a style");
  return style;
}

/// (action, the rule player's favourite, {habit: half points that it adds to the action})
nb::tuple styled_choice(const Style& style, const AnyView& view, nb::handle mood) {
  const StyledChoice choice = choose_in_style(Sight::of(asked_view<Doudizhu>(view)), style, seed(mood));
  nb::dict habits;
  for (std::size_t i = 0; i < kHabitNames.size(); ++i)
    if (choice.habits[i] != 0)
      habits[nb::str(kHabitNames[i].data(), kHabitNames[i].size())] = choice.habits[i];
  return nb::make_tuple(choice.action, choice.rule, habits);
}

using Players = search::PlayerModelOf<Doudizhu>;

void make_players(Players* self, const nb::sequence& arrays) {
  using Parameters = PlayerModel::Parameters;
  constexpr std::size_t kHidden = PlayerModel::kHidden, kMove = PlayerModel::kMove;
  const std::vector<std::vector<std::size_t>> shapes{
      {PlayerModel::kPosition, kHidden}, {kHidden}, {kMove, kHidden}, {kHidden}, {kMove}};
  const ParameterArrays<const float> given(arrays, shapes);
  auto made = std::make_unique<Parameters>();
  const std::array<float*, 5> into{made->position.front().data(), made->bias.data(),
                                   made->move.front().data(), made->output.data(), made->linear.data()};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::size_t n = 1;
    for (const std::size_t size : shapes[i]) n *= size;
    if (!std::all_of(given.data()[i], given.data()[i] + n, [](float x) { return std::isfinite(x); }))
      throw InvalidInput("parameter " + std::to_string(i) + " has numbers that are not finite");
    std::copy_n(given.data()[i], n, into[i]);
  }
  new (self) Players(PlayerModel(std::move(made)));
}

nb::object probabilities(const Players& self, const AnyView& view) {
  const Sight sight = Sight::of(asked_view<Doudizhu>(view));
  if (sight.table.phase != Phase::play) throw InvalidInput("the model knows plays, and no calls");
  const auto moves = legal_actions(sight);
  std::vector<float> likes(moves.size()), out(moves.size());
  preferences(sight, moves, likes);
  self.model.probabilities(sight, moves, likes, out);
  return array_of(std::move(out));
}

double likelihood(const AnyView& view, const AnyState& deal, double exponent, const Players* players) {
  if (!(exponent > 0 && exponent <= 1)) throw nb::value_error("exponent must be above 0 and at most 1");
  return explain(view_of<Doudizhu>(view), state_of<Doudizhu>(deal), players ? &players->model : nullptr)
      .log_likelihood(exponent);
}

nb::tuple afterstates_of(const Sparse& features, const Sparse& legal) {
  const auto position = [](std::span<const std::int32_t> features) {
    return std::pair(features, hand_of(features));
  };
  const auto mark = [](const auto& from, int abstract, std::vector<std::int32_t>& out) {
    mark_afterstate(from.first, from.second, abstract, out);
  };
  return afterstates(features, legal, kMoveTypeFeatures, kAbstractActions, position, mark);
}

/// How much the rule player likes each legal class of each position, in points.
auto judgements_of(const Sparse& features, const Sparse& legal) {
  const fm::Samples samples{rows_of(features), rows_of(legal), {}};
  samples.check(kMoveTypeFeatures, kAbstractActions);
  std::vector<float> out;
  without_gil([&] {
    for (std::size_t s = 0; s < samples.size(); ++s)
      judge(Told::of(samples.features[s]), samples.legal[s], out);
  });
  return array_of(std::move(out));
}

}  // namespace

void bind_doudizhu(nb::module_& m) {
  m.def("doudizhu_move", &describe);
  m.def("doudizhu_readings",
        [](std::string_view cards) { return Universe::get().readings(cards_from_text(cards)); });
  m.def("doudizhu_abstract_map", &abstract_map);
  m.def("doudizhu_abstract_names", [] {
    std::vector<std::string> out;
    for (int i = 0; i < kAbstractActions; ++i) out.push_back(Universe::get().abstract_notation(i));
    return out;
  });
  m.def("doudizhu_fewest_plays", [](std::string_view cards) { return fewest_plays(hand_from_text(cards)); });
  m.def("doudizhu_hand_value", [](std::string_view cards) { return hand_value(hand_from_text(cards)); });
  m.def("doudizhu_partition", [](std::string_view cards, bool shortest) {
    return shortest ? shortest_partition(hand_from_text(cards)) : best_partition(hand_from_text(cards));
  });
  m.def("doudizhu_landlord_win_probability",
        [](std::string_view cards) { return landlord_win_probability(hand_from_text(cards)); });
  m.def("doudizhu_rule_choice", &choice_of<choose>);
  nb::class_<Style>(m, "DoudizhuStyle", nb::is_final())
      .def("__init__", [](Style* self, nb::dict options) { new (self) Style(style_of(json_from(options))); })
      .def("choose", &styled_choice);
  m.def("doudizhu_habits", [] { return std::vector<std::string>(kHabitNames.begin(), kHabitNames.end()); });
  m.def("doudizhu_afterstates", &afterstates_of);
  m.def("doudizhu_judgements", &judgements_of);
  nb::class_<Players, search::AnyPlayerModel>(m, "DoudizhuPlayers")
      .def("__init__", &make_players)
      .def("probabilities", &probabilities);
  m.def("doudizhu_log_likelihood", &likelihood, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  m.def("doudizhu_rhcp_choice", &choice_of<choose_by_partition>);
}

}  // namespace bothost::python
