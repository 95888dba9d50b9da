#include <algorithm>
#include <array>

#include "doudizhu/analysis.h"
#include "doudizhu/encode.h"
#include "doudizhu/policy.h"

namespace bothost::doudizhu {
namespace {

/// An abstract move: the cards that it needs, and its kickers.
struct Type {
  Cards body = 0;
  /// Ranks of which no kicker may be: the body's.
  RankMask banned = 0;
  /// Ranks of which two kickers at most may be: with a third they would lengthen the plane.
  RankMask scarce = 0;
  int solos = 0, pairs = 0;
};

RankMask run(int rank, int length) { return ((1u << length) - 1) << rank; }

Type type_of(const Move& m) {
  const RankMask body = run(m.rank, m.length);
  const int kickers = size_of(m.cards - m.body);
  if (m.kind == Kind::trio_pair || m.kind == Kind::plane_pair || m.kind == Kind::quad_pair)
    return {m.body, body, 0, 0, kickers / 2};
  const bool plane = m.kind == Kind::plane_solo;
  return {m.body, body, plane ? ((body << 1) | (body >> 1)) & kChainMask & ~body : 0, kickers, 0};
}

const std::array<Type, kAbstractActions>& types() {
  static const auto table = [] {
    std::array<Type, kAbstractActions> out{};
    const auto& u = Universe::get();
    for (Action a = 1; a < kRlcardActions; ++a)
      if (Type& t = out[u[a].abstract]; !t.body) t = type_of(u[a]);
    return out;
  }();
  return table;
}

bool makes(const Type& t, Cards cards) {
  if (!contains(cards, t.body)) return false;
  if (!t.solos && !t.pairs) return true;
  const Ranks held(cards);
  if (t.pairs) return std::popcount(held.two & ~t.banned) >= t.pairs;
  const RankMask free = ~t.banned, third = free & ~t.scarce;
  const bool rocket = (held.one & kJokers) == kJokers;
  const int kickers = std::popcount(held.one & free) + std::popcount(held.two & free) +
                      std::popcount(held.three & third) - rocket;
  return kickers >= t.solos;
}

/// Calls visit(by, beaten, held) for each move that the seat passed on, from the newest backwards: who had
/// made it, and how many cards the seat held.
template <class Visit>
void each_pass(const Public& p, Seat seat, Visit visit) {
  int held = p.counts[at(seat)];
  // `last` before a move is the newest play before it, unless two passed.
  for (int i = p.size - 1; i >= p.calls; --i) {
    const Action action = p.history[at(i)];
    if (p.seat_of(i) != seat) continue;
    held += size_of(Universe::get()[action].cards);
    if (action != kPass) continue;
    int before = i - 1;
    while (before >= p.calls && p.history[at(before)] == kPass) --before;
    if (before < p.calls) continue;  // the history does not reach back to it
    visit(p.seat_of(before), Universe::get()[p.history[at(before)]], held);
  }
}

/// Smallest ranks of several kinds.
template <std::size_t N>
struct Smallest {
  std::array<int, N> rank;
  Smallest() { rank.fill(kRanks); }
  void note(std::size_t which, const Move& m) {
    rank[which] = std::min(rank[which], static_cast<int>(m.rank));
  }
  /// One hot each, where its cells begin; none for a kind that was never noted.
  void write(const std::array<int, N>& starts, float* out) const {
    for (std::size_t which = 0; which < N; ++which)
      if (rank[which] < kRanks) out[starts[which] + rank[which]] = 1;
  }
};

/// What the seat let pass, smallest first: a solo, a solo with one card left, a pair with two, a trio with
/// three.
void let_pass(const Public& p, Seat seat, float* out) {
  Smallest<4> smallest;
  each_pass(p, seat, [&](Seat, const Move& beaten, int held) {
    if (beaten.kind == Kind::solo) {
      smallest.note(0, beaten);
      if (held == 1) smallest.note(1, beaten);
    } else if (beaten.kind == Kind::pair && held == 2) {
      smallest.note(2, beaten);
    } else if (beaten.kind == Kind::trio && held == 3) {
      smallest.note(3, beaten);
    }
  });
  smallest.write({0, kRanks, 2 * kRanks, 2 * kRanks + 13}, out);
}

/// What the seat let an enemy play, smallest first: a solo, a pair, three with or without cards.
void let_enemies_play(const Public& p, Seat seat, float* out) {
  Smallest<3> smallest;
  each_pass(p, seat, [&](Seat by, const Move& beaten, int) {
    if (by != p.landlord && seat != p.landlord) return;
    if (beaten.kind == Kind::solo) smallest.note(0, beaten);
    if (beaten.kind == Kind::pair) smallest.note(1, beaten);
    if (beaten.kind == Kind::trio || beaten.kind == Kind::trio_solo || beaten.kind == Kind::trio_pair)
      smallest.note(2, beaten);
  });
  smallest.write({0, kRanks, kRanks + 13}, out);
}

void one_hot(int index, int size, float*& out) {
  if (index >= 0 && index < size) out[index] = 1;
  out += size;
}

/// Whether these cards, any number of them, can make the abstract move 1 .. 308.
bool can_make(int abstract, Cards cards) { return makes(types()[at(abstract)], cards); }

/// The abstract moves 1 .. 308 that these cards, any number of them, can make.
void mark_move_types(Cards cards, float*& out) {
  for (int index = 1; index < kAbstractActions; ++index) *out++ = can_make(index, cards) ? 1.0f : 0.0f;
}

// --- afterstates

// First features of parts of the block `move_types`.
constexpr int kToBeat = kMoveTypes, kWhose = kToBeat + kAbstractActions, kUnseen = kWhose + 2,
              kCounts = kUnseen + kMoveTypes, kMostCards = 20, kRole = kCounts + 2 * kMostCards;

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

/// The action of an abstract move, 0 .. 308, whose kickers leave the rest with the highest hand_value; the
/// first among equals. The first of all where the hand can make none.
Action action_of(Cards hand, int abstract) {
  const auto& possible = actions()[at(abstract)];
  if (possible.size() == 1) return possible.front();
  Action best = possible.front();
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
    best = action;
  }
  return best;
}

/// Hand after an abstract move. It loses the body alone where it cannot make the move.
Cards rest_of(Cards hand, int abstract) {
  const Cards cards = Universe::get()[action_of(hand, abstract)].cards;
  return contains(hand, cards) ? hand - cards : minus(hand, example(abstract).body);
}

/// The cards of which these features, from `begin` on, are the abstract moves that they can make.
Cards cards_of(std::span<const std::int32_t> features, int begin) {
  Cards cards = 0;
  for (const auto feature : features) {
    if (feature < begin || feature >= begin + kMoveTypes) continue;
    const Move& m = example(feature - begin + 1);
    if (m.cards == m.body) cards += minus(m.body, cards);
  }
  return cards;
}

}  // namespace

void move_type_features(const View& view, float* out) {
  const Public& p = view.table();
  const auto next = static_cast<Seat>((view.seat() + 1) % kSeats);
  const auto previous = static_cast<Seat>((view.seat() + 2) % kSeats);
  mark_move_types(view.hand(), out);
  const Move& beat = Universe::get()[p.last];
  one_hot(beat.abstract, kAbstractActions, out);
  one_hot(p.last ? (p.last_seat == next ? 0 : 1) : -1, 2, out);
  mark_move_types(view.unseen(), out);
  one_hot(p.counts[at(next)] - 1, 20, out);
  one_hot(p.counts[at(previous)] - 1, 20, out);
  const bool known = p.phase >= Phase::play && p.landlord != kNobody;
  one_hot(known ? (view.seat() - p.landlord + 3) % 3 : -1, 3, out);
  let_pass(p, next, out);
  let_pass(p, previous, out + kLetPass);
}

void passed(const View& view, float* out) {
  for (int i = 1; i < kSeats; ++i)
    let_enemies_play(view.table(), static_cast<Seat>((view.seat() + i) % kSeats),
                     out + (i - 1) * kPassed / 2);
}

Cards hand_of(std::span<const std::int32_t> features) {
  const Cards hand = cards_of(features, 0);
  if (!hand || size_of(hand) > kDealSize + kBottomSize)
    throw InvalidInput("the features are not of a hand of 1 to 20 cards");
  return hand;
}

Told Told::of(std::span<const std::int32_t> features) {
  Told out{.hand = hand_of(features), .unseen = cards_of(features, kUnseen)};
  Public& table = out.table;
  table.phase = Phase::play;
  table.turn = 0;
  table.counts[0] = static_cast<std::uint8_t>(size_of(out.hand));
  for (const int feature : features) {
    if (feature > kToBeat && feature < kWhose)
      table.last = static_cast<Id16>(actions()[at(feature - kToBeat)].front());
    else if (feature >= kWhose && feature < kUnseen)
      table.last_seat = static_cast<Seat>(feature - kWhose + 1);
    else if (feature >= kCounts && feature < kRole)
      table.counts[at((feature - kCounts) / kMostCards + 1)] =
          static_cast<std::uint8_t>((feature - kCounts) % kMostCards + 1);
    else if (feature >= kRole && feature < kRole + kSeats)
      table.landlord = static_cast<Seat>((kSeats - (feature - kRole)) % kSeats);
  }
  if (table.landlord == kNobody || (table.last != 0 && table.last_seat == kNobody))
    throw InvalidInput("the features do not tell who is the landlord, or whose play is to beat");
  return out;
}

void judge(const Told& told, std::span<const std::int32_t> abstract, std::vector<float>& out) {
  const Rules rules;
  const Sight sight{rules, told.table, 0, told.hand, told.unseen};
  for (const int each : abstract) {
    const Action action = action_of(told.hand, each);
    float like = -kCertainWin;
    if (contains(told.hand, Universe::get()[action].cards)) preferences(sight, {&action, 1}, {&like, 1});
    out.push_back(like / 2);
  }
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
