#include "pairing/candidates.h"

#include <algorithm>
#include <cstddef>

namespace bothost::pairing {

namespace {

/// Scales that keep the inputs of a network near 1.
constexpr float kPoints = 8.0f, kGain = 16.0f;
/// Cards of both hands and the pool are at most 52.
constexpr std::size_t kMostPairs = (kCards / 2) * (kCards / 2);

/// A hand card and a pool card, the points of both for the mover, and of the pool card for the other seat.
struct Pair {
  Card hand, pool;
  std::int16_t points, denied;
};

/// The two largest of some numbers, 0 where there are fewer.
struct BestTwo {
  int first = 0, second = 0;

  void add(int value) {
    second = std::max(second, std::min(first, value));
    first = std::max(first, value);
  }
};

/// The best of some pairs.
struct Best {
  int count = 0;
  BestTwo points, with_denial;
  Pair pair{kHidden, kHidden, 0, 0};

  void add(const Pair& next) {
    if (!count++ || next.points > pair.points) pair = next;
    points.add(next.points);
    with_denial.add(next.points + next.denied);
  }
};

/// The numbers of one action, written in order.
class Writer {
 public:
  explicit Writer(float* out) : out_(out) {}
  void add(int value, float scale = 1.0f) { *out_++ = static_cast<float>(value) / scale; }
  void add(float value) { *out_++ = value; }

 private:
  float* out_;
};

class Encoder {
 public:
  explicit Encoder(const Pairing::View& view)
      : rules_(view.rules()),
        now_(view.position()),
        cursor_(view.cursor()),
        hand_(now_.hand[at(view.seat())]),
        mine_(now_.library[at(view.seat())]),
        theirs_(now_.library[at(other(view.seat()))]),
        unseen_(view.unseen()),
        conditions_(now_.conditions(rules_)) {
    for_each(kAllCards, [&](Card card) {
      mine_gain_[card] = gain(mine_, card);
      their_gain_[card] = gain(theirs_, card);
    });
    for_each(hand_, [&](Card card) {
      const CardSet with = mine_ | bit(card), colour = of_colour(colour_of(card));
      for_each(now_.pool, [&](Card lying) {
        const bool match = colour >> lying & 1;
        const bool touched = match || rank_index(lying) == rank_index(card);
        const int points = mine_gain_[card] + (touched ? gain(with, lying) : mine_gain_[lying]);
        const Pair pair{card, lying, static_cast<std::int16_t>(points),
                        static_cast<std::int16_t>(their_gain_[lying])};
        pairs_[num_pairs_++] = pair;
        if (match) matching_[num_matching_++] = pair;
      });
    });
    int sum = 0;
    for_each(unseen_, [&](Card card) { sum += mine_gain_[card]; });
    unseen_gain_ = static_cast<float>(sum) / static_cast<float>(std::max(1, size(unseen_)));
    poorest_ = lowest(hand_);
    for_each(hand_, [&](Card card) {
      if (mine_gain_[card] < mine_gain_[poorest_]) poorest_ = card;
    });
  }

  void summary(float* out) const {
    const Best match = best(hand_, now_.pool, false), any = best(hand_, now_.pool, true);
    BestTwo denied;
    int in_hand = 0, in_pool = 0, for_them = 0;
    for_each(now_.pool, [&](Card card) {
      denied.add(their_gain_[card]);
      in_pool += mine_gain_[card];
      for_them += their_gain_[card];
    });
    for_each(hand_, [&](Card card) { in_hand += mine_gain_[card]; });
    Writer to(out);
    to.add(match.points.first, kGain);
    to.add(after(match.pair).points.first, kGain);
    to.add(any.points.first, kGain);
    to.add(match.with_denial.first, kGain);
    to.add(denied.first, kGain);
    to.add(denied.second, kGain);
    to.add(match.count, 32.0f);
    to.add(size(hand_ & kOfColours[colours(now_.pool)]), 10.0f);
    to.add(in_hand, 32.0f);
    to.add(in_pool, 32.0f);
    to.add(for_them, 32.0f);
    to.add(mine_gain_[poorest_], kPoints);
    to.add(unseen_gain_ / kPoints);
    to.add(size(now_.pool), 16.0f);
    to.add(std::popcount(colours(hand_)), 4.0f);
    to.add(std::popcount(colours(now_.pool)), 4.0f);
  }

  void candidate(Action action, float* out) const {
    if (action >= kCards) return entry(entered_phase(action), out);
    const Card card = static_cast<Card>(action);
    const Row& row = *rules_.phases().row(cursor_.phase, conditions_);
    const bool any_colour = row.effect == Effect::force;
    if (cursor_.count)
      about(card, bit(cursor_.items[0]), bit(card), any_colour, kPoolCard, out);
    else
      about(card, bit(card), now_.pool, any_colour, kHandCard, out);
  }

 private:
  /// What an action is, one-hot: a hand card, a pool card, or one of the phases.
  static constexpr std::size_t kKind = 24;
  static constexpr std::size_t kHandCard = kKind, kPoolCard = kKind + 1, kEntry = kKind + 2;

  int gain(CardSet library, Card card) const { return rules_.worth(library | bit(card), card); }

  Best best(CardSet hand, CardSet pool, bool any_colour) const {
    Best out;
    const Pair* pairs = any_colour ? pairs_ : matching_;
    const std::size_t count = any_colour ? num_pairs_ : num_matching_;
    for (std::size_t i = 0; i < count; ++i)
      if (hand >> pairs[i].hand & pool >> pairs[i].pool & 1) out.add(pairs[i]);
    return out;
  }

  /// The pairs that are left once this one is collected, as far as the cards now in view tell.
  Best after(const Pair& pair) const {
    return best(hand_ & ~bit(pair.hand), now_.pool & ~bit(pair.pool), false);
  }

  /// Of a phase: the best pair that it may collect, or the poorest card that it may give away.
  void entry(Phase phase, float* out) const {
    const Effect effect = rules_.phases().row(phase, conditions_)->effect;
    const std::size_t kind = kEntry + phase - 1;
    if (effect == Effect::pair || effect == Effect::force) {
      const bool any_colour = effect == Effect::force;
      about(best(hand_, now_.pool, any_colour).pair.hand, hand_, now_.pool, any_colour, kind, out);
    } else {
      about(poorest_, bit(poorest_), now_.pool, false, kind, out);
    }
  }

  /// Of `card`, and of the pairs of a card of `hand` and a card of `pool`.
  void about(Card card, CardSet hand, CardSet pool, bool any_colour, std::size_t kind, float* out) const {
    const CardSet rank = of_rank(rank_index(card)) & ~bit(card), colour = of_colour(colour_of(card));
    const int set = rules_.colour_set, most = std::max(1, set - 1);
    const Best pairs = best(hand, pool, any_colour);
    const Best rest = after(pairs.count ? pairs.pair : Pair{card, kHidden, 0, 0});
    int threat = 0;
    for_each(now_.pool & ~bit(pairs.pair.pool),
             [&](Card lying) { threat = std::max(threat, their_gain_[lying]); });
    Writer to(out);
    to.add(rules_.points[at(rank_index(card))], kPoints);
    to.add(mine_gain_[card], kGain);
    to.add(their_gain_[card], kGain);
    to.add(size(mine_ & rank), 3.0f);
    to.add(size(theirs_ & rank), 3.0f);
    to.add((theirs_ | now_.discards) & rank ? 0 : 1);
    to.add((mine_ | now_.discards) & rank ? 0 : 1);
    to.add(size(mine_ & colour) % set, static_cast<float>(most));
    to.add(size(theirs_ & colour) % set, static_cast<float>(most));
    to.add(size(hand_ & rank), 3.0f);
    to.add(size(now_.pool & rank), 3.0f);
    to.add(size(unseen_ & rank), 3.0f);
    to.add(size(hand_ & colour & ~bit(card)), 4.0f);
    to.add(size(now_.pool & colour & ~bit(card)), 4.0f);
    to.add(size(unseen_ & colour), 8.0f);
    to.add(pairs.count, 8.0f);
    to.add(pairs.points.first, kGain);
    to.add(pairs.points.second, kGain);
    to.add(pairs.with_denial.first, kGain);
    to.add(pairs.with_denial.second, kGain);
    to.add(rest.points.first, kGain);
    to.add(threat, kGain);
    to.add(best(hand_ & ~bit(card), now_.pool & ~bit(card), false).points.first, kGain);
    to.add((unseen_gain_ - static_cast<float>(mine_gain_[card])) / kPoints);
    out[kind] = 1.0f;
  }

  const Rules& rules_;
  const Position& now_;
  const Cursor& cursor_;
  CardSet hand_, mine_, theirs_, unseen_;
  Conditions conditions_;
  std::array<int, kCards> mine_gain_, their_gain_;
  Pair pairs_[kMostPairs], matching_[kMostPairs];
  std::size_t num_pairs_ = 0, num_matching_ = 0;
  float unseen_gain_ = 0.0f;
  Card poorest_ = kHidden;
};

}  // namespace

void encode_candidates(const Pairing::View& view, float* summary, float* candidates) {
  std::fill_n(summary, kSummary, 0.0f);
  std::fill_n(candidates, kNumActions * kCandidate, 0.0f);
  if (!view.asked()) return;
  const Encoder encoder(view);
  encoder.summary(summary);
  ActionList legal;
  view.legal(legal);
  for (const Action action : legal) encoder.candidate(action, candidates + at(action) * kCandidate);
}

}  // namespace bothost::pairing
