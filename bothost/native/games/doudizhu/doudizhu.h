// Dou Dizhu ("fight the landlord"): three seats, 54 cards without suits, see rules.h for the options.
#pragma once
#include "core/game.h"
#include "doudizhu/belief.h"
#include "doudizhu/encode.h"
#include "doudizhu/policy.h"

namespace bothost {

struct Doudizhu {
  using Rules = doudizhu::Rules;
  using State = doudizhu::State;
  using View = doudizhu::View;
  using Event = doudizhu::Event;

  static constexpr std::string_view kName = "doudizhu";
  static constexpr int kFormatVersion = 1;
  static constexpr auto blocks = doudizhu::encoder_blocks;
  static constexpr auto& kPresets = doudizhu::kPresets;
  static constexpr auto encode = doudizhu::encode;
  static constexpr auto encode_actions = doudizhu::encode_actions;
  static constexpr auto encode_oracle = doudizhu::encode_oracle;

  /// Plays: the body, then the kickers, each ascending (`333444` + `56` is 33344456); `+` between them only
  /// where the bare cards read as another move. Cards are read in any order. `pass`, `bid0` … `bid3`, `call`,
  /// `grab`.
  static std::string notation(const Rules&, Action action) {
    return doudizhu::Universe::get().notation(action);
  }
  static Action parse_action(const Rules& rules, std::string_view text) {
    const Action a = doudizhu::Universe::get().parse(text);
    if (a >= rules.num_actions()) reject(text, "is no action under these rules");
    return a;
  }

  /// The landlord is one side, the peasants are the other; while bidding every seat is its own.
  static int side(const State& state, Seat seat) {
    const Seat landlord = state.table().landlord;
    return state.table().phase < doudizhu::Phase::play ? seat : seat == landlord;
  }
  /// What search asks of the rule player, see search/policy.h.
  static Action playout_action(const State& state, Seat seat, Rng& rng, double noise) {
    return doudizhu::choose_quickly(doudizhu::Sight::of(state, seat), rng, noise);
  }
  using Types = doudizhu::Types;
  using PlayerModel = doudizhu::PlayerModel;
  static Action playout_action(const State& state, Seat seat, const Types& types, const PlayerModel* model,
                               Rng& rng, double noise) {
    return doudizhu::choose_as(types[at(seat)], doudizhu::Sight::of(state, seat), model, rng, noise);
  }
  static void preferences(const State& state, Seat seat, std::span<const Action> actions,
                          std::span<float> out) {
    doudizhu::preferences(doudizhu::Sight::of(state, seat), actions, out);
  }
  static constexpr auto explain = doudizhu::explain;
};

}  // namespace bothost
