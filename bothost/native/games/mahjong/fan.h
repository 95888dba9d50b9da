// Fan calculation of Chinese Official mahjong (MCR, "Mahjong Competition Rules", All-China Sports Federation,
// 1998 and 2006): the 81 fans, their exclusions, and the best way to read a hand.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "mahjong/shape.h"
#include "mahjong/tiles.h"

namespace bothost::mahjong {

/// In the order of the rule book, dearest first. concealed_and_melded_kong (one kong of each kind) is what
/// the official judge scores instead of the two single kongs; it is not one of the 81.
enum class Fan : std::uint8_t {
#define FAN(name, chinese, points) name,
#include "mahjong/fan_names.h"
#undef FAN
};
inline constexpr std::size_t kFans = at(Fan::flower_tiles) + 1;

struct FanInfo {
  std::string_view id;       // "half-flush"
  std::string_view chinese;  // as the official judge reports it
  std::uint8_t points;
};
extern const std::array<FanInfo, kFans> kFanInfo;

/// A set of tiles that lies on the table or that the winner reads out of the standing tiles.
struct Meld {
  enum Kind : std::uint8_t { chow, pung, kong } kind;
  Tile tile;       // of a chow the middle one
  bool concealed;  // a concealed kong
  auto operator<=>(const Meld&) const = default;
};

/// How the hand was won.
struct WinContext {
  Tile win_tile = 0;
  bool self_drawn = false;
  /// The three other copies of the winning tile lie open on the table.
  bool fourth_tile = false;
  /// With self_drawn: the tile replaced a kong; without: a kong was robbed.
  bool kong = false;
  /// No tile is left for the next player.
  bool wall_last = false;
  std::uint8_t seat_wind = 0;       // 0 east .. 3 north
  std::uint8_t prevalent_wind = 0;  // 0 east .. 3 north
  std::uint8_t flowers = 0;
};

struct FanResult {
  /// How often each fan counts.
  std::array<std::uint8_t, kFans> times{};
  /// Points of all fans but the flowers: what the 8-fan minimum is held against.
  int points = 0;
  /// Points with one for each flower: what is paid.
  int total = 0;
};

/// Best score of a hand. `standing`: the standing tiles with the winning tile among them, 14 less three per
/// meld. Empty when the tiles complete no hand. Throws InvalidInput when counts cannot be those of a hand.
std::optional<FanResult> calculate_fans(const Counts& standing, std::span<const Meld> melds,
                                        const WinContext& win);

}  // namespace bothost::mahjong
