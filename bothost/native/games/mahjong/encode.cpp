#include "mahjong/encode.h"

#include <algorithm>
#include <cmath>

#include "mahjong/fan_parts.h"
#include "mahjong/planner.h"

namespace bothost::mahjong {
namespace {

// Seats are counted from the encoding one: 0 self, 1 next, 2 opposite, 3 previous.

/// Cells of a plane: four rows of the kinds of tiles.
constexpr int kPlane = 4 * kKinds;
constexpr int kLookAheadPlanes = 48;
constexpr int kDeepestLookAhead = 4;
constexpr int kProspectFloats = 18;

enum BlockIndex {
  kTiles,
  kOrder,
  kNumbers,
  kIntegers,
  kLookAhead,  // and deeper
  kAction = kLookAhead + kDeepestLookAhead,
  kProspect,
  kAppraisal,
  kHiddenTiles
};
constexpr int kTilePlanes = 18;
constexpr int kOrderLength = 24;
constexpr int kScalars = 34;
constexpr int kTilesLeftPlaces = 24, kMeldPlaces = 5, kNeededPlaces = 8;
constexpr int kIntegerPlanes = (kTilesLeftPlaces + kSeats * kMeldPlaces + kNeededPlaces) / 4;
constexpr int kActionFloats = 8 + kKinds;

/// One plane: row k is 1 where there are at least k + 1 copies.
void tile_set(const Counts& counts, float* plane) {
  for (int t = 0; t < kKinds; ++t)
    for (int k = 0; k < counts[at(t)]; ++k) plane[k * kKinds + t] = 1.0f;
}

void fill_row(float* plane, int row) { std::fill_n(plane + row * kKinds, kKinds, 1.0f); }

Counts meld_counts(std::span<const TableMeld> melds) {
  Counts c{};
  for (const auto& m : melds)
    if (m.tile != kHidden) add_tiles({m.kind, m.tile, m.concealed}, c);
  for (auto& n : c) n = std::min<std::uint8_t>(n, 4);
  return c;
}

void encode_tiles(const View& v, float* out) {
  const auto& t = v.table();
  const auto plane = [out](int i) { return out + i * kPlane; };
  const auto seat_at = [&](int relative) { return (v.seat() + relative) % kSeats; };
  tile_set(v.hand(), plane(0));
  BySeat<Counts> discards{};
  for (int s = 0; s < kSeats; ++s)
    for (const auto d : v.discards(s))
      if (discards[at(s)][d] < 4) ++discards[at(s)][d];
  for (int i = 0; i < kSeats; ++i) {
    tile_set(meld_counts(t.melds_of(seat_at(i))), plane(1 + i));
    tile_set(discards[at(seat_at(i))], plane(5 + i));
  }
  tile_set(t.shown, plane(9));
  tile_set(v.unseen(), plane(10));
  if (v.drawn() < kKinds) plane(11)[v.drawn()] = 1.0f;
  if (t.asks_others()) plane(12)[t.last_tile] = 1.0f;
  fill_row(plane(13), v.seat());
  fill_row(plane(14), t.wind);
  fill_row(plane(15), (kSeats - v.seat()) % kSeats);  // seat 0 deals
  if (t.phase >= Phase::turn && t.phase <= Phase::robbing) {
    fill_row(plane(16), static_cast<int>(t.phase) - static_cast<int>(Phase::turn));
    fill_row(plane(17), (t.actor - v.seat() + kSeats) % kSeats);
  }
}

void encode_order(const View& v, float* out) {
  for (int i = 0; i < kSeats; ++i) {
    const auto list = v.discards((v.seat() + i) % kSeats);
    const auto n = std::min<std::size_t>(list.size(), kOrderLength);
    for (std::size_t k = 0; k < n; ++k)
      out[(at(i) * kOrderLength + k) * kKinds + list[list.size() - 1 - k]] = 1.0f;
  }
}

void encode_numbers(const View& v, float* out) {
  const auto& t = v.table();
  const bool shared = v.rules().wall == WallModel::shared;
  const float full = static_cast<float>(v.rules().num_tiles() / kSeats - kDealt);
  for (std::size_t i = 0; i < kSeats; ++i) {
    const auto s = at((v.seat() + static_cast<int>(i)) % kSeats);
    const auto left = static_cast<float>(t.left_for(v.rules(), static_cast<int>(s)));
    int concealed_kongs = 0;
    for (const auto& m : t.melds_of(static_cast<int>(s))) concealed_kongs += m.concealed;
    out[i] = static_cast<float>(t.hand_size[s]) / 14.0f;
    out[4 + i] = left / (shared ? 4.0f * full : full);
    out[13 + i] = static_cast<float>(t.num_melds[s]) / 4.0f;
    out[17 + i] = static_cast<float>(concealed_kongs) / 4.0f;
    out[21 + i] = static_cast<float>(t.flowers[s]) / 8.0f;
    out[25 + i] = static_cast<float>(v.discards(static_cast<int>(s)).size()) / 24.0f;
  }
  const auto [shanten, useful] = useful_tiles(v.hand(), t.num_melds[at(v.seat())]);
  // Tiles needed, 0 to 4 and more, as five places.
  out[8 + std::clamp(shanten + 1, 0, 4)] = 1.0f;
  const auto unseen = v.unseen();
  for (int k = 0; k < kKinds; ++k)
    if (useful >> k & 1) out[33] += static_cast<float>(unseen[at(k)]) / 34.0f;
  out[29 + (t.phase == Phase::turn      ? 0
            : t.phase == Phase::discard ? 1
            : t.phase == Phase::claims  ? 2
                                        : 3)] = 1.0f;
}

void encode_integers(const View& v, float* out) {
  const auto& t = v.table();
  int first = 0;  // row of the next integer
  const auto dummy = [&](int value, int places) {
    fill_row(out, first + std::clamp(value, 0, places - 1));
    first += places;
  };
  const bool shared = v.rules().wall == WallModel::shared;
  dummy(t.left_for(v.rules(), v.seat()) / (shared ? kSeats : 1), kTilesLeftPlaces);
  for (int i = 0; i < kSeats; ++i) dummy(t.num_melds[at((v.seat() + i) % kSeats)], kMeldPlaces);
  dummy(needed_tiles(v.hand(), t.num_melds[at(v.seat())]), kNeededPlaces);
}

constexpr int kDiscard = 0, kInReach = 1, kBestHand = 2, kBestFans = 4, kShapesInReach = 25,
              kFansInReach = 27;
static_assert(kFansInReach + (kFans + 3) / 4 == kLookAheadPlanes);

/// Row `row` of the planes that begin with `plane`.
float* row_of(float* out, int plane, int row) { return out + plane * kPlane + row * kKinds; }

void encode_hand(const Prospect& p, float* out) {
  fill_row(out + kBestHand * kPlane, static_cast<int>(p.shape));
  fill_row(out + kBestHand * kPlane, static_cast<int>(kShapes) + std::clamp(p.tiles_needed, 1, 3) - 1);
  for (std::size_t s = 0; s < kShapes; ++s)
    if (p.shapes[s]) fill_row(out + kShapesInReach * kPlane, static_cast<int>(s));
  p.fans.each([&](std::size_t f) { fill_row(out + kBestFans * kPlane, static_cast<int>(f)); });
  p.all_fans.each([&](std::size_t f) { fill_row(out + kFansInReach * kPlane, static_cast<int>(f)); });
}

/// `best`: the greatest worth and value among the actions that do not win.
void encode_prospect(const Option& o, const Option& best, float* out) {
  const auto& p = o.prospect;
  const auto ratio = [](double x, double most) {
    return static_cast<float>(most > 0 ? std::clamp(x / most, -1.0, 1.0) : 0.0);
  };
  out[0] = static_cast<float>(std::log1p(std::max(0.0, p.worth)) / 6);
  out[1] = ratio(p.worth, best.prospect.worth);
  out[2] = static_cast<float>(std::min(1.0, p.chance));
  if (p.worth > 0) {
    out[3 + std::min(p.tiles_needed, 6)] = 1.0f;
    out[10] = static_cast<float>(std::min(p.points, 48) / 24.0);
    out[11 + static_cast<int>(p.shape)] = 1.0f;
  }
  out[16] = static_cast<float>(std::min(4.0, o.danger / 4));
  out[17] = ratio(o.value(), best.value());
}

/// What lies ahead of a hand (lookahead.h), `depth` draws ahead, 1..kDeepestLookAhead.
void encode_look_ahead(const View& view, int depth, float* out) {
  std::fill_n(out, kLookAheadPlanes * kPlane, 0.0f);
  auto targets = targets_of(view);
  targets.find(depth);
  const auto ahead = look_ahead(targets, Arrivals(outlook_of(view), targets.unseen()), depth, true);
  if (!view.table().discards() || view.table().actor != view.seat()) {
    if (ahead.now.worth > 0) encode_hand(ahead.now, out);
    return;
  }
  for (int t = 0; t < kKinds; ++t) {
    const auto& p = ahead.after[at(t)];
    if (p.worth <= 0) continue;
    row_of(out, kInReach, 0)[t] = 1.0f;
    row_of(out, kInReach, std::clamp(p.tiles_needed, 1, 3))[t] = 1.0f;
  }
  const auto best = std::ranges::max_element(ahead.after, {}, &Prospect::worth);
  if (best->worth <= 0) return;
  row_of(out, kDiscard, 0)[best - ahead.after.begin()] = 1.0f;
  encode_hand(*best, out);
}

/// Throws IllegalAction for an action that the view may not take.
void encode_prospects(const View& view, Appraisal appraisal, std::span<const Action> actions, float* out) {
  std::fill_n(out, actions.size() * kProspectFloats, 0.0f);
  ActionList legal;
  view.legal(legal);
  for (const auto action : actions)
    if (!std::ranges::binary_search(legal, action))
      throw IllegalAction("prospects are those of legal actions");
  if (actions.empty()) return;
  auto targets = targets_of(view);
  const auto options = Planner(view, targets, appraisal).options(actions);
  Option best;
  best.prospect.worth = 0;
  for (const auto& o : options)
    if (o.action != kHu && o.value() > best.value()) best = o;
  for (const auto& o : options) {
    encode_prospect(o, best, out);
    out += kProspectFloats;
  }
}

Block look_ahead_block(int depth) {
  return Block(
      "look_ahead_" + std::to_string(depth), {kLookAheadPlanes, 4, kKinds}, 1, Block::Of::view,
      "What the hand can win over the next " + std::to_string(depth) +
          " own draws; planes 4 x 34, all 0 where that is nothing. 0 recommended discard (row 0); 1 "
          "discards after which a win stays in reach (row 0), by the tiles that the best such hand lacks "
          "(rows 1-3: 1, 2, 3 and more). Full rows, of the best hand after the recommended discard or, "
          "where nothing is to be discarded, of the hand as it is: 2-3 its shape (rows 0-4, as "
          "mahjong.SHAPES) and the tiles it lacks (rows 5-7: 1, 2, 3 and more), 4-24 its fans (row f: "
          "mahjong.FANS[f]); 25-26 all shapes in reach, 27-47 all fans in reach.");
}

}  // namespace

const std::vector<Block>& encoder_blocks() {
  using enum Block::Of;
  static const std::vector<Block> blocks = {
      Block("tiles", {kTilePlanes, 4, kKinds}, 1, view,
            "Planes 4 x 34. 0 own hand; 1-4 melds by seat (hidden kongs absent); 5-8 discards by seat; 9 all "
            "that lies open; 10 unseen; 11 drawn tile (row 0); 12 tile to claim (row 0); one full row of "
            "four each: 13 own seat, 14 prevalent wind, 15 dealer, 16 turn/discard/claims/robbing, 17 who "
            "acts. Seats: self, next, opposite, previous."),
      Block("order", {kSeats, kOrderLength, kKinds}, 1, view,
            "The last 24 discards of each seat, newest first, one-hot; seats from self on."),
      Block("numbers", {kScalars}, 1, view,
            "By seat from self on: 0-3 standing tiles / 14, 4-7 tiles left to draw / all, 13-16 melds / 4, "
            "17-20 concealed kongs / 4, 21-24 flowers / 8, 25-28 discards / 24. 8-12 one-hot tiles needed (0 "
            ".. 4 and more), 29-32 one-hot phase turn, discard, claims, other; 33 unseen copies of the tiles "
            "that lower the shanten / 34."),
      Block("integers", {kIntegerPlanes, 4, kKinds}, 1, view,
            "Planes 4 x 34 of which one full row in so many is 1, by row: 0-23 own tiles left to draw (of "
            "a shared wall a quarter); 24-43 melds, 5 places by seat from self on; 44-51 tiles needed for "
            "any complete hand, 7 and more in the last."),
      look_ahead_block(1),
      look_ahead_block(2),
      look_ahead_block(3),
      look_ahead_block(4),
      Block("action", {kActionFloats}, 1, action,
            "One-hot move (pass, hu, play, chi, peng, gang, angang, bugang), then one-hot tile (of a chow "
            "the middle one)."),
      Block("prospect", {kProspectFloats}, 1, action,
            "What the hand can win after the action, one draw further ahead than the nearest win: 0 log(1 "
            "+ worth) / 6, worth in points of score (chance times payment, over all hands); 1 worth "
            "against that of the best action that does not win; 2 chance; 3-9 one-hot tiles that the best "
            "hand lacks (0 .. 6 and more); 10 its points / 24, at most 2; 11-15 one-hot its shape; 16 "
            "points that the discard is expected to lose / 4, at most 4; 17 worth less that loss, against "
            "the best. Of a claim, by the best discard after it."),
      Block("appraisal", {kProspectFloats}, 1, action,
            "As prospect, by the acceptance-weighted look-ahead: kinds come at their own rates, and worths "
            "are pooled."),
      Block("hidden", {kSeats + 1, 4, kKinds}, 1, oracle,
            "Planes 4 x 34: hands of next, opposite, previous; what is left in the wall (at most 4 a "
            "kind); the next tile of each seat's wall, row by seat from self on."),
  };
  return blocks;
}

void encode_view(const View& view, int block, float* out) {
  if (block >= kLookAhead) return encode_look_ahead(view, block - kLookAhead + 1, out);
  std::fill_n(out, encoder_blocks()[at(block)].size(), 0.0f);
  if (block == kTiles) encode_tiles(view, out);
  if (block == kOrder) encode_order(view, out);
  if (block == kNumbers) encode_numbers(view, out);
  if (block == kIntegers) encode_integers(view, out);
}

void encode_actions(const View& view, int block, std::span<const Action> actions, float* out) {
  if (block == kProspect) return encode_prospects(view, Appraisal::plain, actions, out);
  if (block == kAppraisal) return encode_prospects(view, Appraisal::acceptance_weighted, actions, out);
  std::fill_n(out, actions.size() * kActionFloats, 0.0f);
  for (const auto action : actions) {
    const auto [move, tile] = parts(action);
    out[static_cast<int>(move)] = 1.0f;
    if (tile != kHidden) out[8 + tile] = 1.0f;
    out += kActionFloats;
  }
}

void encode_oracle(const State& state, Seat seat, int, float* out) {
  std::fill_n(out, (kSeats + 1) * kPlane, 0.0f);
  Counts wall{};
  for (int i = 0; i < kSeats; ++i) {
    const int s = (seat + i) % kSeats;
    if (i > 0) tile_set(state.hand(s), out + (i - 1) * kPlane);
    const auto left = state.wall().left(s);
    if (!left.empty() && left[0] < kKinds) out[4 * kPlane + i * kKinds + left[0]] = 1.0f;
    if (state.rules().wall == WallModel::shared && i > 0) continue;
    for (const auto t : left)
      if (t < kKinds) ++wall[t];
  }
  tile_set(wall, out + 3 * kPlane);
}

}  // namespace bothost::mahjong
