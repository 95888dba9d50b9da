// What everybody sees: the part that a State and a View share.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "mahjong/event.h"
#include "mahjong/fan.h"
#include "mahjong/rules.h"

namespace bothost::mahjong {

enum class Phase : std::uint8_t {
  start,    // before the deal
  dealing,  // dealt; dealt flowers are being replaced, then seat 0 draws
  drawing,  // the actor has yet to draw
  turn,     // the actor has drawn: discard, kong or win
  discard,  // the actor has claimed a chow or a pung and must discard
  claims,   // the others may claim the actor's discard
  robbing,  // the others may win by the tile of the actor's added kong
  over,
};

inline constexpr std::array<std::string_view, 8> kPhaseNames = {"start",   "dealing", "drawing", "turn",
                                                                "discard", "claims",  "robbing", "over"};

/// A meld on the table. The tile of another seat's concealed kong is kHidden.
struct TableMeld {
  Meld::Kind kind = Meld::chow;
  bool concealed = false;
  Tile tile = 0;     // of a chow the middle one
  Tile claimed = 0;  // the discard that it was made with; kHidden for a concealed kong
  bool operator==(const TableMeld&) const = default;
};

/// One thing that happened, in a byte each. `tile`: of an answer the action.
struct LogEntry {
  Event::Kind kind = Event::Kind::deal;
  Seat seat = 0;
  std::uint8_t tile = 0;
  bool operator==(const LogEntry&) const = default;
};

/// The entry as a seat sees it: the tiles of others' draws and concealed kongs are hidden.
inline LogEntry seen_by(Seat to, LogEntry entry) {
  const bool secret = entry.kind == Event::Kind::draw || entry.kind == Event::Kind::angang;
  if (secret && entry.seat != to) entry.tile = kHidden;
  return entry;
}
/// The event of an entry. `from` and `fans`: those of a win.
Event event_of(const LogEntry& entry, Seat from, const FanCounts& fans);

/// Claims and kongs are events of the same names, in the same order.
constexpr int kMoveOfEvent = static_cast<int>(Move::chi) - static_cast<int>(Event::Kind::chi);
constexpr Move move_of(Event::Kind kind) { return static_cast<Move>(static_cast<int>(kind) + kMoveOfEvent); }
constexpr Event::Kind event_of(Move move) {
  return static_cast<Event::Kind>(static_cast<int>(move) - kMoveOfEvent);
}
static_assert(move_of(Event::Kind::bugang) == Move::bugang);

/// The meld that a claim or a concealed kong makes.
constexpr Meld::Kind kind_of(Move move) {
  return move == Move::chi ? Meld::chow : move == Move::peng ? Meld::pung : Meld::kong;
}

/// Everything since the deal, oldest first; unused entries stay zero, so that equal logs are equal as bytes.
struct Log {
  // 92 draws, 16 flowers with their draws, as many discards as draws and claims, 16 melds, 2 answers to most
  // of them.
  static constexpr int kMost = 512;
  std::array<LogEntry, kMost> list{};
  int size = 0;
  void add(LogEntry e) {
    if (size == kMost) throw InvalidInput("more events than a hand can have");
    list[at(size++)] = e;
  }
  std::span<const LogEntry> entries() const { return {list.data(), at(size)}; }
  /// The newest; there must be one.
  const LogEntry& last() const { return list[at(size - 1)]; }
  bool operator==(const Log& o) const;
};

struct Table {
  std::uint8_t wind = 0;
  Phase phase = Phase::start;
  Seat actor = kNobody;
  /// The last discard or tile of an added kong.
  Tile last_tile = kHidden;
  /// The next draw (in drawing), or the last one (in turn), replaces a kong.
  bool after_kong = false;
  /// Flowers laid down in dealing that have not been replaced yet.
  BySeat<std::uint8_t> owed{};
  /// Standing tiles of each seat.
  BySeat<std::uint8_t> hand_size{};
  BySeat<std::uint8_t> flowers{};
  /// Tiles left to draw: each seat's own, or all in [0] of a shared wall.
  BySeat<std::uint8_t> wall_left{};
  BySeat<std::uint8_t> num_melds{};
  BySeat<std::array<TableMeld, 4>> melds{};
  /// Copies of each kind in discards and open melds.
  Counts shown{};
  bool operator==(const Table&) const = default;

  /// Whether the actor has to discard, or may do so.
  bool discards() const { return phase == Phase::turn || phase == Phase::discard; }
  /// Whether the others may answer what the actor did.
  bool asks_others() const { return phase == Phase::claims || phase == Phase::robbing; }
  int left_for(const Rules& rules, int seat) const {
    return wall_left[rules.wall == WallModel::shared ? 0 : at(seat)];
  }
  /// No tile is left for the seat after the actor: the last tile in the official judge's sense.
  bool last_round(const Rules& rules) const { return left_for(rules, next_seat(actor)) == 0; }
  std::span<const TableMeld> melds_of(int seat) const {
    return {melds[at(seat)].data(), num_melds[at(seat)]};
  }

  // The transitions. The caller has checked that they are legal.
  void begin(const Rules& rules, std::uint8_t prevalent);
  void follow(const Rules& rules, const LogEntry& entry);

 private:
  void draw(const Rules& rules, Seat seat);
  void lay_flower(Seat seat);
  void play(Seat seat, Tile tile);
  void claim(Seat seat, Move move, Tile tile);
  void angang(Seat seat, Tile tile);
  void bugang(Seat seat, Tile tile);
  void add_meld(Seat seat, TableMeld meld) { melds[at(seat)][num_melds[at(seat)]++] = meld; }
};

/// What one seat knows of a position, without its past.
struct Snapshot {
  Table table;
  Counts hand{};
  Tile drawn = kHidden;
  std::uint32_t seq = 0;
  /// Discards known of each seat, oldest first, with those that were claimed.
  BySeat<std::vector<Tile>> discards;
  bool operator==(const Snapshot&) const = default;
};

/// Standing tiles and melds of a seat.
struct Holding {
  Counts standing{};
  std::array<Meld, 4> melds{};
  std::size_t num_melds = 0;
  auto operator<=>(const Holding&) const = default;
  std::span<const Meld> on_table() const { return {melds.data(), num_melds}; }
};
/// `standing` beside the melds of a seat. A view must not ask for another seat's hidden ones.
Holding holding_of(const Counts& standing, std::span<const TableMeld> melds);

/// How `seat` would win now: with the tile it has just drawn, or with the last tile of another seat.
WinContext win_context(const Rules& rules, const Table& table, Seat seat, Tile drawn);
/// Fans of the standing tiles (without the tile of another seat); empty when they are not complete.
std::optional<FanResult> win_fans(const Rules& rules, const Table& table, Seat seat, const Counts& hand,
                                  Tile drawn);

/// Legal actions of `seat` with these standing tiles, ascending; as if it had not answered yet.
void legal_actions(const Rules& rules, const Table& table, Seat seat, const Counts& hand, Tile drawn,
                   ActionList& out);
bool has_claim(const Rules& rules, const Table& table, Seat seat, const Counts& hand);

/// Standing tiles that an action takes out of the hand of its seat, at most four; the claimed tile is not
/// among them.
struct Outgoing {
  std::array<Tile, 4> tiles{};
  int size = 0;
  const Tile* begin() const { return tiles.data(); }
  const Tile* end() const { return tiles.data() + size; }
};
Outgoing outgoing(Move move, Tile tile, Tile claimed);

}  // namespace bothost::mahjong
