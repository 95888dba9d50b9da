// Dou Dizhu ("fight the landlord"): three seats, 54 cards without suits, see rules.h for the options.
#pragma once
#include "core/game.h"
#include "doudizhu/encode.h"

namespace bothost {

struct Doudizhu {
  using Rules = doudizhu::Rules;
  using State = doudizhu::State;
  using View = doudizhu::View;
  using Event = doudizhu::Event;

  static constexpr std::string_view kName = "doudizhu";
  static constexpr int kFormatVersion = 1;
  static const std::vector<Block>& blocks() { return doudizhu::encoder_blocks(); }
  static const std::vector<std::string>& presets() { return doudizhu::preset_names(); }

  /// Plays: the body, then the kickers, each ascending (`333444` + `56` is 33344456); `+` between them only
  /// where the bare cards read as another move. Cards are read in any order. `pass`, `bid0` … `bid3`, `call`,
  /// `grab`.
  static std::string notation(const Rules&, Action action) {
    return doudizhu::Universe::get().notation(action);
  }
  static Action parse_action(const Rules& rules, std::string_view text) {
    const Action a = doudizhu::Universe::get().parse(text);
    if (a >= rules.num_actions())
      throw InvalidInput("\"" + std::string(text) + "\" is no action under these rules");
    return a;
  }

  static void encode(const View& view, int block, float* out) { doudizhu::encode(view, block, out); }
  static void encode_actions(const View& view, int block, std::span<const Action> actions, float* out) {
    doudizhu::encode_actions(view, block, actions, out);
  }
  static void encode_oracle(const State& state, Seat seat, int block, float* out) {
    doudizhu::encode_oracle(state, seat, block, out);
  }
};

}  // namespace bothost
