#include "mahjong/table.h"

#include <algorithm>

#include "mahjong/shape.h"

namespace bothost::mahjong {
namespace {

bool held(const Counts& hand, int tile) { return hand[at(tile)] > 0; }

}  // namespace

Event event_of(const LogEntry& entry, Seat from, const FanCounts& fans) {
  Event e{.kind = entry.kind, .seat = entry.seat};
  if (entry.kind == Event::Kind::answer)
    e.action = entry.tile;
  else
    e.tile = entry.tile;
  if (entry.kind == Event::Kind::hu || entry.kind == Event::Kind::false_hu) {
    e.from = from;
    e.fans = fans;
  }
  return e;
}

bool Log::operator==(const Log& o) const {
  return size == o.size && std::equal(list.begin(), list.begin() + size, o.list.begin());
}

void Table::begin(const Rules& rules, std::uint8_t prevalent) {
  *this = Table{};
  wind = prevalent;
  phase = Phase::dealing;
  actor = 0;
  hand_size.fill(kDealt);
  if (rules.wall == WallModel::shared)
    wall_left[0] = static_cast<std::uint8_t>(rules.num_tiles() - kSeats * kDealt);
  else
    wall_left.fill(static_cast<std::uint8_t>(rules.num_tiles() / kSeats - kDealt));
}

void Table::follow(const Rules& rules, const LogEntry& e) {
  using Kind = Event::Kind;
  switch (e.kind) {
    case Kind::draw: return draw(rules, e.seat);
    case Kind::flower: return lay_flower(e.seat);
    case Kind::play: return play(e.seat, e.tile);
    case Kind::chi:
    case Kind::peng:
    case Kind::gang: return claim(e.seat, move_of(e.kind), e.tile);
    case Kind::angang: return angang(e.seat, e.tile);
    case Kind::bugang: return bugang(e.seat, e.tile);
    case Kind::hu:
    case Kind::false_hu:
    case Kind::exhausted: phase = Phase::over; return;
    case Kind::deal:
    case Kind::answer:
    case Kind::reveal: return;
  }
}

void Table::draw(const Rules& rules, Seat seat) {
  add(wall_left[rules.wall == WallModel::shared ? 0 : at(seat)], -1);
  add(hand_size[at(seat)], 1);
  if (phase == Phase::dealing && owed[at(seat)] > 0) {
    add(owed[at(seat)], -1);
    return;
  }
  if (phase != Phase::drawing) after_kong = phase == Phase::robbing;
  actor = seat;
  phase = Phase::turn;
}

void Table::lay_flower(Seat seat) {
  add(hand_size[at(seat)], -1);
  add(flowers[at(seat)], 1);
  if (phase == Phase::dealing) {
    add(owed[at(seat)], 1);
  } else {
    phase = Phase::drawing;
    after_kong = false;  // the tile that replaces a flower does not replace a kong
  }
}

void Table::play(Seat seat, Tile tile) {
  add(hand_size[at(seat)], -1);
  add(shown[tile], 1);
  last_tile = tile;
  phase = Phase::claims;
}

void Table::claim(Seat seat, Move move, Tile tile) {
  const auto out = outgoing(move, tile, last_tile);
  for (const auto t : out) add(shown[t], 1);
  add(hand_size[at(seat)], -out.size);
  add_meld(seat, {kind_of(move), false, tile, last_tile});
  actor = seat;
  after_kong = move == Move::gang;
  phase = move == Move::gang ? Phase::drawing : Phase::discard;
}

void Table::angang(Seat seat, Tile tile) {
  add(hand_size[at(seat)], -4);
  add_meld(seat, {Meld::kong, true, tile, kHidden});
  after_kong = true;
  phase = Phase::drawing;
}

void Table::bugang(Seat seat, Tile tile) {
  add(hand_size[at(seat)], -1);
  add(shown[tile], 1);
  for (auto& m : melds[at(seat)])
    if (m.kind == Meld::pung && m.tile == tile) m.kind = Meld::kong;
  last_tile = tile;
  phase = Phase::robbing;
}

Outgoing outgoing(Move move, Tile tile, Tile claimed) {
  /// By moves; of a chow those that are not the claimed one.
  constexpr std::array<int, 8> kCopies = {0, 0, 1, 0, 2, 3, 4, 1};
  Outgoing out;
  for (int n = kCopies[at(move)]; n > 0; --n) out.tiles[at(out.size++)] = tile;
  for (int t = tile - 1; move == Move::chi && t <= tile + 1; ++t)
    if (t != claimed) out.tiles[at(out.size++)] = static_cast<Tile>(t);
  return out;
}

Holding holding_of(const Counts& standing, std::span<const TableMeld> melds) {
  Holding h{standing};
  for (const auto& m : melds) h.melds[h.num_melds++] = {m.kind, m.tile, m.concealed};
  return h;
}

WinContext win_context(const Rules& rules, const Table& table, Seat seat, Tile drawn) {
  WinContext win;
  win.self_drawn = table.phase == Phase::turn;
  win.win_tile = win.self_drawn ? drawn : table.last_tile;
  // The winning discard lies open too, but it is not one of the other three.
  win.fourth_tile = table.shown[win.win_tile] == (table.phase == Phase::claims ? 4 : 3);
  win.kong = win.self_drawn ? table.after_kong : table.phase == Phase::robbing;
  win.wall_last = table.last_round(rules);
  win.seat_wind = static_cast<std::uint8_t>(seat);
  win.prevalent_wind = table.wind;
  win.flowers = table.flowers[at(seat)];
  return win;
}

std::optional<FanResult> win_fans(const Rules& rules, const Table& table, Seat seat, const Counts& hand,
                                  Tile drawn) {
  Counts standing = hand;
  const auto win = win_context(rules, table, seat, drawn);
  if (!win.self_drawn && ++standing[win.win_tile] > 4) return {};
  const auto on_table = table.melds_of(seat);
  if (needed_tiles(standing, static_cast<int>(on_table.size())) > 0) return {};
  return calculate_fans(standing, holding_of(standing, on_table).on_table(), win);
}

namespace {

/// Whether the rules let `seat` declare a win now.
bool may_win(const Rules& rules, const Table& table, Seat seat, const Counts& hand, Tile drawn) {
  const auto fans = win_fans(rules, table, seat, hand, drawn);
  return fans && (rules.false_win || fans->points >= rules.minimum);
}

void own_turn(const Rules& rules, const Table& table, Seat seat, const Counts& hand, Tile drawn,
              ActionList& out) {
  if (drawn >= kKinds) return;  // a flower, to be laid down first; or a draw that the view does not know
  if (may_win(rules, table, seat, hand, drawn)) out.push_back(kHu);
  for (int t = 0; t < kKinds; ++t)
    if (held(hand, t)) out.push_back(kPlay + t);
  if (table.last_round(rules) || table.left_for(rules, seat) == 0) return;
  for (int t = 0; t < kKinds; ++t)
    if (hand[at(t)] == 4) out.push_back(kAngang + t);
  const auto first = out.size();
  for (const auto& m : table.melds_of(seat))
    if (m.kind == Meld::pung && held(hand, m.tile)) out.push_back(kBugang + m.tile);
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
}

/// Chow, pung and kong of the discard; `found` is called with each and says whether to continue.
template <class Found>
void claims(const Rules& rules, const Table& table, Seat seat, const Counts& hand, Found found) {
  if (table.last_round(rules)) return;
  const int t = table.last_tile;
  if (seat == next_seat(table.actor) && is_number(t)) {
    for (int middle = t - 1; middle <= t + 1; ++middle) {
      if (!is_middle(middle) || suit_of(middle) != suit_of(t)) continue;
      const auto need = outgoing(Move::chi, static_cast<Tile>(middle), static_cast<Tile>(t));
      if (held(hand, need.tiles[0]) && held(hand, need.tiles[1]) && !found(chi_action(middle))) return;
    }
  }
  if (hand[at(t)] >= 2 && !found(kPeng + t)) return;
  if (hand[at(t)] == 3 && table.left_for(rules, seat) > 0) found(kGang + t);
}

}  // namespace

bool has_claim(const Rules& rules, const Table& table, Seat seat, const Counts& hand) {
  bool any = false;
  if (table.phase == Phase::claims) claims(rules, table, seat, hand, [&](Action) { return !(any = true); });
  return any || may_win(rules, table, seat, hand, kHidden);
}

void legal_actions(const Rules& rules, const Table& table, Seat seat, const Counts& hand, Tile drawn,
                   ActionList& out) {
  if (table.phase == Phase::turn && seat == table.actor) {
    own_turn(rules, table, seat, hand, drawn, out);
  } else if (table.phase == Phase::discard && seat == table.actor) {
    for (int t = 0; t < kKinds; ++t)
      if (held(hand, t)) out.push_back(kPlay + t);
  } else if (table.asks_others() && seat != table.actor && has_claim(rules, table, seat, hand)) {
    out.push_back(kPass);
    if (may_win(rules, table, seat, hand, kHidden)) out.push_back(kHu);
    if (table.phase == Phase::claims)
      claims(rules, table, seat, hand, [&](Action a) {
        out.push_back(a);
        return true;
      });
  }
}

}  // namespace bothost::mahjong
