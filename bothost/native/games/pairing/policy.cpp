#include "pairing/policy.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <utility>

namespace bothost::pairing {

namespace {

/// Points that one more card adds to a set of which so many are held.
using Steps = std::array<double, kRanks>;

/// What card number 1 .. size adds to a set of that size; they sum to the bonus.
Steps steps(double promise, double bonus, int size) {
  const auto done = [&](int held) {
    const double part = static_cast<double>(held) / size;
    return held == size ? bonus : promise * (part * part) * bonus;
  };
  Steps out{};
  for (int held = 0; held < size; ++held) out[at(held)] = done(held + 1) - done(held);
  return out;
}

/// Values under one set of rules and weights.
class Judge {
 public:
  Judge(const Rules& rules, const Weights& weights)
      : weights_(weights),
        points_(rules.points),
        rank_steps_(steps(weights.promise, rules.rank_bonus, kColours)) {
    const Steps once = steps(weights.promise, rules.colour_bonus, rules.colour_set);
    for (int held = 0; held < kRanks; ++held) colour_steps_[at(held)] = once[at(held % rules.colour_set)];
  }

  const Weights& weights() const { return weights_; }

  /// Of one more card in `library`: its points, those of the sets that it completes, and a part of those that
  /// it brings nearer. `gone` are cards that this library will never hold.
  double worth(CardSet library, CardSet gone, Card card) const {
    const auto rank = at(rank_index(card));
    const auto held = at(size(library & of_colour(colour_of(card))));
    const CardSet same = of_rank(rank_index(card));
    const double value = points_[rank] + colour_steps_[held];
    return gone & same ? value : value + rank_steps_[at(size(library & same))];
  }

 private:
  Weights weights_;
  std::remove_cvref_t<decltype(Rules::points)> points_;
  Steps rank_steps_;
  /// By how many cards of the colour are held: sets of a colour follow one another.
  Steps colour_steps_{};
};

struct Pair {
  double worth = -std::numeric_limits<double>::infinity();
  Card hand = kHidden;
  Card pool = kHidden;
};

/// What the player looks at, and what it makes of it.
class Sight {
 public:
  /// Of the mover, who has never seen the cards `unseen`. The judge and the position must outlive it.
  Sight(const Judge& judge, const Position& now, const Cursor& cursor, CardSet unseen)
      : now_(now),
        judge_(judge),
        hand_(now.hand[at(now.mover)]),
        mine_(now.library[at(now.mover)]),
        theirs_(now.library[at(other(now.mover))]),
        unseen_(unseen) {
    if (cursor.count) selected_ = bit(cursor.items[0]);
  }

  /// Whether the first card of a pair is chosen.
  bool selected() const { return selected_ != 0; }
  int hand_count() const { return size(hand_); }
  int deck_count() const { return now_.deck_count(); }

  /// The best pair; minus infinity where there is none.
  Pair pair(bool any_colour) const {
    std::array<double, kCards> denied, alone;
    for_each(now_.pool, [&](Card card) {
      denied[card] = judge_.weights().deny * judge_.worth(theirs_, not_theirs(), card);
      if (any_colour) alone[card] = worth(card);
    });
    Pair best;
    for_each(selected_ ? selected_ : hand_, [&](Card card) {
      const double first = worth(card);
      const double spent = judge_.weights().keep * first;
      const CardSet with = mine_ | bit(card);
      const CardSet colour = of_colour(colour_of(card)), touched = colour | of_rank(rank_index(card));
      for_each(any_colour ? now_.pool : now_.pool & colour, [&](Card lying) {
        const double second = touched >> lying & 1 ? judge_.worth(with, not_mine(), lying) : alone[lying];
        const double sum = first - spent + second + denied[lying];
        if (sum > best.worth) best = {sum, card, lying};
      });
    });
    return best;
  }

  /// The hand card that is worth least, alone, a match in the pool counting for it.
  std::pair<double, Card> poorest() const {
    const ColourSet lying = colours(now_.pool);
    std::pair<double, Card> out{std::numeric_limits<double>::infinity(), kHidden};
    for_each(hand_, [&](Card card) {
      out = std::min(out, {worth(card) + 0.5 * (lying >> colour_of(card) & 1), card});
    });
    return out;
  }

  /// Of a card never seen.
  double average() const {
    double sum = 0.0;
    for_each(unseen_, [&](Card card) { sum += worth(card); });
    return sum / std::max(1, size(unseen_));
  }

 private:
  double worth(Card card) const { return judge_.worth(mine_, not_mine(), card); }
  CardSet not_mine() const { return theirs_ | now_.discards; }
  CardSet not_theirs() const { return mine_ | now_.discards; }

  const Position& now_;
  const Judge& judge_;
  CardSet hand_, mine_, theirs_, unseen_;
  CardSet selected_ = 0;
};

/// What to do next, and, where that is the first card of a pair, which card comes second.
struct Plan {
  std::array<Action, 2> steps;
  std::size_t count;
  Reason reason;
};

/// The phase to enter, of those that are open.
Plan enter(const Sight& sight, std::uint64_t legal, const Weights& weights) {
  const auto open = [&](Phase phase) { return (legal >> enter_action(phase) & 1) != 0; };
  if (open(kSkillB)) {
    const double worth = sight.pair(true).worth;
    if (open(kFinal) || sight.hand_count() == 1 || worth >= weights.force_from)
      return {{enter_action(kSkillB)}, 1, {Reason::Kind::force, worth}};
  }
  if (open(kSkillA)) {
    const bool late = sight.deck_count() <= 4 || sight.hand_count() <= 3;
    const double least = sight.poorest().first, average = sight.average();
    if (open(kFinal) || (late && least < average))
      return {{enter_action(kSkillA)}, 1, {Reason::Kind::replace, least, average}};
  }
  // Discards, pairing and the final discard come after the skills, and one of them is always open.
  return {{static_cast<Action>(std::bit_width(legal)) - 1}, 1, {Reason::Kind::no_skill}};
}

/// What the mover does, who has never seen the cards `unseen`.
Plan plan(const Judge& judge, const Rules& rules, const Position& now, const Cursor& cursor, CardSet unseen) {
  const Sight sight(judge, now, cursor, unseen);
  const std::uint64_t legal = legal_actions(rules, now, cursor);
  if (legal >> kCards) return enter(sight, legal, judge.weights());
  if (cursor.phase == kSkillB || cursor.phase == kPairing) {
    const Pair pair = sight.pair(cursor.phase == kSkillB);
    const Reason reason{Reason::Kind::pair, pair.worth};
    if (pair.hand != kHidden && sight.selected()) return {{pair.pool}, 1, reason};
    if (pair.hand != kHidden) return {{pair.hand, pair.pool}, 2, reason};
  }
  const auto [worth, card] = sight.poorest();
  return {{card}, 1, {Reason::Kind::poorest, worth}};
}

/// Plays both seats to the end of the hand, each by what it has seen.
void play_out(const Judge& judge, Pairing::State& state) {
  while (!state.terminal()) {
    const Seat mover = state.position().mover;
    const Plan next = plan(judge, state.rules(), state.position(), state.cursor(), state.unseen(mover));
    for (std::size_t step = 0; step < next.count; ++step)
      state.apply_legal(mover, next.steps[step], NoEvents{});
  }
}

}  // namespace

std::string Reason::text() const {
  char out[96];
  switch (kind) {
    case Kind::force: std::snprintf(out, sizeof out, "a forced pair is worth %.1f", worth); break;
    case Kind::replace:
      std::snprintf(out, sizeof out, "the poorest card, %.1f, against %.1f on average", worth, average);
      break;
    case Kind::no_skill: return "no skill pays now";
    case Kind::pair: std::snprintf(out, sizeof out, "the pair is worth %.1f", worth); break;
    case Kind::poorest: std::snprintf(out, sizeof out, "the poorest card, worth %.1f", worth); break;
  }
  return out;
}

Choice choose(const Pairing::View& view, const Weights& weights) {
  const Judge judge(view.rules(), weights);
  const Plan next = plan(judge, view.rules(), view.position(), view.cursor(), view.unseen());
  return {next.steps[0], next.reason};
}

std::vector<float> leads_after(const Pairing::View& view, const ActionList& actions, std::size_t deals,
                               Rng& rng) {
  const Seat seat = view.seat();
  const Judge judge(view.rules(), {});
  std::vector<float> leads;
  leads.reserve(deals * actions.size());
  for (std::size_t deal = 0; deal < deals; ++deal) {
    const Pairing::State sampled = view.sample(rng);
    for (const Action action : actions) {
      Pairing::State state = sampled;
      state.apply_legal(seat, action, NoEvents{});
      play_out(judge, state);
      const auto& score = state.position().score;
      leads.push_back(static_cast<float>(score[at(seat)] - score[at(other(seat))]));
    }
  }
  return leads;
}

}  // namespace bothost::pairing

namespace bothost {

Action Pairing::rule_action(const View& view) { return pairing::choose(view, {}).action; }

}  // namespace bothost
