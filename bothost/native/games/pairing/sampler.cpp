// Sampling of what a seat does not know.
//
// A hidden card lies in a *slot*: a place of the other hand at the beginning, or an entry of the deck. What
// the seat saw restricts slots: while the other seat discards because nothing matches, no slot in its hand
// holds a colour of the pool; a card that it plays came from one of its slots, and from which is not known; a
// card that it puts under the deck is one of its slots too. Slots that must avoid the same colours are
// interchangeable, so it is enough to follow, through the history, how many slots of each kind the hand
// holds: a small set of weighted nodes per step. The weight of a last node times the number of ways to fill
// its open slots with unseen cards counts deals exactly; one is drawn by walking back, slots are picked along
// the way, and filled.
#include <algorithm>
#include <vector>

#include "pairing/deal.h"
#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

namespace {

constexpr std::size_t kMasks = 1 << kColours;
/// As `Loose::where`: back in the hand.
constexpr std::uint8_t kInHand = 0xff;

/// A slot that left the hand for the deck once; its colours to avoid need not nest with those of others.
struct Loose {
  /// Its entry of the deck, or kInHand.
  std::uint8_t where;
  /// The colours to avoid, where the card is not known.
  ColourSet avoid;
  /// kHidden, or the card.
  Card card;
  bool operator==(const Loose&) const = default;
};

/// What the other seat may hold, as far as it matters for what follows.
struct Node {
  /// Number of unknown slots in the hand, by the colours that they avoid.
  std::array<std::uint8_t, kMasks> held{};
  /// Known cards in the hand (own cards that the other seat drew from under the deck).
  CardSet fixed = 0;
  std::vector<Loose> loose;
  bool operator==(const Node&) const = default;
};

/// Which slot a step takes: kind `from` of the unknown ones, a known card, or a loose slot.
struct Choice {
  enum class From : std::uint8_t { none, held, fixed, loose } from = From::none;
  std::uint8_t index = 0;
};

struct Step {
  enum class Kind : std::uint8_t { no_match, leave, put_under, draw, see } kind;
  Card card = kHidden;     // leave, see: the card; draw: the card where it is known
  ColourSet colours = 0;   // no_match: of the pool
  std::uint8_t entry = 0;  // put_under, draw, see: of the deck
  std::uint8_t log = 0;    // put_under: where the log hides the card
};

struct Edge {
  std::uint32_t parent;
  double weight;
  Choice choice;
};

struct Weighted {
  Node node;
  double weight = 0;
  std::vector<Edge> edges;
};

using Layer = std::vector<Weighted>;

ColourSet colour_bit(Card card) {
  return card == kHidden ? ColourSet{0} : static_cast<ColourSet>(1 << colour_of(card));
}

/// Whether the card lies in a known place: it cannot come from an unknown slot then.
bool is_placed(const Node& node, Card card) {
  return node.fixed & bit(card) ||
         std::ranges::any_of(node.loose, [&](const Loose& l) { return l.card == card; });
}

/// No card in the hand has one of these colours.
template <class Visit>
void avoid(const Node& node, ColourSet pool, Visit& visit) {
  if (colours(node.fixed) & pool) return;
  Node next = node;
  next.held.fill(0);
  for (std::size_t m = 0; m < kMasks; ++m) {
    auto& slots = next.held[m | pool];
    slots = static_cast<std::uint8_t>(slots + node.held[m]);
  }
  for (Loose& l : next.loose) {
    if (l.where != kInHand) continue;
    if (l.card == kHidden)
      l.avoid |= pool;
    else if (pool & colour_bit(l.card))
      return;
  }
  visit(next, 1.0, Choice{});
}

template <class Visit>
void draw(const Node& node, const Step& step, Visit& visit) {
  Node next = node;
  const auto it = std::ranges::find(next.loose, step.entry, &Loose::where);
  if (it != next.loose.end())
    it->where = kInHand;
  else if (step.card != kHidden)
    next.fixed |= bit(step.card);
  else
    ++next.held[0];
  visit(next, 1.0, Choice{});
}

/// A card that was put under the deck comes up, and is seen.
template <class Visit>
void see(const Node& node, const Step& step, Visit& visit) {
  Node next = node;
  const auto it = std::ranges::find(next.loose, step.entry, &Loose::where);
  if (it == next.loose.end()) return;
  const bool fits = it->card == kHidden ? !(it->avoid & colour_bit(step.card)) && !is_placed(node, step.card)
                                        : it->card == step.card;
  if (!fits) return;
  const auto index = static_cast<std::uint8_t>(it - next.loose.begin());
  next.loose.erase(it);
  visit(next, 1.0, Choice{Choice::From::loose, index});
}

/// A card leaves the hand for good, or goes under the deck.
template <class Visit>
void take(const Node& node, const Step& step, Visit& visit) {
  using From = Choice::From;
  const bool leaves = step.kind == Step::Kind::leave;
  const ColourSet colour = colour_bit(step.card);
  const bool elsewhere = leaves && is_placed(node, step.card);
  Node next;
  const auto out = [&](Card card, ColourSet avoid) {
    if (!leaves) next.loose.push_back({step.entry, avoid, card});
  };
  for (std::size_t m = 0; m < kMasks && !elsewhere; ++m)
    if (node.held[m] && !(leaves && (m & colour))) {
      next = node;
      --next.held[m];
      out(kHidden, static_cast<ColourSet>(m));
      visit(next, static_cast<double>(node.held[m]), Choice{From::held, static_cast<std::uint8_t>(m)});
    }
  for_each(leaves ? node.fixed & bit(step.card) : node.fixed, [&](Card card) {
    next = node;
    next.fixed &= ~bit(card);
    out(card, 0);
    visit(next, 1.0, Choice{From::fixed, card});
  });
  for (std::size_t i = 0; i < node.loose.size(); ++i) {
    const Loose l = node.loose[i];
    if (l.where != kInHand) continue;
    if (leaves && (l.card != kHidden ? l.card != step.card : elsewhere || (l.avoid & colour))) continue;
    next = node;
    next.loose.erase(next.loose.begin() + static_cast<std::ptrdiff_t>(i));
    out(l.card, l.avoid);
    visit(next, 1.0, Choice{From::loose, static_cast<std::uint8_t>(i)});
  }
}

/// Calls visit(next node, weight, choice) for each way to take `step` from `node`.
template <class Visit>
void expand(const Node& node, const Step& step, Visit&& visit) {
  switch (step.kind) {
    case Step::Kind::no_match: return avoid(node, step.colours, visit);
    case Step::Kind::draw: return draw(node, step, visit);
    case Step::Kind::see: return see(node, step, visit);
    default: return take(node, step, visit);
  }
}

Layer follow(const Layer& layer, const Step& step) {
  Layer next;
  for (std::uint32_t p = 0; p < layer.size(); ++p)
    expand(layer[p].node, step, [&](const Node& node, double weight, Choice choice) {
      auto it = std::ranges::find(next, node, &Weighted::node);
      if (it == next.end()) it = next.insert(next.end(), Weighted{node, 0, {}});
      it->weight += layer[p].weight * weight;
      it->edges.push_back({p, layer[p].weight * weight, choice});
    });
  return next;
}

using ColourCounts = std::array<int, kColours>;

ColourCounts count_colours(CardSet cards) {
  ColourCounts out;
  for (int c = 0; c < kColours; ++c) out[at(c)] = size(cards & of_colour(c));
  return out;
}

/// Masks from the most to the least demanding. Slots that stayed in the hand nest: who came earlier avoids no
/// less.
constexpr std::array<std::uint8_t, kMasks> kByDemand{15, 7, 11, 13, 14, 3, 5, 6, 9, 10, 12, 1, 2, 4, 8, 0};

/// Number of ways to fill the open slots of `node` from loose slot `from` on.
double ways(const Node& node, ColourCounts& left, std::size_t from = 0) {
  while (from < node.loose.size() && node.loose[from].card != kHidden) ++from;
  if (from < node.loose.size()) {
    double sum = 0;
    for (std::size_t c = 0; c < kColours; ++c)
      if (!(node.loose[from].avoid >> c & 1) && left[c] > 0) {
        const int cards = left[c]--;
        sum += cards * ways(node, left, from + 1);
        ++left[c];
      }
    return sum;
  }
  double product = 1;
  int used = 0;
  for (const std::uint8_t mask : kByDemand) {
    if (!node.held[mask]) continue;
    int fit = -used;
    for (std::size_t c = 0; c < kColours; ++c)
      if (!(mask >> c & 1)) fit += left[c];
    for (int k = 0; k < node.held[mask]; ++k) product *= std::max(0, fit--);
    used += node.held[mask];
  }
  return product;
}

/// Index of a weight, with probability in proportion.
template <class Weights>
std::size_t pick(const Weights& weights, double total, Rng& rng) {
  double x = rng.uniform() * total;
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    if (x < weights[i]) break;
    x -= weights[i];
  }
  return last;
}

Card take_random(CardSet& from, CardSet allowed, Rng& rng) {
  CardSet set = from & allowed;
  for (auto skip = rng.below(static_cast<std::uint32_t>(size(set))); skip; --skip) set &= set - 1;
  const Card card = lowest(set);
  from &= ~bit(card);
  return card;
}

/// One slot of a sampled deal.
struct Slot {
  /// Its entry of the deck, or kInHand for the hand at the beginning.
  std::uint8_t origin;
  ColourSet avoid = 0;
  Card card = kHidden;
};

/// Follows the chosen path with real slots.
class Walk {
 public:
  Walk(int initial, CardSet fixed, Rng& rng) : fixed_(fixed), rng_(rng) {
    for (int i = 0; i < initial; ++i) add(kInHand);
  }

  void step(const Step& step, Choice choice) {
    switch (step.kind) {
      case Step::Kind::no_match:
        for (const std::size_t s : held_) slots_[s].avoid |= step.colours;
        for (const auto& [where, s] : loose_)
          if (where == kInHand && s.slot != kNone) slots_[s.slot].avoid |= step.colours;
        return;
      case Step::Kind::draw: return draw(step);
      case Step::Kind::see:
      case Step::Kind::leave: return settle(take(choice), step.card);
      case Step::Kind::put_under: {
        const Thing thing = take(choice);
        loose_.emplace_back(step.entry, thing);
        under_.emplace_back(step.log, thing);
        return;
      }
    }
  }

  /// Fills the open slots from `unseen`, which keeps the rest.
  void fill(const Node& last, CardSet& unseen) {
    ColourCounts left = count_colours(unseen);
    for (std::size_t i = 0; i < last.loose.size(); ++i) {
      if (last.loose[i].card != kHidden) continue;
      std::array<double, kColours> weights{};
      double total = 0;
      for (std::size_t c = 0; c < kColours; ++c)
        if (!(last.loose[i].avoid >> c & 1) && left[c] > 0) {
          const int cards = left[c]--;
          total += weights[c] = cards * ways(last, left, i + 1);
          ++left[c];
        }
      const std::size_t c = pick(weights, total, rng_);
      --left[c];
      slots_[loose_[i].second.slot].card = take_random(unseen, of_colour(static_cast<int>(c)), rng_);
    }
    for (const std::uint8_t mask : kByDemand)
      for (const std::size_t s : held_)
        if (slots_[s].avoid == mask) slots_[s].card = take_random(unseen, ~kOfColours[mask], rng_);
  }

  const std::vector<Slot>& slots() const { return slots_; }
  /// Calls f(place in the log, card) for each card that was put under the deck.
  template <class F>
  void for_each_under(F&& f) const {
    for (const auto& [log, thing] : under_)
      f(log, thing.slot == kNone ? thing.card : slots_[thing.slot].card);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  /// A slot, or a known card.
  struct Thing {
    std::size_t slot;
    Card card;
  };

  void add(std::uint8_t origin) {
    held_.push_back(slots_.size());
    slots_.push_back({origin});
  }

  void draw(const Step& step) {
    for (auto& [where, thing] : loose_)
      if (where == step.entry) {
        where = kInHand;
        return;
      }
    if (step.card != kHidden)
      fixed_ |= bit(step.card);
    else
      add(step.entry);
  }

  Thing take(Choice choice) {
    if (choice.from == Choice::From::fixed) {
      fixed_ &= ~bit(choice.index);
      return {kNone, choice.index};
    }
    if (choice.from == Choice::From::loose) {
      const Thing thing = loose_[choice.index].second;
      loose_.erase(loose_.begin() + choice.index);
      return thing;
    }
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < held_.size(); ++i)
      if (slots_[held_[i]].avoid == choice.index) fitting.push_back(i);
    const std::size_t i = fitting[rng_.below(static_cast<std::uint32_t>(fitting.size()))];
    const std::size_t slot = held_[i];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    return {slot, kHidden};
  }

  void settle(Thing thing, Card card) {
    if (thing.slot != kNone) slots_[thing.slot].card = card;
  }

  std::vector<Slot> slots_;
  std::vector<std::size_t> held_;
  std::vector<std::pair<std::uint8_t, Thing>> loose_;
  std::vector<std::pair<std::uint8_t, Thing>> under_;
  CardSet fixed_;
  Rng& rng_;
};

/// What the history of `view` says about the other seat's cards, step by step.
std::vector<Step> steps_of(const Pairing::Rules& rules, Seat viewer, const Deal& deal, const Log& log,
                           const Position& final_position) {
  std::vector<Step> out;
  Position now = deal.start;
  Queue scratch = deal.queue;
  const Machine& machine = rules.phases();
  std::size_t next = 0;
  const auto entry_seen = [&](std::uint8_t entry) {
    // a card that came up from under the deck, where the other seat had put it
    for (const Step& step : out)
      if (step.kind == Step::Kind::put_under && step.entry == entry) {
        out.push_back({.kind = Step::Kind::see, .card = deal.queue[entry], .entry = entry});
        return;
      }
  };
  while (next < log.settled) {
    const Seat mover = now.mover;
    Phase phase = now.phase;
    if (machine.is_hub(phase)) phase = entered_phase(Log::what(log.entries[next++]));
    const std::size_t place = next;
    const Card a = Log::what(log.entries[next++]);
    const bool match = a < kCards && (now.pool & of_colour(colour_of(a)));
    const Row& row = *machine.row(phase, now.conditions(rules, match));
    const Card b = row.quota == 2 ? Log::what(log.entries[next++]) : Card{0};
    const bool theirs = mover != viewer;
    if (theirs && (row.needs & kNoMatch))
      out.push_back({.kind = Step::Kind::no_match, .colours = colours(now.pool)});
    if (theirs && row.effect == Effect::replace)
      out.push_back(
          {.kind = Step::Kind::put_under, .entry = now.tail, .log = static_cast<std::uint8_t>(place)});
    else if (theirs)
      out.push_back({.kind = Step::Kind::leave, .card = a});
    now.execute(rules, row, a, b, scratch);
    // draws that the view has not seen yet follow from the sampled deck
    const bool last = next == log.settled;
    if (last && final_position.owed_hand) break;
    while (now.owed_hand) {
      if (theirs)
        out.push_back({.kind = Step::Kind::draw, .card = deal.queue[now.head], .entry = now.head});
      else
        entry_seen(now.head);
      now.draw_to_hand(kHidden);
    }
    if (last && final_position.owed_pool) break;
    while (now.owed_pool) {
      entry_seen(now.head);
      now.draw_to_pool(deal.queue[now.head]);
    }
    now.settle();
  }
  return out;
}

/// Draws a last node, and the choices that lead to it, each in proportion to the deals behind it.
std::pair<std::size_t, std::vector<Choice>> draw_path(const std::vector<Layer>& layers, ColourCounts unseen,
                                                      Rng& rng) {
  std::vector<double> weights;
  double total = 0;
  for (const Weighted& last : layers.back())
    total += weights.emplace_back(last.weight * ways(last.node, unseen));
  if (total <= 0) throw InvalidInput("pairing: no deal fits what this view has seen");
  const std::size_t end = pick(weights, total, rng);
  std::vector<Choice> path(layers.size() - 1);
  for (std::size_t i = path.size(), node = end; i-- > 0;) {
    const Weighted& here = layers[i + 1][node];
    weights.clear();
    for (const Edge& edge : here.edges) weights.push_back(edge.weight);
    const Edge& edge = here.edges[pick(weights, here.weight, rng)];
    path[i] = edge.choice;
    node = edge.parent;
  }
  return {end, path};
}

/// Completes the deal and the log of a running hand with what its seat did not see.
void complete(const Pairing::Rules& rules, Seat viewer, const Position& now, CardSet unseen, Deal& deal,
              Log& log, Rng& rng) {
  const std::size_t them = at(other(viewer));
  const auto steps = steps_of(rules, viewer, deal, log, now);
  Node first;
  first.fixed = deal.start.hand[them];
  first.held[0] = static_cast<std::uint8_t>(deal.start.hand_count[them] - size(first.fixed));
  std::vector<Layer> layers(1);
  layers[0].push_back({first, 1.0, {}});
  for (const Step& step : steps) layers.push_back(follow(layers.back(), step));

  const auto [end, path] = draw_path(layers, count_colours(unseen), rng);
  Walk walk(first.held[0], first.fixed, rng);
  for (std::size_t i = 0; i < steps.size(); ++i) walk.step(steps[i], path[i]);
  walk.fill(layers.back()[end].node, unseen);
  for (const Slot& slot : walk.slots())
    if (slot.origin == kInHand)
      deal.start.hand[them] |= bit(slot.card);
    else
      deal.queue[slot.origin] = slot.card;
  walk.for_each_under([&](std::uint8_t place, Card card) { log.set(place, card); });
  for (std::size_t i = 0; i < deal.start.tail; ++i)
    if (deal.queue[i] == kHidden) deal.queue[i] = take_random(unseen, kAllCards, rng);
  deal.aside = unseen;
}

}  // namespace

Pairing::State Pairing::View::sample(Rng& rng) const {
  if (stage_ == Stage::undealt) return State(*rules_, rng);
  if (stage_ == Stage::closed) throw InvalidInput("pairing: the hand ended without telling its deal");
  Deal deal = deal_;
  Log log = log_;
  const bool running = stage_ == Stage::running;
  if (running) complete(*rules_, seat_, now_, unseen(), deal, log, rng);
  State state = State::replay(*rules_, deal.as_dealt(), log);
  state.seq_[at(seat_)] =
      seq_ + (now_.owed_hand != 0) + (now_.owed_pool != 0) + (running && state.terminal());
  return state;
}

}  // namespace bothost
