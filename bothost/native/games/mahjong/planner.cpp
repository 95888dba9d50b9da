#include "mahjong/planner.h"

#include <algorithm>
#include <bit>

#include "mahjong/policy.h"
#include "mahjong/shape.h"

namespace bothost::mahjong {
namespace {

constexpr int kDeepest = 7;
/// Share of the remaining own draws to plan for: an opponent may win first.
constexpr double kLasting = 0.35;

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

Holding after(const Holding& before, Move move, Tile tile, Tile claimed) {
  Holding h = before;
  for (const auto t : outgoing(move, tile, claimed)) --h.standing[t];
  if (move == Move::bugang) {
    for (auto& m : h.melds)
      if (m.kind == Meld::pung && m.tile == tile) m.kind = Meld::kong;
  } else if (move != Move::play && move != Move::pass) {
    h.melds[h.num_melds++] = {kind_of(move), tile, move == Move::angang};
  }
  return h;
}

Outlook outlook_of(const View& view, Appraisal appraisal) {
  Outlook o;
  o.unseen = view.unseen();
  const int left = view.table().left_for(view.rules(), view.seat());
  const double takers = view.rules().wall == WallModel::shared ? kSeats : 1;
  o.turns = kLasting * left / takers;
  o.seat_wind = static_cast<std::uint8_t>(view.seat());
  o.prevalent_wind = view.table().wind;
  o.minimum = view.rules().minimum;
  if (appraisal == Appraisal::acceptance_weighted) o.draw_rates = draw_rates(view, left / takers);
  return o;
}

Targets targets_of(const View& view) {
  return Targets(holding_of(view.hand(), view.table().melds_of(view.seat())), outlook_of(view));
}

Planner::Planner(const View& view, Targets& targets, Appraisal appraisal)
    : view_(view),
      targets_(targets),
      outlook_(outlook_of(view, appraisal)),
      arrivals_(outlook_, targets.unseen()) {
  const auto& holding = targets.holding();
  const int needed = needed_tiles(holding.standing, static_cast<int>(holding.num_melds));
  ahead_ = look_as_far(targets, arrivals_, std::max(1, needed), kDeepest, depth_);
}

std::vector<Option> Planner::options(std::span<const Action> actions) {
  std::vector<Option> out;
  out.reserve(actions.size());
  for (const auto action : actions) out.push_back(option(action));
  return out;
}

Option Planner::option(Action action) {
  const auto [move, tile] = parts(action);
  if (move == Move::hu) return win();
  if (move == Move::pass) return {action, ahead_.now};
  if (move == Move::play) return {action, ahead_.after[tile], dangers()[tile]};
  Targets targets(after(targets_.holding(), move, tile, view_.table().last_tile), outlook_);
  targets.find(depth_);
  const bool same = targets.unseen() == arrivals_.unseen();
  const auto ahead = look_ahead(targets, same ? arrivals_ : Arrivals(outlook_, targets.unseen()), depth_);
  if (move != Move::chi && move != Move::peng) return {action, ahead.now};  // a tile replaces the kong
  auto best = discard(targets.holding().standing, ahead);
  best.action = action;
  return best;
}

Option Planner::win() const {
  Option o;
  o.action = kHu;
  const auto fans = win_fans(view_.rules(), view_.table(), view_.seat(), view_.hand(), view_.drawn());
  if (!fans || fans->points < outlook_.minimum) {
    o.prospect.worth = -30;  // a false win, if the rules allow to declare one
    return o;
  }
  const bool self_drawn = view_.table().phase == Phase::turn;
  o.prospect.worth = self_drawn ? 3.0 * (8 + fans->total) : 24.0 + fans->total;
  o.prospect.chance = 1;
  o.prospect.points = fans->points;
  o.prospect.fans = fans_of(*fans);
  return o;
}

Option Planner::discard(const Counts& standing, const LookAhead& ahead) {
  Option best;
  bool any = false;
  for (std::size_t t = 0; t < kKinds; ++t) {
    if (standing[t] == 0) continue;
    const Option o{kPass, ahead.after[t], dangers()[t]};
    if (!any || o.value() > best.value()) best = o;
    any = true;
  }
  return best;
}

const std::array<double, kKinds>& Planner::dangers() {
  if (!dangers_) dangers_ = danger(view_);
  return *dangers_;
}

// --- the rule player

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
