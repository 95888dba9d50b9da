#include <algorithm>
#include <cstddef>

#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

namespace {

constexpr std::size_t kPlanes = 7;
constexpr std::size_t kFeatures = 384;
/// Numbers about the whole position, and about each action, in the block "candidates".
constexpr std::size_t kSummary = 16, kCandidate = 32;
/// Indices of blocks.
constexpr int kScores = 1, kCandidates = 2;

constexpr const char* kFeaturesDoc =
    "What one seat knows, of either phase machine. 7 planes of 52 zeros and ones, card = 13 * colour + rank "
    "- 1, colours green, red, white-yellow, blue-purple:\n"
    "  0 .. 51     own hand (selected cards are still in it)\n"
    "  52 .. 103   pool\n"
    "  104 .. 155  own library\n"
    "  156 .. 207  library of the other seat\n"
    "  208 .. 259  discards of both seats\n"
    "  260 .. 311  selected so far in this phase\n"
    "  312 .. 363  never seen: in the other hand, the deck, or out of the game\n"
    "then 20 scalars:\n"
    "  364 .. 370  phase, one-hot: init, A, B, discard 1, discard 2, pairing, final discard; zero unless "
    "asked\n"
    "  371 .. 374  own charges of A and B, the other seat's of A and B; each divided by the charges dealt, "
    "or by 1\n"
    "  375         cards in the deck / cards dealt to it (or 1)\n"
    "  376 .. 378  own score, the other's, own less the other's; each divided by the points of all 52 cards\n"
    "  379 .. 380  cards in the own hand, in the other; each divided by the cards dealt to a hand\n"
    "  381         turns over so far / twice the cards dealt to a hand\n"
    "  382         discards left in the current turn, whoever's it is / discards of a turn (or 1)\n"
    "  383         1 when the first card of a phase that selects two is chosen\n"
    "All zero before the deal.";

constexpr const char* kCandidatesDoc =
    "For networks that score each action from inputs of its own: \"features\", 16 numbers about the "
    "position, and 32 about each of the 58 actions, zero for illegal ones. The gain of a card is its points "
    "and the bonuses of the sets that it completes. The position, from 384 on: largest gain of a matching "
    "pair, of a pair beside that one, of any pair, of a pair and of its pool card for the other seat; two "
    "largest gains of pool cards for the other seat; matching pairs; hand cards that match; gains of the "
    "hand, of the pool, of the pool for the other seat; poorest gain of the hand; mean gain of unseen cards; "
    "size of the pool; colours of the hand and of the pool.\n"
    "An action, from 400 + 32 * action on. A phase stands for its best pair or its poorest card:\n"
    "  0 .. 2    points of the card, gain, gain for the other seat\n"
    "  3 .. 8    cards of its rank in either library, whether either seat can still complete the rank, cards "
    "of its colour in either library modulo the size of a set\n"
    "  9 .. 11   other cards of its rank in hand, pool, unseen\n"
    "  12 .. 14  other cards of its colour in hand, pool, unseen\n"
    "  15        partners that match, or that the phase takes\n"
    "  16 .. 19  largest and second gain of a pair, the same with the pool card's gain for the other seat\n"
    "  20 .. 21  largest gain of a pair after the best one, and of a pool card for the other seat then\n"
    "  22        largest gain of a matching pair without the card\n"
    "  23        mean gain of unseen cards less the card's\n"
    "  24 .. 31  one-hot: hand card, pool card, or the phase";

constexpr const char* kScoresDoc =
    "Points so far: own score, the other's. The reward of a trainer is the change of own less other between "
    "two consecutive own turns; the returns of a finished hand are that lead at its end.";

constexpr const char* kHiddenDoc =
    "What the seat does not know. Row 0: 1 for each card in the other hand. Row 1: for each card in the deck "
    "1 / (1 + cards above it), so that the next card is 1.";

void plane(CardSet cards, float*& out) {
  for (int card = 0; card < kCards; ++card) *out++ = static_cast<float>(cards >> card & 1);
}

float ratio(int value, int whole) {
  return static_cast<float>(value) / static_cast<float>(std::max(1, whole));
}

void encode_features(const Pairing::View& view, float* out) {
  const Position& p = view.position();
  if (view.seq() == 0) {
    std::fill_n(out, kFeatures, 0.0f);
    return;
  }
  const Pairing::Rules& rules = view.rules();
  const Cursor& cursor = view.cursor();
  const std::size_t me = at(view.seat()), them = at(other(view.seat()));
  CardSet selected = 0;
  for (std::size_t i = 0; i < cursor.count; ++i) selected |= bit(cursor.items[i]);
  const CardSet planes[kPlanes] = {p.hand[me], p.pool,   p.library[me], p.library[them],
                                   p.discards, selected, view.unseen()};
  for (const CardSet cards : planes) plane(cards, out);

  for (Phase phase = 0; phase < kPhaseNames.size(); ++phase)
    *out++ = view.asked() && cursor.phase == phase ? 1.0f : 0.0f;
  const int dealt[2] = {rules.skill_a, rules.skill_b};
  for (const std::size_t seat : {me, them})
    for (std::size_t skill = 0; skill < 2; ++skill) *out++ = ratio(p.charges[seat][skill], dealt[skill]);
  *out++ = ratio(p.deck_count(), rules.deck);
  const int total = rules.total_points();
  *out++ = ratio(p.score[me], total);
  *out++ = ratio(p.score[them], total);
  *out++ = ratio(p.score[me] - p.score[them], total);
  *out++ = ratio(p.hand_count[me], rules.hand);
  *out++ = ratio(p.hand_count[them], rules.hand);
  *out++ = ratio(p.turn, 2 * rules.hand);
  *out++ = ratio(rules.discards - p.discards_used, rules.discards);
  *out++ = cursor.count ? 1.0f : 0.0f;
}

/// Scales that keep the inputs of a network near 1.
constexpr float kPoints = 8.0f, kGain = 16.0f;
/// Cards of both hands and the pool are at most 52.
constexpr std::size_t kMostPairs = (kCards / 2) * (kCards / 2);

/// A hand card and a pool card, the points of both for the mover, and of the pool card for the other seat.
struct CardPair {
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
  CardPair pair{kHidden, kHidden, 0, 0};

  void add(const CardPair& next) {
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
        const CardPair pair{card, lying, static_cast<std::int16_t>(points),
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
    const CardPair* pairs = any_colour ? pairs_ : matching_;
    const std::size_t count = any_colour ? num_pairs_ : num_matching_;
    for (std::size_t i = 0; i < count; ++i)
      if (hand >> pairs[i].hand & pool >> pairs[i].pool & 1) out.add(pairs[i]);
    return out;
  }

  /// The pairs that are left once this one is collected, as far as the cards now in view tell.
  Best after(const CardPair& pair) const {
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
    const Best rest = after(pairs.count ? pairs.pair : CardPair{card, kHidden, 0, 0});
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
  CardPair pairs_[kMostPairs], matching_[kMostPairs];
  std::size_t num_pairs_ = 0, num_matching_ = 0;
  float unseen_gain_ = 0.0f;
  Card poorest_ = kHidden;
};

/// Writes `summary` (kSummary) and `candidates` (kNumActions, kCandidate); rows of illegal actions are zero,
/// and so is everything unless the view is asked.
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

}  // namespace

const std::vector<Block>& Pairing::blocks() {
  static const std::vector<Block> list{
      Block("features", {static_cast<int>(kFeatures)}, 1, Block::Of::view, kFeaturesDoc),
      Block("scores", {2}, 1, Block::Of::view, kScoresDoc),
      Block("candidates", {static_cast<int>(kFeatures + kSummary + kNumActions * kCandidate)}, 2,
            Block::Of::view, kCandidatesDoc),
      Block("hidden", {2, kCards}, 1, Block::Of::oracle, kHiddenDoc),
  };
  return list;
}

void Pairing::encode(const View& view, int block, float* out) {
  if (block == 0 || block == kCandidates) encode_features(view, out);
  if (block == kCandidates) encode_candidates(view, out + kFeatures, out + kFeatures + kSummary);
  if (block != kScores) return;
  const Position& p = view.position();
  out[0] = p.score[at(view.seat())];
  out[1] = p.score[at(other(view.seat()))];
}

void Pairing::encode_actions(const View&, int, std::span<const Action>, float*) {}

void Pairing::encode_oracle(const State& state, Seat seat, int, float* out) {
  const Position& p = state.position();
  plane(p.hand[at(other(seat))], out);
  std::fill_n(out, kCards, 0.0f);
  for (std::size_t i = p.head; i < p.tail; ++i)
    out[state.queue()[i]] = 1.0f / static_cast<float>(1 + i - p.head);
}

}  // namespace bothost
