// The RHCP player of Dou Dizhu: Recursive Hand Cards Partition, the rule engine that learning players of this
// game have been measured against (You et al., "Combinational Q-Learning for Dou Di Zhu", 2019).
//
// Its one idea: a hand is worth the best sum, over its partitions into plays, of the plays' worth less seven
// for every turn that they take; so a move is worth what the hand that it leaves is worth. The worth of
// plays is that of `play_value` (there in half points): a play of top rank r (3 is 0, the big joker 14)
// r - 7, planes and fours with kickers r / 2, bombs r + 7, the rocket 20.
//
// `hand_value` is that sum of nearly the best partition: see there.
//
// It counts no cards: neither what was played nor what others may hold, but for how many they hold.
#include <algorithm>
#include <limits>
#include <span>

#include "doudizhu/analysis.h"
#include "doudizhu/generate.h"
#include "doudizhu/policy.h"

namespace bothost::doudizhu {
namespace {

/// An enemy with so few cards is answered with anything, bombs too.
constexpr int kFewCards = 3;
/// A bomb is played by choice where the hand left is worth so much (20 points), or so few plays.
constexpr int kBombWorth = 40, kBombPlays = 2;

class Partitioner {
 public:
  Partitioner(const Sight& s, std::span<const Action> legal)
      : s_(s), u_(Universe::get()), legal_(legal), partner_(partner_of(s)) {
    for (Seat i = 0; i < kSeats; ++i)
      if (i != s.seat && i != partner_) fewest_ = std::min<int>(fewest_, s.table.counts[at(i)]);
  }

  Choice choose() const {
    if (const Action a = last_play(s_.hand, legal_); a != kPass) return {a, "last play"};
    if (const Action a = rocket_then_last_play(); a != kPass) return {a, "the rocket, then the last play"};
    return s_.table.last == 0 ? lead() : follow();
  }

 private:
  Choice lead() const {
    if (feeds_partner()) return {lowest_solo(), "the partner's last card beats it"};
    const int low = std::countr_zero(s_.hand) / 4;
    const auto gets_rid_of_lowest = [&](const Move& m) {
      return count_of(m.cards, low) > 0 && !m.is_bomb() && !lets_enemy_out(m);
    };
    if (const Action a = best(gets_rid_of_lowest); a != kPass) return {a, "rids the lowest card"};
    // Nothing but bombs is left, or solos before an enemy with one card: from the strongest down.
    if (const Action a = best([&](const Move& m) { return !m.is_bomb() && !lets_enemy_out(m); }); a != kPass)
      return {a, "gives the enemy no way out"};
    if (const Action a = strongest_solo(); a != kPass) return {a, "the strongest of solos"};
    return {best([](const Move&) { return true; }), "nothing but bombs"};
  }

  Choice follow() const {
    if (s_.table.last_seat == partner_) return {kPass, "the partner's play stands"};
    const bool urgent = s_.table.counts[at(s_.table.last_seat)] <= kFewCards;
    const Action a = best([](const Move& m) { return !m.is_bomb(); });
    // Who passes gives a turn away, and is left with the same hand.
    if (a != kPass && (urgent || hand_value(rest(u_[a])) >= hand_value(s_.hand) - kPlayCost))
      return {a, "leaves the best hand"};
    const Action bomb = best([](const Move& m) { return m.is_bomb(); });
    if (bomb != kPass) {
      const Cards left = rest(u_[bomb]);
      if (urgent || hand_value(left) >= kBombWorth || fewest_plays_bound(left) <= kBombPlays)
        return {bomb, "a bomb that decides"};
    }
    return {kPass, "passing leaves the best hand"};
  }

  Cards rest(const Move& m) const { return s_.hand - m.cards; }

  /// The play among those wanted that leaves the best hand, the one of more cards where two do; kPass where
  /// there is none.
  template <class Wanted>
  Action best(Wanted&& wanted) const {
    Action out = kPass;
    int top = std::numeric_limits<int>::min(), size = 0;
    for (const Action a : legal_) {
      const Move& m = u_[a];
      if (a == kPass || !wanted(m)) continue;
      const int value = hand_value(rest(m)), cards = size_of(m.cards);
      if (value > top || (value == top && cards > size)) {
        out = a;
        top = value;
        size = cards;
      }
    }
    return out;
  }

  Action rocket_then_last_play() const {
    if (!contains(s_.hand, kRocket)) return kPass;
    const auto readings = u_.readings(s_.hand - kRocket);
    const auto legal = [&](Action a) { return s_.rules.allows(u_[a]); };
    return std::ranges::any_of(readings, legal) ? kRocketMove : kPass;
  }

  /// The next seat is the partner, with one card, which beats our lowest for all we know.
  bool feeds_partner() const {
    return partner_ != kNobody && next_seat(s_.seat) == partner_ && s_.table.counts[at(partner_)] == 1;
  }

  /// A play of a size that an enemy about to go out may hold, below the top rank.
  bool lets_enemy_out(const Move& m) const {
    return (fewest_ == 1 && m.kind == Kind::solo) || (fewest_ == 2 && m.kind == Kind::pair);
  }

  Action lowest_solo() const { return static_cast<Action>(kSolo + std::countr_zero(s_.hand) / 4); }

  Action strongest_solo() const {
    const auto is_solo = [&](Action a) { return u_[a].kind == Kind::solo; };
    const auto found = std::find_if(legal_.rbegin(), legal_.rend(), is_solo);
    return found == legal_.rend() || fewest_ != 1 ? kPass : *found;
  }

  const Sight& s_;
  const Universe& u_;
  std::span<const Action> legal_;
  Seat partner_;
  /// The least number of cards that an enemy holds.
  int fewest_ = kDealSize + kBottomSize;
};

}  // namespace

Choice choose_by_partition(const Sight& s) {
  return s.table.phase == Phase::bid ? choose(s) : choose_by_partition(s, legal_actions(s));
}

Choice choose_by_partition(const Sight& s, std::span<const Action> legal) {
  if (legal.size() == 1) return {legal[0], legal[0] == kPass ? "nothing beats it" : "only move"};
  return Partitioner(s, legal).choose();
}

}  // namespace bothost::doudizhu
