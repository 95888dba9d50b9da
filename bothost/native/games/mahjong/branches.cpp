#include "mahjong/branches.h"

#include "mahjong/policy.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

namespace {

/// Whether `state` waits for a horizon that is yet to come. Counts the draws.
bool goes_on(const State& state, int log_before, int& draws) {
  if (state.terminal()) return false;
  return !(state.has_drawn() && state.log().size > log_before && --draws == 0);
}

/// Takes `action`, and lets rule players play until the horizon.
BySeat<double> play_out(State state, Seat seat, Action action, Appraisal appraisal, Horizon horizon) {
  int before = state.log().size;
  apply_checked(state, seat, action, NoEvents{});
  while (goes_on(state, before, horizon.draws)) {
    before = state.log().size;
    play_by_rule(state, appraisal);
  }
  return state.terminal() ? state.scores() : BeforeDraw(state).value(*horizon.critic);
}

}  // namespace

std::vector<BySeat<double>> branch(const State& state, Seat seat, std::span<const Action> actions,
                                   Appraisal appraisal, Horizon horizon) {
  if (horizon.draws > 0 && state.rules().flowers)
    throw InvalidInput("the value of hands with flowers is not known");
  std::vector<BySeat<double>> out;
  out.reserve(actions.size());
  for (const auto action : actions) out.push_back(play_out(state, seat, action, appraisal, horizon));
  return out;
}

}  // namespace bothost::mahjong
