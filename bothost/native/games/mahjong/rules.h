// The options of a Chinese Official mahjong table.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/types.h"
#include "mahjong/tiles.h"

namespace bothost::mahjong {

inline constexpr int kSeats = 4;
inline constexpr int kDealt = 13;
template <class T>
using BySeat = std::array<T, kSeats>;

constexpr Seat next_seat(int seat) { return static_cast<Seat>((seat + 1) % kSeats); }

enum class WallModel : std::uint8_t {
  per_seat,  // every seat draws from its own quarter, as in the official judge's duplicate walls
  shared,    // all draw from one wall
};

// The action space: one model decision per action. A chow is named by its middle tile; the claimed tile is
// known.
inline constexpr Action kPass = 0;
inline constexpr Action kHu = 1;
inline constexpr Action kPlay = 2;                   // + tile
inline constexpr Action kChi = kPlay + kKinds;       // + suit * 7 + rank of the middle tile - 1
inline constexpr Action kPeng = kChi + 21;           // + tile
inline constexpr Action kGang = kPeng + kKinds;      // + tile: a kong of the discard
inline constexpr Action kAngang = kGang + kKinds;    // + tile: a concealed kong
inline constexpr Action kBugang = kAngang + kKinds;  // + tile: a pung becomes a kong
inline constexpr int kNumActions = kBugang + kKinds;

struct Rules {
  /// 144 tiles with eight flowers, which are laid down and replaced at once.
  bool flowers = false;
  WallModel wall = WallModel::per_seat;
  /// Fewest points, flowers aside, that win.
  int minimum = 8;
  /// A complete hand below the minimum may be declared, and costs 30: 10 to each other seat. The hand then
  /// ends.
  bool false_win = false;
  /// 0 east .. 3 north, or kDealtWind: part of the deal, and drawn with it.
  int prevalent_wind = kDealtWind;

  static constexpr int kDealtWind = 4;

  static Rules from_json(const Json& options);
  Json to_json() const;
  int num_seats() const { return kSeats; }
  int num_actions() const { return kNumActions; }
  int num_tiles() const { return flowers ? 144 : 136; }
  /// Whether a hand may have this prevalent wind.
  bool allows_wind(std::uint8_t wind) const {
    return wind < 4 && (prevalent_wind == kDealtWind || prevalent_wind == wind);
  }
  bool operator==(const Rules&) const = default;
};

inline constexpr std::array<std::string_view, 4> kPresets = {"botzone", "shared-wall", "open-mahjong",
                                                             "false-win"};
extern const std::array<std::string_view, 5> kWindNames;

constexpr Action chi_action(int middle) { return kChi + suit_of(middle) * 7 + rank_of(middle) - 1; }

enum class Move : std::uint8_t { pass, hu, play, chi, peng, gang, angang, bugang };
struct Parts {
  Move move;
  Tile tile;  // kHidden for pass and hu; of a chow the middle one
};
/// An action taken apart; it must lie within [0, kNumActions).
Parts parts(Action action);
Action action_of(Move move, int tile);
std::string notation(Action action);
/// Inverse of notation. Throws InvalidInput.
Action parse_action(std::string_view text);

}  // namespace bothost::mahjong
