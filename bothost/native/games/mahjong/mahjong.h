// Chinese Official mahjong (MCR) as the official judge plays it, one hand: the struct that satisfies `Game`.
#pragma once
#include "mahjong/encode.h"
#include "mahjong/event.h"
#include "mahjong/rules.h"
#include "mahjong/state.h"
#include "mahjong/view.h"

namespace bothost {

struct Mahjong {
  static constexpr std::string_view kName = "mahjong";
  static constexpr int kFormatVersion = 1;

  using Rules = mahjong::Rules;
  using Event = mahjong::Event;
  using State = mahjong::State;
  using View = mahjong::View;

  static const std::vector<std::string>& presets() { return mahjong::preset_names(); }
  static const std::vector<Block>& blocks() { return mahjong::encoder_blocks(); }
  static std::string notation(const Rules&, Action action) { return mahjong::notation(action); }
  static Action parse_action(const Rules&, std::string_view text) { return mahjong::parse_action(text); }
  static void encode(const View& view, int block, float* out) { mahjong::encode_view(view, block, out); }
  static void encode_actions(const View& view, int block, std::span<const Action> actions, float* out) {
    mahjong::encode_actions(view, block, actions, out);
  }
  static void encode_oracle(const State& state, Seat seat, int block, float* out) {
    mahjong::encode_oracle(state, seat, block, out);
  }
};

static_assert(Game<Mahjong>);

}  // namespace bothost
