// A sound rule player for Dou Dizhu: it partitions its hand into few strong plays, leads and follows by that
// partition, works with its fellow peasant, and bids by what its hand won in self-play.
#pragma once
#include <algorithm>
#include <span>
#include <string_view>

#include "doudizhu/view.h"

namespace bothost::doudizhu {

/// What the policy looks at: what one seat knows.
struct Sight {
  const Rules& rules;
  const Public& table;
  Seat seat;
  Cards hand;
  /// Cards in other hands (or not known to be played).
  Cards unseen;

  static Sight of(const View& v) { return {v.rules(), v.table(), v.seat(), v.hand(), v.unseen()}; }
  /// As the seat's view would be, without making one.
  static Sight of(const State& s, Seat seat) {
    const auto& played = s.table().played;
    return {s.rules(), s.table(), seat, s.hand(seat),
            kDeck - s.hand(seat) - played[0] - played[1] - played[2]};
  }
};

/// The other peasant, to a peasant.
inline Seat partner_of(const Sight& s) {
  return s.seat == s.table.landlord ? kNobody : static_cast<Seat>(3 - s.table.landlord - s.seat);
}

struct Choice {
  Action action;
  /// Why, for a person to read.
  std::string_view reason;
};

/// The rule player's action; the seat must be to act. Deterministic; tens of microseconds.
Choice choose(const Sight& sight);

/// The rule player in playouts: it looks for certain wins only where few plays are left, and with a chance of
/// `noise` it errs by some points, so that a search does not count on it. A few microseconds.
Action choose_quickly(const Sight& sight, Rng& rng, double noise);

/// The action of the RHCP player (rhcp.cpp); the seat must be to act. Deterministic; tens of microseconds.
/// Calls are the rule player's.
Choice choose_by_partition(const Sight& sight);
/// The same of plays, all of which are `legal`.
Choice choose_by_partition(const Sight& sight, std::span<const Action> legal);

/// Likes of plays that end the hand, and what is added for those that win for certain.
inline constexpr int kLastPlay = 2000, kCertainWin = 1000;

/// How much the rule player likes each of its legal actions, in half points; `out` is aligned with `moves`.
void preferences(const Sight& sight, std::span<const Action> moves, std::span<float> out);

/// The rule player's call, were its chance to win as landlord larger by so much than it judges.
Choice call(const Sight& sight, std::span<const Action> legal, double eagerness = 0);

/// The legal actions of the seat to act; they lie in scratch of this thread.
std::span<const Action> legal_actions(const Sight& sight);

/// The play of the whole hand; kPass where none of the moves is.
inline Action last_play(Cards hand, std::span<const Action> moves) {
  const auto found = std::ranges::find(moves, hand, [](Action a) { return Universe::get()[a].cards; });
  return found == moves.end() ? kPass : *found;
}

/// What `preferences` gives a play that ends the hand or wins for certain, at least.
inline constexpr float kCertainLike = 700;

/// Whether no enemy can beat the play, as far as the unseen cards tell. Kickers are taken to be at hand.
bool stands(const Sight& sight, const Move& move);

/// Estimated probability that a landlord with these 17 cards (before the bottom) wins among rule players.
double landlord_win_probability(Cards dealt);

}  // namespace bothost::doudizhu
