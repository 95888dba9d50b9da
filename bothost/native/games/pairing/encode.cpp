#include <algorithm>

#include "pairing/candidates.h"
#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

namespace {

constexpr std::size_t kPlanes = 7;
constexpr std::size_t kFeatures = 384;
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
