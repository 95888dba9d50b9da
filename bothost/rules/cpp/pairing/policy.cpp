#include "pairing/policy.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <utility>

#include "pairing/legal.h"

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
  for (int held = 0; held < size; ++held) out[static_cast<std::size_t>(held)] = done(held + 1) - done(held);
  return out;
}

/// Values under one set of rules and weights.
struct Judge {
  const Rules& rules;
  Weights weights;
  Steps rank_steps = steps(weights.promise, rules.rank_bonus, kColours);
  Steps colour_steps = steps(weights.promise, rules.colour_bonus, rules.colour_set);

  /// Of one more card in `library`: its points, those of the sets that it completes, and a part of those that
  /// it brings nearer. `gone` are cards that this library will never hold.
  double worth(CardSet library, CardSet gone, Card card) const {
    const int colour = size(library & of_colour(colour_of(card)));
    const CardSet rank = of_rank(rank_index(card));
    const double value = rules.points[static_cast<std::size_t>(rank_index(card))] +
                         colour_steps[static_cast<std::size_t>(colour % rules.colour_set)];
    return gone & rank ? value : value + rank_steps[static_cast<std::size_t>(size(library & rank))];
  }
};

struct Pair {
  double worth = -std::numeric_limits<double>::infinity();
  Card hand = kHidden;
  Card pool = kHidden;
};

/// What the player looks at, and what it makes of it.
class Sight {
 public:
  Sight(const Pairing::View& view, const Weights& weights)
      : now_(view.position()),
        judge_{view.rules(), weights},
        hand_(now_.hand[at(view.seat())]),
        mine_(now_.library[at(view.seat())]),
        theirs_(now_.library[at(other(view.seat()))]),
        unseen_(view.unseen()) {
    if (view.cursor().count) selected_ = bit(view.cursor().items[0]);
  }

  /// Whether the first card of a pair is chosen.
  bool selected() const { return selected_ != 0; }
  int hand_count() const { return size(hand_); }
  int deck_count() const { return now_.deck_count(); }

  /// The best pair; minus infinity where there is none.
  Pair pair(bool any_colour) const {
    std::array<double, kCards> denied;
    for_each(now_.pool, [&](Card card) {
      denied[card] = judge_.weights.deny * judge_.worth(theirs_, not_theirs(), card);
    });
    Pair best;
    for_each(selected_ ? selected_ : hand_, [&](Card card) {
      const double first = worth(card);
      const double spent = judge_.weights.keep * first;
      const CardSet with = mine_ | bit(card);
      for_each(any_colour ? now_.pool : now_.pool & of_colour(colour_of(card)), [&](Card lying) {
        const double sum = first - spent + judge_.worth(with, not_mine(), lying) + denied[lying];
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
  Judge judge_;
  CardSet hand_, mine_, theirs_, unseen_;
  CardSet selected_ = 0;
};

/// The phase to enter, of those that are open.
Choice enter(const Sight& sight, std::uint64_t legal, const Weights& weights) {
  const auto open = [&](Phase phase) { return (legal >> enter_action(phase) & 1) != 0; };
  if (open(kSkillB)) {
    const double worth = sight.pair(true).worth;
    if (open(kFinal) || sight.hand_count() == 1 || worth >= weights.force_from)
      return {enter_action(kSkillB), {Reason::Kind::force, worth}};
  }
  if (open(kSkillA)) {
    const bool late = sight.deck_count() <= 4 || sight.hand_count() <= 3;
    const double least = sight.poorest().first, average = sight.average();
    if (open(kFinal) || (late && least < average))
      return {enter_action(kSkillA), {Reason::Kind::replace, least, average}};
  }
  // Discards, pairing and the final discard come after the skills, and one of them is always open.
  return {static_cast<Action>(std::bit_width(legal)) - 1, {Reason::Kind::no_skill}};
}

}  // namespace

std::string Reason::text() const {
  char out[96];
  switch (kind) {
    case Kind::force:
      std::snprintf(out, sizeof out, "a forced pair is worth %.1f", worth);
      break;
    case Kind::replace:
      std::snprintf(out, sizeof out, "the poorest card, %.1f, against %.1f on average", worth, average);
      break;
    case Kind::no_skill:
      return "no skill pays now";
    case Kind::pair:
      std::snprintf(out, sizeof out, "the pair is worth %.1f", worth);
      break;
    case Kind::poorest:
      std::snprintf(out, sizeof out, "the poorest card, worth %.1f", worth);
      break;
  }
  return out;
}

Choice choose(const Pairing::View& view, const Weights& weights) {
  const Sight sight(view, weights);
  const std::uint64_t legal = legal_actions(view.rules(), view.position(), view.cursor());
  if (legal >> kCards) return enter(sight, legal, weights);
  const Phase phase = view.cursor().phase;
  if (phase == kSkillB || phase == kPairing) {
    const Pair pair = sight.pair(phase == kSkillB);
    if (pair.hand != kHidden)
      return {sight.selected() ? pair.pool : pair.hand, {Reason::Kind::pair, pair.worth}};
  }
  const auto [worth, card] = sight.poorest();
  return {card, {Reason::Kind::poorest, worth}};
}

std::vector<float> leads_after(const Pairing::View& view, std::size_t deals, Rng& rng) {
  ActionList actions;
  view.legal(actions);
  const Seat seat = view.seat();
  std::vector<float> leads;
  leads.reserve(deals * actions.size());
  for (std::size_t deal = 0; deal < deals; ++deal) {
    const Pairing::State sampled = view.sample(rng);
    for (const Action action : actions) {
      Pairing::State state = sampled;
      state.apply_legal(seat, action, NoEvents{});
      while (!state.terminal()) {
        const Seat mover = state.position().mover;
        state.apply_legal(mover, Pairing::rule_action(state.view(mover)), NoEvents{});
      }
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
