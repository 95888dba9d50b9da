// A position of the pairing game, and what moves do to it: the same code for the truth and for what a seat
// knows of it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "pairing/rules.h"

namespace bothost::pairing {

template <class T>
using BySeat = std::array<T, 2>;

/// Most cards that may lie in the deck at the beginning: hands hold one card each at least.
inline constexpr int kMostDeck = 50;
/// The same with what skill A may put under it.
inline constexpr std::size_t kQueue = 64;
static_assert(kMostDeck + 2 * kMostCharges[0] <= kQueue);
/// The deck of a whole hand: drawn from `head`, skill A appends at `tail`; entries never change once they are
/// known.
using Queue = std::array<Card, kQueue>;

constexpr Seat other(Seat seat) { return static_cast<Seat>(1 - seat); }

struct Position {
  /// In a view, the other seat's hand is left empty.
  BySeat<CardSet> hand{};
  BySeat<CardSet> library{};
  CardSet pool = 0;
  CardSet discards = 0;
  BySeat<std::uint8_t> hand_count{};
  std::uint8_t head = 0;
  std::uint8_t tail = 0;
  /// Charges left of skill A and of skill B.
  BySeat<std::array<std::uint8_t, 2>> charges{};
  BySeat<std::int16_t> score{};
  /// kNobody when both hands are empty: the end.
  Seat mover = 0;
  std::uint8_t turn = 0;
  std::uint8_t discards_used = 0;
  /// Where the mover's turn stood when the last effect was over; what it entered since is in the cursor.
  Phase phase = kInit;
  /// Draws that the last effect still causes, and the phase after them.
  std::uint8_t owed_hand = 0;
  std::uint8_t owed_pool = 0;
  Phase next = kInit;

  bool operator==(const Position&) const = default;

  int deck_count() const { return tail - head; }
  bool owes() const { return owed_hand != 0 || owed_pool != 0; }

  Conditions conditions(const Rules& rules, bool match) const {
    const auto& left = charges[at(mover)];
    Conditions out = match ? kMatch : kNoMatch;
    if (left[0] && deck_count() > 0) out |= kCanReplace;
    if (left[1] && pool) out |= kCanForce;
    const bool discard =
        discards_used < rules.discards && deck_count() >= rules.discard_to_hand + rules.discard_to_pool;
    out |= discard ? kCanDiscard : kCannotDiscard;
    out |= discards_used ? kLaterDiscard : kFirstDiscard;
    return out;
  }

  /// Of a mover whose cards are all known.
  Conditions conditions(const Rules& rules) const {
    return conditions(rules, (colours(hand[at(mover)]) & colours(pool)) != 0);
  }

  /// The cards that selection number `count` of this row may take, of a mover that holds `held`.
  CardSet choices(const Row& row, std::size_t count, CardSet held, Card first) const {
    switch (row.picks[count]) {
      case Pick::hand: return held;
      case Pick::matching_hand: return held & kOfColours[colours(pool)];
      case Pick::unmatched_hand: return held & ~kOfColours[colours(pool)];
      case Pick::pool: return pool;
      case Pick::same_colour: return pool & of_colour(colour_of(first));
      case Pick::none: break;
    }
    return 0;
  }

  /// Executes the effect of `row` on the selected cards. `a` may be kHidden where a view looks on. Draws stay
  /// owed.
  void execute(const Rules& rules, const Row& row, Card a, Card b, Queue& queue) {
    const auto me = at(mover);
    hand[me] &= ~bit(a);
    --hand_count[me];
    next = row.next;
    switch (row.effect) {
      case Effect::force: --charges[me][1]; [[fallthrough]];
      case Effect::pair:
        pool &= ~bit(b);
        collect(rules, me, a);
        collect(rules, me, b);
        if (rules.refill)
          owed_pool = static_cast<std::uint8_t>(std::clamp(rules.pool - size(pool), 0, deck_count()));
        break;
      case Effect::replace:
        --charges[me][0];
        queue[tail++] = a;
        owed_hand = 1;
        break;
      case Effect::discard:
        ++discards_used;
        owed_hand = rules.discard_to_hand;
        owed_pool = rules.discard_to_pool;
        [[fallthrough]];
      case Effect::final_discard: discards |= bit(a); break;
    }
  }

  /// The top card, which may be kHidden, goes to the mover's hand.
  void draw_to_hand(Card card) {
    ++head;
    --owed_hand;
    ++hand_count[at(mover)];
    if (card != kHidden) hand[at(mover)] |= bit(card);
  }
  void draw_to_pool(Card card) {
    ++head;
    --owed_pool;
    pool |= bit(card);
  }

  /// Once nothing is owed: the next phase, or the next turn.
  void settle() {
    if (next != kTurnOver && hand_count[at(mover)]) {
      phase = next;
    } else {
      ++turn;
      discards_used = 0;
      phase = kInit;
      if (hand_count[at(other(mover))])
        mover = other(mover);
      else if (!hand_count[at(mover)])
        mover = kNobody;
    }
    next = kInit;
  }

 private:
  void collect(const Rules& rules, std::size_t me, Card card) {
    library[me] |= bit(card);
    score[me] = static_cast<std::int16_t>(score[me] + rules.worth(library[me], card));
  }
};

/// What a hand began with: a fresh deal, or a position under way that a lobby told after a reconnect.
struct Deal {
  Position start;
  /// Entries start.head .. start.tail are the deck; kHidden where unknown, and after the tail.
  Queue queue = [] {
    Queue q;
    q.fill(kHidden);
    return q;
  }();
  /// Cards out of the game that no seat sees.
  CardSet aside = 0;
  /// Cards in the deck or in the other hand whose place a seat knew from the start; empty for a fresh deal.
  BySeat<CardSet> known{};

  bool operator==(const Deal&) const = default;

  /// The beginning of a hand under these rules, before any card.
  static Position blank(const Rules& rules) {
    Position p;
    p.hand_count = {rules.hand, rules.hand};
    p.tail = rules.deck;
    p.charges = {{{rules.skill_a, rules.skill_b}, {rules.skill_a, rules.skill_b}}};
    return p;
  }
  /// Without what skill A has put under the deck since.
  Deal as_dealt() const {
    Deal dealt = *this;
    std::fill(dealt.queue.begin() + start.tail, dealt.queue.end(), kHidden);
    return dealt;
  }
  /// As a seat sees it at the beginning.
  Deal seen_by(Seat seat) const {
    Deal seen = as_dealt();
    seen.aside = 0;
    seen.known[at(other(seat))] = 0;
    seen.start.hand[at(other(seat))] &= known[at(seat)];
    for (Card& card : seen.queue)
      if (!(known[at(seat)] & bit(card))) card = kHidden;
    return seen;
  }
  /// Whether this is a fresh deal under these rules (cards aside).
  bool fresh(const Rules& rules) const {
    Position p = blank(rules);
    p.hand = start.hand;
    p.pool = start.pool;
    return p == start && size(start.pool) == rules.pool && known[0] == 0 && known[1] == 0;
  }
};

/// Every action of a hand in order, one byte each: the seat in bit 7, kHidden for a card that was not seen.
struct Log {
  /// At most 52 cards leave hands for good, three actions each, and every charge of A is two.
  static constexpr std::size_t kMost = 224;
  std::array<std::uint8_t, kMost> entries{};
  std::uint8_t size = 0;
  /// Entries of effects that were executed; after them come the mover's open selections.
  std::uint8_t settled = 0;

  static_assert(kMost >= 3 * kCards + 2 * 2 * kMostCharges[0]);
  static Seat seat(std::uint8_t entry) { return static_cast<Seat>(entry >> 7); }
  static std::uint8_t what(std::uint8_t entry) { return entry & 0x7f; }
  std::span<const std::uint8_t> all() const { return {entries.data(), size}; }
  void push(Seat seat, std::uint8_t what) { entries[size++] = static_cast<std::uint8_t>(seat << 7 | what); }
  /// Entry i is the same seat's with this card.
  void set(std::size_t i, Card card) { entries[i] = static_cast<std::uint8_t>(seat(entries[i]) << 7 | card); }
  /// Hides the cards that this seat put under the deck: the entry after each that enters skill A.
  void hide(Seat who) {
    for (std::size_t i = 1; i < size; ++i)
      if (seat(entries[i]) == who && what(entries[i - 1]) == kCards + kSkillA - 1) set(i, kHidden);
  }
  void cut() {
    while (size > settled) entries[--size] = 0;
  }
  bool operator==(const Log&) const = default;
};

/// Bit i is set when the mover may do action i; it may be a seat whose cards are all known.
inline std::uint64_t legal_actions(const Rules& rules, const Position& now, const Cursor& cursor) {
  const CardSet hand = now.hand[at(now.mover)];
  const Conditions conditions = now.conditions(rules);
  const Machine& machine = rules.phases();
  if (const Row* row = machine.row(cursor.phase, conditions))
    return now.choices(*row, cursor.count, hand, cursor.items[0]);
  return machine.is_hub(cursor.phase) ? std::uint64_t{machine.open(conditions) >> 1} << kCards : 0;
}

inline void append_bits(std::uint64_t mask, ActionList& out) {
  for (; mask; mask &= mask - 1) out.push_back(std::countr_zero(mask));
}

/// The action that enters a phase.
constexpr Action enter_action(Phase phase) { return kCards + phase - 1; }
constexpr Phase entered_phase(int action) { return static_cast<Phase>(action - kCards + 1); }

}  // namespace bothost::pairing
