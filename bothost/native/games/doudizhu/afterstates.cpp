#include "doudizhu/afterstates.h"

#include <algorithm>
#include <array>

#include "doudizhu/analysis.h"

namespace bothost::doudizhu {
namespace {

/// First feature of the block `move_types` that is about unseen moves.
constexpr int kUnseen = kMoveTypes + kAbstractActions + 2;

/// The actions of each abstract move, ascending.
const std::array<std::vector<Action>, kAbstractActions>& actions() {
  static const auto table = [] {
    std::array<std::vector<Action>, kAbstractActions> out;
    const auto& u = Universe::get();
    for (Action a = 0; a < kRlcardActions; ++a) out[u[a].abstract].push_back(a);
    return out;
  }();
  return table;
}

const Move& example(int abstract) { return Universe::get()[actions()[at(abstract)].front()]; }

/// Whether no other player can hold a higher move of its kind and length.
bool highest(std::span<const std::int32_t> features, int abstract) {
  const Move& own = example(abstract);
  // Moves of a kind and length follow each other by rank.
  for (int other = abstract + 1; other < kAbstractActions; ++other) {
    const Move& m = example(other);
    if (m.kind != own.kind || m.length != own.length) break;
    if (std::ranges::binary_search(features, kUnseen + other - 1)) return false;
  }
  return true;
}

/// Hand after an abstract move, 0 .. 308. Its kickers are those that leave the rest with the highest
/// hand_value; among equals those of the first action.
Cards rest_of(Cards hand, int abstract) {
  const auto& possible = actions()[at(abstract)];
  Cards best = minus(hand, example(abstract).body);
  if (possible.size() == 1) return best;
  bool found = false;
  int worth = 0;
  for (const Action action : possible) {
    const Cards cards = Universe::get()[action].cards;
    if (!contains(hand, cards)) continue;
    const Cards rest = hand - cards;
    const int value = rest ? hand_value(rest) : 0;
    if (found && value <= worth) continue;
    found = true;
    worth = value;
    best = rest;
  }
  return best;
}

}  // namespace

Cards hand_of(std::span<const std::int32_t> features) {
  Cards hand = 0;
  for (const auto feature : features) {
    if (feature >= kMoveTypes) break;
    const Move& m = example(feature + 1);
    if (m.cards == m.body) hand += minus(m.body, hand);
  }
  if (!hand || size_of(hand) > kDealSize + kBottomSize)
    throw InvalidInput("the features are not of a hand of 1 to 20 cards");
  return hand;
}

void mark_afterstate(std::span<const std::int32_t> features, Cards hand, int abstract,
                     std::vector<std::int32_t>& out) {
  const Cards rest = rest_of(hand, abstract);
  for (int index = 1; index < kAbstractActions; ++index)
    if (can_make(index, rest)) out.push_back(index - 1);
  int begin = kMoveTypes;
  out.push_back(begin + size_of(rest));
  begin += 21;
  out.push_back(begin + (rest ? std::min(fewest_plays_bound(rest), 15) : 0));
  begin += 16;
  if (abstract && highest(features, abstract)) out.push_back(begin);
}

}  // namespace bothost::doudizhu
