// Players of Dou Dizhu with a style of their own: the rule player's judgement, bent by a few habits.
#pragma once
#include <array>
#include <string_view>

#include "doudizhu/policy.h"

namespace bothost::doudizhu {

/// Habits, in half points (see play_value) where nothing else is said; all 0: as the rule player likes it.
enum class Habit : std::uint8_t {
  aggression,  ///< for any play that answers an enemy, against passing
  bombs,    ///< for a bomb or rocket that does not end the hand, while no enemy is down to `bombs_from` cards
  length,   ///< per card of a lead
  ranks,    ///< per rank of a lead's body above 3: negative leads low cards first
  pairs,    ///< for leading pairs and chains of pairs
  chains,   ///< for leading chains of singles
  kickers,  ///< for any play with kickers
  control,  ///< per ace, two and joker that a play spends
  help,     ///< for leaving a trick to the partner
  feed,     ///< for leading a low play of the partner's size where he has one or two cards left
  block,    ///< per rank above 9 of a lead that an enemy with one or two cards could go out on
};
inline constexpr std::array<std::string_view, 11> kHabitNames = {"aggression", "bombs",  "length",  "ranks",
                                                                 "pairs",      "chains", "kickers", "control",
                                                                 "help",       "feed",   "block"};

struct Style {
  std::array<double, kHabitNames.size()> habits{};
  /// Cards of an enemy from which on bombs are no longer held back, or hurried.
  int bombs_from = 2;
  /// Added to the chance of winning by which it bids.
  double bid = 0;
  /// Whether it sees plays that win for certain, and those that leave one certain play.
  bool sees_wins = true;
  /// Half points of its moods: it draws from the softmax of its likes over this; 0: always what it likes
  /// best.
  double temperature = 0;
};

struct StyledChoice {
  Action action;
  /// What the rule player would like best.
  Action rule;
  /// What each habit says for `action`, in half points.
  std::array<double, kHabitNames.size()> habits;
};

/// The player's action; the seat must be to act. `mood` decides what it draws: equal moods, equal actions.
StyledChoice choose_in_style(const Sight& sight, const Style& style, std::uint64_t mood);

}  // namespace bothost::doudizhu
