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

  static constexpr auto& kPresets = mahjong::kPresets;
  static constexpr auto blocks = mahjong::encoder_blocks;
  static constexpr auto encode = mahjong::encode_view;
  static constexpr auto encode_actions = mahjong::encode_actions;
  static constexpr auto encode_oracle = mahjong::encode_oracle;
  static std::string notation(const Rules&, Action action) { return mahjong::notation(action); }
  static Action parse_action(const Rules&, std::string_view text) { return mahjong::parse_action(text); }
};

static_assert(Game<Mahjong>);

}  // namespace bothost
