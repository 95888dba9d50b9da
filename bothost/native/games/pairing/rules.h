// The numbers of the pairing game.
#pragma once
#include <array>
#include <cstdint>

#include "core/json.h"
#include "pairing/cards.h"
#include "pairing/machine.h"

namespace bothost::pairing {

inline constexpr int kNumActions = kCards + 6;

/// Of skill A and of skill B. Few of A, for sampling follows every card that may have gone under the deck.
inline constexpr std::array<std::uint8_t, 2> kMostCharges{4, 7};

/// Every option of the game. The defaults are the preset "seven-phase".
struct Rules {
  /// Index into kMachines: the preset.
  std::uint8_t machine = 0;
  /// Cards dealt to each hand, 1 .. 20.
  std::uint8_t hand = 10;
  /// Cards dealt face up to the pool, 0 .. 20; also what it is topped up to.
  std::uint8_t pool = 10;
  /// Cards in the deck, at most what the hands and the pool leave (the default); the others are set aside
  /// unseen.
  std::uint8_t deck = 22;
  /// Points of a card by rank, 0 .. 99 each.
  std::array<std::uint8_t, kRanks> points{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 8};
  /// For all four cards of one rank, 0 .. 99.
  std::uint8_t rank_bonus = 8;
  /// For every `colour_set`-th card of one colour, 0 .. 99.
  std::uint8_t colour_bonus = 5;
  /// 1 .. 13.
  std::uint8_t colour_set = 6;
  /// Charges of the skills at the beginning, 0 .. kMostCharges.
  std::uint8_t skill_a = 1;
  std::uint8_t skill_b = 1;
  /// Whether the pool is topped up after each pair while the deck lasts.
  bool refill = true;
  /// Discards of a turn where nothing matches, 0 .. 2, before the final one.
  std::uint8_t discards = 2;
  /// Cards that a discard draws to the hand and then to the pool, 0 .. 4 each.
  std::uint8_t discard_to_hand = 1;
  std::uint8_t discard_to_pool = 1;

  /// Throws InvalidInput, with the nearest known option where one is unknown.
  static Rules from_json(const Json& options);
  Json to_json() const;
  int num_seats() const { return 2; }
  int num_actions() const { return kNumActions; }
  const Machine& phases() const { return kMachines[machine]; }
  /// Points of all 52 cards together, without bonuses; at least 1: what encoders divide scores by.
  int total_points() const;
  /// What `card` is worth to a library that now holds it.
  int worth(CardSet library, Card card) const {
    int sum = points[at(rank_index(card))];
    const CardSet rank = of_rank(rank_index(card));
    if ((library & rank) == rank) sum += rank_bonus;
    if (size(library & of_colour(colour_of(card))) % colour_set == 0) sum += colour_bonus;
    return sum;
  }
  bool operator==(const Rules&) const = default;
};

}  // namespace bothost::pairing
