#include "mahjong/rules.h"

#include <algorithm>

#include "core/options.h"

namespace bothost::mahjong {

const std::array<std::string_view, 5> kWindNames = {"east", "south", "west", "north", "dealt"};

namespace {

constexpr std::array<std::string_view, 2> kWalls = {"per-seat", "shared"};
constexpr std::array<std::string_view, 8> kMoves = {"pass", "hu",   "play",   "chi",
                                                    "peng", "gang", "angang", "bugang"};
constexpr std::array<Action, 9> kFirst = {kPass, kHu,     kPlay,   kChi,       kPeng,
                                          kGang, kAngang, kBugang, kNumActions};

/// botzone       the official judge: 136 tiles, a wall quarter per seat, 8 points to win, the wind is dealt.
/// shared-wall   the same with one wall for all, as at a real table.
/// open-mahjong  xelnagamiao/open_mahjong_unity: flowers, one wall.
/// false-win     the official judge with complete hands below the minimum on offer, at -30.
Rules preset(std::string_view name) {
  Rules r;
  if (name == "shared-wall" || name == "open-mahjong") r.wall = WallModel::shared;
  r.flowers = name == "open-mahjong";
  r.false_win = name == "false-win";
  return r;
}

/// In the order of their JSON.
template <class Rules, class Visit>
void each_option(Rules& r, Visit& visit) {
  visit("flowers", r.flowers);
  visit("wall", r.wall, kWalls);
  visit("minimum", r.minimum, 0, 1000);
  visit("false_win", r.false_win);
  visit("prevalent_wind", r.prevalent_wind, kWindNames);
}

}  // namespace

Rules Rules::from_json(const Json& json) {
  OptionReader read(json);
  Rules r = preset(read.preset(kPresets));
  each_option(r, read);
  read.refuse_others("mahjong");
  return r;
}

Json Rules::to_json() const {
  OptionWriter write;
  each_option(*this, write);
  return write.out;
}

Parts parts(Action action) {
  int move = 0;
  while (action >= kFirst[at(move + 1)]) ++move;
  const int i = action - kFirst[at(move)];
  const auto m = static_cast<Move>(move);
  if (m == Move::pass || m == Move::hu) return {m, kHidden};
  return {m, static_cast<Tile>(m == Move::chi ? i / 7 * 9 + i % 7 + 1 : i)};
}

Action action_of(Move move, int tile) {
  if (move == Move::pass || move == Move::hu) return static_cast<Action>(move);
  return move == Move::chi ? chi_action(tile) : kFirst[at(move)] + tile;
}

std::string notation(Action action) {
  const auto [move, tile] = parts(action);
  std::string text(kMoves[at(move)]);
  if (tile != kHidden) (text += ':') += tile_name(tile);
  return text;
}

Action parse_action(std::string_view text) {
  const auto colon = text.find(':');
  const auto it = std::ranges::find(kMoves, text.substr(0, colon));
  const auto move = static_cast<Move>(it - kMoves.begin());
  const bool bare = move == Move::pass || move == Move::hu;
  if (it == kMoves.end() || bare != (colon == std::string_view::npos)) reject(text, "is no mahjong action");
  if (bare) return static_cast<Action>(move);
  const Tile tile = parse_tile(text.substr(colon + 1));
  if (move == Move::chi && !is_middle(tile))
    throw InvalidInput("no chow has " + tile_name(tile) + " in its middle");
  return action_of(move, tile);
}

}  // namespace bothost::mahjong
