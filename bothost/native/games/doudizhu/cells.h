// Which cells of some encoder blocks are 1, for the encoders and for models that sum a row for each of them.
#pragma once
#include <algorithm>
#include <array>
#include <bit>

#include "doudizhu/analysis.h"
#include "doudizhu/encode.h"
#include "doudizhu/policy.h"

namespace bothost::doudizhu {

/// Calls `set(cell)` for the cells of a card vector that `whole` sets, and a `part` of it does not.
template <class Set>
void each_cell_between(Cards part, Cards whole, Set&& set) {
  for (Cards more = whole - part; more != 0;) {
    const int rank = std::countr_zero(more) / 4,
              first = rank <= kTwo ? 4 * rank : 4 * kSmallJoker + rank - kSmallJoker;
    const int held = count_of(part, rank), added = count_of(more, rank);
    for (int i = held; i < held + added; ++i) set(first + i);
    more -= card(rank, added);
  }
}
/// The same for all cells that `cards` sets.
template <class Set>
void each_cell(Cards cards, Set&& set) {
  each_cell_between(0, cards, set);
}

/// Calls `set(cell)` for the cells of the block `situation`. Hands are known to be in play.
template <class Set>
void situation_cells(const Sight& s, Set&& set) {
  constexpr int kCounts = 6;
  const auto held = [&](Seat seat) {
    const int n = s.table.counts[at(seat)];
    return n <= 2 ? std::max(n - 1, 0) : n <= 4 ? 2 : n <= 8 ? 3 : n <= 12 ? 4 : 5;
  };
  const Seat partner = partner_of(s);
  const bool leads = s.table.last == 0;
  int enemy = kCounts;
  for (Seat seat = 0; seat < kSeats; ++seat)
    if (seat != s.seat && seat != partner) enemy = std::min(enemy, held(seat));
  set(3 * ((s.seat - s.table.landlord + 3) % 3) + (leads ? 0 : s.table.last_seat == partner ? 2 : 1));
  int first = 9;
  for (const int cell :
       {enemy, partner == kNobody ? -1 : held(partner), leads ? -1 : held(s.table.last_seat), held(s.seat)}) {
    if (cell >= 0) set(first + cell);
    first += kCounts;
  }
}

inline constexpr int kMostPlays = 10, kLongest = 12;
/// Half points by which another move is liked better: one cell each is 1 from there on.
inline constexpr std::array<float, 8> kBehind = {1, 3, 6, 12, 24, 48, 96, 192};
/// Where each group of cells begins.
inline constexpr int kPlaysCell = kCardVector, kSizeCell = kPlaysCell + kMostPlays + 1,
                     kKindCell = kSizeCell + kDealSize + kBottomSize + 1,
                     kRankCell = kKindCell + static_cast<int>(Kind::call), kLengthCell = kRankCell + kRanks,
                     kStandsCell = kLengthCell + kLongest, kBehindCell = kStandsCell + 1,
                     kCertainCell = kBehindCell + static_cast<int>(kBehind.size()),
                     kChoiceCell = kCertainCell + 1;
static_assert(kMoveAnalysis == kChoiceCell + 1);

/// Calls `set(cell)` for what the move is, and for what it leaves except the cards themselves.
template <class Set>
void move_cells(const Sight& sight, const Move& m, Cards rest, Set&& set) {
  set(kPlaysCell + std::min(fewest_plays_bound(rest), kMostPlays));
  set(kSizeCell + size_of(rest));
  if (m.kind == Kind::call || m.kind == Kind::pass) return;
  set(kKindCell + static_cast<int>(m.kind));
  set(kRankCell + m.rank);
  set(kLengthCell + std::min(m.length - 1, kLongest - 1));
  if (sight.table.phase == Phase::play && stands(sight, m)) set(kStandsCell);
}

/// The same for how much the rule player likes a move, where it likes the best one `top`.
template <class Set>
void preference_cells(float like, float top, Set&& set) {
  for (std::size_t i = 0; i < kBehind.size(); ++i)
    if (top - like >= kBehind[i]) set(kBehindCell + static_cast<int>(i));
  if (like >= kCertainLike) set(kCertainCell);
}

}  // namespace bothost::doudizhu
