#include "mahjong/danger.h"

#include <algorithm>

namespace bothost::mahjong {
namespace {

/// What a winning discard costs more than an opponent's win costs anyway.
constexpr double kCost = 16;

/// Chance that a seat waits, by its melds (0..4) and discards.
double waiting(const Table& table, int seat, int discards) {
  constexpr double kSlope[] = {0.014, 0.022, 0.034, 0.055, 0.2};
  const double slope = kSlope[table.num_melds[at(seat)]];
  return std::min(0.8, slope * std::max(0, discards - 2 + table.num_melds[at(seat)]));
}

/// The one suit of a seat's two or more melds; -1 if there is no such suit.
int flush_suit(const Table& table, int seat) {
  int suit = -1, melds = 0;
  for (const auto& m : table.melds_of(seat)) {
    if (m.tile == kHidden || !is_number(m.tile)) continue;
    if (suit >= 0 && suit_of(m.tile) != suit) return -1;
    suit = suit_of(m.tile);
    ++melds;
  }
  return melds >= 2 ? suit : -1;
}

/// Chance that a waiting hand waits for a kind, from the unseen tiles.
double wanted(const Counts& unseen, int t) {
  const double own = unseen[at(t)] / 3.0;
  if (!is_number(t)) return 0.045 * std::min(1.0, own);
  return 0.022 * unseen_chows(unseen, t) + 0.02 * std::min(1.0, own);
}

/// Kinds that were discarded since the hand of `seat` last changed: it did not win by them.
std::array<bool, kKinds> let_pass(const View& view, int seat) {
  std::array<bool, kKinds> out{};
  const auto log = view.log().entries();
  for (auto e = log.rbegin(); e != log.rend(); ++e) {
    if (e->kind == Event::Kind::play) out[e->tile] = true;
    if (e->seat == seat && e->kind != Event::Kind::answer) break;
  }
  return out;
}

}  // namespace

double unseen_chows(const Counts& unseen, int t) {
  double chows = 0;
  const auto pair_free = [&](int a, int b) {
    return std::min(3, static_cast<int>(unseen[at(a)])) * std::min(3, static_cast<int>(unseen[at(b)])) / 9.0;
  };
  const int r = rank_of(t);
  if (r >= 2) chows += pair_free(t - 2, t - 1);
  if (r >= 1 && r <= 7) chows += pair_free(t - 1, t + 1);
  if (r <= 6) chows += pair_free(t + 1, t + 2);
  return chows;
}

std::array<double, kKinds> danger(const View& view) {
  std::array<double, kKinds> out{};
  const auto unseen = view.unseen();
  const auto& table = view.table();
  std::array<double, kKinds> chance_wanted{};
  for (int t = 0; t < kKinds; ++t) chance_wanted[at(t)] = wanted(unseen, t);
  for (int i = 1; i < kSeats; ++i) {
    const int seat = (view.seat() + i) % kSeats;
    const auto discards = view.discards(seat);
    const double waits = waiting(table, seat, static_cast<int>(discards.size()));
    const auto passed = let_pass(view, seat);
    const int flush = flush_suit(table, seat);
    for (int t = 0; t < kKinds; ++t) {
      if (passed[at(t)]) continue;
      double chance = waits * chance_wanted[at(t)];
      if (flush >= 0 && is_number(t)) chance *= suit_of(t) == flush ? 1.6 : 0.4;
      if (std::ranges::find(discards, t) != discards.end()) chance *= 0.5;
      out[at(t)] += chance * kCost;
    }
  }
  return out;
}

}  // namespace bothost::mahjong
