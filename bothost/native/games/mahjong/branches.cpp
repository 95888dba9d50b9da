#include "mahjong/branches.h"

#include <bit>
#include <utility>

#include "mahjong/policy.h"
#include "mahjong/view.h"

namespace bothost::mahjong {

BySeat<double> play_out(State state, Appraisal appraisal) {
  while (!state.terminal()) {
    const auto seat = static_cast<Seat>(std::countr_zero(state.to_act()));
    state.apply_legal(seat, choose(state.view(seat), appraisal).action, NoEvents{});
  }
  BySeat<double> scores;
  state.returns(scores.data());
  return scores;
}

std::vector<BySeat<double>> branch(const State& state, Seat seat, std::span<const Action> actions,
                                   Appraisal appraisal) {
  std::vector<BySeat<double>> out;
  out.reserve(actions.size());
  for (const auto action : actions) {
    State next = state;
    next.apply(seat, action, NoEvents{});
    out.push_back(play_out(std::move(next), appraisal));
  }
  return out;
}

}  // namespace bothost::mahjong
