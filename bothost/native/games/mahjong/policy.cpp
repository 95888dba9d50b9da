#include "mahjong/policy.h"

#include <bit>

#include "mahjong/planner.h"

namespace bothost::mahjong {
namespace {

/// Least worth of the hand after a claim, as a multiple of its worth without. A claim shows a set and fixes
/// it.
double price(Move move) {
  return move == Move::chi ? 1.15 : move == Move::peng || move == Move::gang ? 1.05 : 1.0;
}

std::string_view name_of(const Prospect& p) {
  if (p.worth <= 0) return "safe";
  for (std::size_t f = 0; f < kFans; ++f)
    if (p.fans.contains(static_cast<Fan>(f))) return kFanInfo[f].id;
  return kFanInfo[at(Fan::chicken_hand)].id;
}

}  // namespace

Choice choose(const View& view, Appraisal appraisal) {
  ActionList legal;
  view.legal(legal);
  if (legal.empty()) throw InvalidInput("this seat is not asked");
  auto targets = targets_of(view);
  Planner planner(view, targets, appraisal);
  const auto options = planner.options(legal);
  const Option* best = nullptr;
  double most = 0;
  for (const auto& o : options) {
    const auto move = parts(o.action).move;
    if (move == Move::hu && o.prospect.worth > 0) return {kHu, "win", o.prospect.worth};
    const double value = o.value() > 0 ? o.value() / price(move) : o.value() * price(move);
    if (best && value <= most) continue;
    best = &o;
    most = value;
  }
  return {best->action, name_of(best->prospect), best->value()};
}

void play_by_rule(State& state, Appraisal appraisal) {
  const auto seat = static_cast<Seat>(std::countr_zero(state.to_act()));
  state.apply_legal(seat, choose(state.view(seat), appraisal).action, NoEvents{});
}

}  // namespace bothost::mahjong
