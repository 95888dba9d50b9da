// What happens at the table.
//
//   deal S WIND T*13       the seat's own tiles, to it alone; winds east, south, west, north
//   draw S T | draw S      with the tile to the drawer alone
//   flower S H             a flower is laid down; a draw replaces it
//   play S T               a discard
//   answer S ACTION        a seat's own answer to a discard or to an added kong, to it alone
//   chi S T, peng S T, gang S T   a claim of the last discard; the middle tile of a chow
//   angang S T | angang S  a concealed kong; the tile to its owner alone
//   bugang S T             a pung becomes a kong
//   hu S T FROM FANS       a win: the tile, the seat it came from, "all-pungs,dragon-pung*2"; no FANS where a
//   lobby
//                          does not tell them
//   false-hu S T FROM      a declared hand below the minimum
//   exhausted -            the next seat has no tile to draw
//   reveal - WIND WALL ACTIONS   everything: the wall as in the deal, comma-separated; all actions
//   "seat:action"
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mahjong/fan.h"
#include "mahjong/rules.h"

namespace bothost::mahjong {

using FanCounts = std::vector<std::pair<Fan, std::uint8_t>>;
FanCounts fan_counts(const FanResult& result);
/// Points of all fans, flowers among them.
int total_points(const FanCounts& fans);

struct Event {
  enum class Kind : std::uint8_t {
    deal,
    draw,
    flower,
    play,
    answer,
    chi,
    peng,
    gang,
    angang,
    bugang,
    hu,
    false_hu,
    exhausted,
    reveal
  } kind;
  Seat seat = kNobody;
  Tile tile = kHidden;
  /// answer: the action.
  Action action = kPass;
  /// hu, false_hu: whose tile it was, the winner's own seat when self-drawn.
  Seat from = kNobody;
  /// deal, reveal: 0 east .. 3 north.
  std::uint8_t wind = 0;
  /// deal: the 13 tiles in the order of their dealing. reveal: the wall.
  std::vector<Tile> tiles{};
  FanCounts fans{};
  /// reveal: every action in the order of its application.
  std::vector<std::pair<Seat, Action>> actions{};

  bool operator==(const Event&) const = default;
  std::string text() const;
  static Event parse(const Rules& rules, std::string_view text);
};

}  // namespace bothost::mahjong
