// What a look-ahead starts from: the hand, and what may still come to it.
#pragma once
#include <array>
#include <optional>

#include "mahjong/fan.h"
#include "mahjong/visible.h"

namespace bothost::mahjong {

/// How the look-ahead values hands: as the rule player does, or weighted by acceptance (lookahead.h).
enum class Appraisal : std::uint8_t { plain, acceptance_weighted };

/// What the worth of a hand depends on, besides the hand.
struct Outlook {
  Counts unseen{};
  /// Own draws that the hand is expected to last.
  double turns = 10;
  std::uint8_t seat_wind = 0, prevalent_wind = 0;
  /// Fewest points that win.
  int minimum = 8;
  /// For the acceptance-weighted look-ahead. Without them all unseen tiles are equally likely, and worths are
  /// summed.
  std::optional<DrawRates> draw_rates;
};

/// Where a missing tile may come from: the wall only; also the previous seat, for a chow; also all others,
/// for a pung or to win.
enum Source : std::size_t { own, chow, any };
inline constexpr std::size_t kSources = 3;
/// Discards of others that can be claimed, for each own draw. They are rarer than draws: others want the tile
/// too, and see what we claim.
inline constexpr std::array<double, kSources> kClaims = {0.0, 0.4, 1.5};

/// A missing tile by its source, its kind and the unseen copies of it, those already missing taken away.
constexpr std::size_t arrival(Source source, std::size_t tile, int unseen) {
  return (source * kKinds + tile) * 5 + at(unseen);
}
inline constexpr std::size_t kArrivals = kSources * kKinds * 5;

}  // namespace bothost::mahjong
