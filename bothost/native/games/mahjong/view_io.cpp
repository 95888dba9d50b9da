// Views as bytes and as JSON.
//
// A view is the fold of its events, so bytes and JSON carry these events, and reading folds them again: what
// could not have happened is refused by the same checks as in live play. A view that began with a snapshot
// carries that too.
#include <algorithm>

#include "mahjong/view.h"

namespace bothost::mahjong {
namespace {

using Kind = Event::Kind;

constexpr std::array<std::string_view, 4> kMeldNames = {"chi", "peng", "gang", "angang"};

Json tile_json(Tile t) { return t == kHidden ? Json() : Json(tile_name(t)); }
Tile tile_from(const Json* json, bool flowers = false) {
  return !json || json->is_null() ? kHidden : parse_tile(json->text("a tile"), flowers);
}

JsonArray hand_json(const Counts& hand) {
  JsonArray out;
  for (int t = 0; t < kKinds; ++t) out.insert(out.end(), hand[at(t)], Json(tile_name(t)));
  return out;
}

template <class Number>
JsonArray numbers(const BySeat<Number>& values) {
  return JsonArray(values.begin(), values.end());
}

/// A list of one number per seat; false where it is absent.
bool read_numbers(const Json& json, std::string_view key, BySeat<std::uint8_t>& out) {
  const Json* list = json.find(key);
  if (!list) return false;
  const auto& values = list->array(key, kSeats);
  for (std::size_t s = 0; s < kSeats; ++s) out[s] = values[s].integer<std::uint8_t>(key, 0, 144);
  return true;
}

/// Calls f(seat, entry) for each entry of a list per seat, if there is one.
template <class F>
void each_by_seat(const Json& json, std::string_view key, F f) {
  if (const Json* lists = json.known(key))
    for (std::size_t s = 0; s < kSeats; ++s)
      for (const Json& entry : lists->array(key, kSeats)[s].array(key)) f(s, entry);
}

std::size_t meld_name(const TableMeld& m) {
  return m.kind == Meld::chow ? 0 : m.kind == Meld::pung ? 1 : m.concealed ? 3 : 2;
}

TableMeld meld_of(int name, Tile tile, Tile claimed) {
  const auto kind = name == 0 ? Meld::chow : name == 1 ? Meld::pung : Meld::kong;
  return {kind, name == 3, tile, claimed};
}

void transfer(ByteWriter& out, Seat seat) { out.u8(seat); }
void transfer(ByteReader& in, Seat& seat) { seat = static_cast<Seat>(in.u8()); }

void transfer(ByteWriter& out, const TableMeld& m) {
  out.u8(meld_name(m));
  out.u8(m.tile);
  out.u8(m.claimed);
}
void transfer(ByteReader& in, TableMeld& m) {
  const auto name = in.count(kMeldNames.size() - 1);
  const Tile tile = in.u8();
  m = meld_of(static_cast<int>(name), tile, in.u8());
}

void transfer(ByteWriter& out, const std::vector<Tile>& tiles) {
  out.varint(tiles.size());
  for (const auto t : tiles) out.u8(t);
}
void transfer(ByteReader& in, std::vector<Tile>& tiles) {
  tiles.resize(in.count(144));
  for (auto& t : tiles) in.number(t, kKinds - 1);
}

/// Writes or reads.
template <class Io, class Snapshot>
void transfer_snapshot(Io& io, Snapshot& b) {
  auto& t = b.table;
  io.number(b.seq, 1'000'000);
  io.number(t.wind, 3);
  io.number(t.phase, kPhaseNames.size() - 1);
  transfer(io, t.actor);
  io.number(t.last_tile, kHidden);
  io.number(t.after_kong, 1);
  for (auto& copies : b.hand) io.number(copies, 4);
  io.number(b.drawn, kHidden);
  for (std::size_t s = 0; s < kSeats; ++s) {
    io.number(t.hand_size[s], 14);
    io.number(t.flowers[s], kFlowers);
    io.number(t.wall_left[s], 127);
    io.number(t.num_melds[s], 4);
    for (std::size_t m = 0; m < t.num_melds[s]; ++m) transfer(io, t.melds[s][m]);
    transfer(io, b.discards[s]);
  }
}

}  // namespace

Snapshot View::now() const {
  Snapshot b{table_, hand_, drawn_, seq_, {}};
  for (int s = 0; s < kSeats; ++s) b.discards[at(s)] = discards(s);
  return b;
}

Json View::snapshot_json(const Snapshot& b) {
  const auto& t = b.table;
  JsonArray melds, discards;
  for (int s = 0; s < kSeats; ++s) {
    JsonArray list, tiles;
    for (const auto& m : t.melds_of(s))
      list.push_back(JsonObject{{"kind", kMeldNames[meld_name(m)]},
                                {"tile", tile_json(m.tile)},
                                {"claimed", tile_json(m.claimed)}});
    for (const auto d : b.discards[at(s)]) tiles.emplace_back(tile_name(d));
    melds.emplace_back(std::move(list));
    discards.emplace_back(std::move(tiles));
  }
  return JsonObject{{"seq", b.seq},
                    {"prevalent_wind", kWindNames[t.wind]},
                    {"phase", kPhaseNames[at(t.phase)]},
                    {"actor", t.actor == kNobody ? Json() : Json(t.actor)},
                    {"hand", hand_json(b.hand)},
                    {"drawn", tile_json(b.drawn)},
                    {"last_tile", tile_json(t.last_tile)},
                    {"after_kong", t.after_kong},
                    {"hand_sizes", numbers(t.hand_size)},
                    {"flowers", numbers(t.flowers)},
                    {"wall_left", numbers(t.wall_left)},
                    {"melds", std::move(melds)},
                    {"discards", std::move(discards)}};
}

Json View::to_json() const {
  JsonObject out{{"seat", seat_}};
  const Json summary = snapshot_json(now());
  for (const auto& member : summary.object("view")) out.push_back(member);
  if (base_) out.emplace_back("base", snapshot_json(*base_));
  JsonArray events;
  if (!base_ && table_.phase != Phase::start) {
    Event deal{.kind = Kind::deal, .seat = seat_, .wind = table_.wind};
    deal.tiles.assign(dealt_.begin(), dealt_.end());
    events.emplace_back(deal.text());
  }
  for (const auto& e : log_.entries()) events.emplace_back(event_of(e, result_.from, fans_).text());
  if (reveal_) events.emplace_back(reveal_->text());
  out.emplace_back("events", std::move(events));
  return out;
}

View View::from_snapshot(const Rules& rules, const Json& json) {
  View v(rules, json.at("seat").integer<Seat>("seat", 0, kSeats - 1));
  if (const Json* events = json.find("events")) {
    if (const Json* base = json.find("base")) v.start_from(rules, snapshot_from_json(rules, v.seat_, *base));
    for (const auto& e : events->array("events")) v.observe(Event::parse(rules, e.text("an event")));
    require(v.to_json() == json, "the view does not follow from its events");
    return v;
  }
  JsonObject rest;
  for (const auto& member : json.object("snapshot"))
    if (member.first != "seat") rest.push_back(member);
  v.start_from(rules, snapshot_from_json(rules, v.seat_, rest));
  return v;
}

Snapshot View::snapshot_from_json(const Rules& rules, Seat seat, const Json& json) {
  json.only("a snapshot", {"seq", "prevalent_wind", "phase", "actor", "hand", "drawn", "last_tile",
                           "after_kong", "hand_sizes", "flowers", "wall_left", "melds", "discards"});
  Snapshot b;
  auto& t = b.table;
  json.read("seq", b.seq, 0, 1'000'000);
  t.wind = static_cast<std::uint8_t>(rules.prevalent_wind % 4);
  if (const auto* v = json.known("prevalent_wind"))
    t.wind = v->one_of<std::uint8_t>("prevalent_wind", kWindNames);
  t.phase = json.at("phase").one_of<Phase>("phase", kPhaseNames);
  json.read("actor", t.actor, 0, kSeats - 1);
  t.last_tile = tile_from(json.known("last_tile"));
  if (const auto* v = json.known("after_kong")) t.after_kong = v->boolean("after_kong");
  b.drawn = tile_from(json.known("drawn"));
  for (const auto& word : json.at("hand").array("hand")) {
    const Tile tile = parse_tile(word.text("a tile"));
    require(++b.hand[tile] <= 4, "a kind of tile is held more than four times");
    if (t.phase == Phase::turn && t.actor == seat && !json.known("drawn")) b.drawn = tile;
  }
  each_by_seat(json, "melds", [&](std::size_t s, const Json& m) {
    require(t.num_melds[s] < 4, "a seat has at most four melds");
    const int name = m.at("kind").one_of("kind", kMeldNames);
    t.melds[s][t.num_melds[s]++] = meld_of(name, tile_from(m.find("tile")), tile_from(m.find("claimed")));
  });
  each_by_seat(json, "discards", [&](std::size_t s, const Json& word) {
    b.discards[s].push_back(parse_tile(word.text("a tile")));
  });
  read_numbers(json, "flowers", t.flowers);
  if (!read_numbers(json, "hand_sizes", t.hand_size))
    for (int s = 0; s < kSeats; ++s)
      t.hand_size[at(s)] =
          static_cast<std::uint8_t>(13 - 3 * t.num_melds[at(s)] + (s == t.actor && t.discards()));
  if (!read_numbers(json, "wall_left", t.wall_left)) {
    // What is neither held nor seen is still in the wall.
    int left = rules.num_tiles();
    for (int s = 0; s < kSeats; ++s) {
      left -= t.hand_size[at(s)] + t.flowers[at(s)] + static_cast<int>(b.discards[at(s)].size());
      for (const auto& m : t.melds_of(s)) left -= (m.kind == Meld::kong ? 4 : 3) - (m.claimed != kHidden);
    }
    require(left >= 0, "there are more tiles than the set has");
    if (rules.wall == WallModel::shared) {
      t.wall_left[0] = static_cast<std::uint8_t>(left);
    } else {
      for (int i = 0; i < kSeats; ++i)
        t.wall_left[at((std::max<int>(t.actor, 0) + 1 + i) % kSeats)] =
            static_cast<std::uint8_t>((left + 3 - i) / 4);
    }
  }
  return b;
}

/// What lies open in a snapshot, kind by kind; refuses melds that cannot be. Adds to `sum` the tiles that are
/// neither in a hand nor in the wall.
static std::array<int, kKinds> open_tiles(const Snapshot& b, Seat seat, int& sum) {
  std::array<int, kKinds> copies{};
  const auto show = [&](int tile, int n) { copies[at(tile)] += n; };
  for (int s = 0; s < kSeats; ++s) {
    for (const auto d : b.discards[at(s)]) show(d, 1), ++sum;
    for (const auto& m : b.table.melds_of(s)) {
      const bool hidden = m.concealed && s != seat;
      require(hidden ? m.tile == kHidden : m.tile < kKinds, "only another seat's concealed kong is hidden");
      require(m.concealed == (m.claimed == kHidden) && (m.concealed || m.claimed < kKinds),
              "a meld claims a discard");
      sum += m.kind == Meld::kong ? 4 : 3;
      if (m.concealed) continue;
      --sum;  // the claimed tile is among the discards
      if (m.kind != Meld::chow) {
        require(m.claimed == m.tile, "a meld claims a discard");
        show(m.tile, m.kind == Meld::kong ? 3 : 2);
        continue;
      }
      require(is_middle(m.tile) && in_chow(m.claimed, m.tile), "a chow is three tiles in a row");
      for (int k = m.tile - 1; k <= m.tile + 1; ++k) show(k, k != m.claimed);
    }
  }
  return copies;
}

void View::check_snapshot(const Rules& rules, Seat seat, Snapshot& b) {
  auto& t = b.table;
  const bool asks = t.asks_others();
  require(asks || t.discards() || t.phase == Phase::drawing, "a snapshot is of a hand under way");
  require(rules.allows_wind(t.wind), "the rules allow no such prevalent wind");
  require(t.actor >= 0 && t.actor < kSeats, "a snapshot names the seat that acts");
  require(t.last_tile < kKinds || (!asks && t.last_tile == kHidden), "the last tile is missing");
  int sum = 0, own = 0;
  auto copies = open_tiles(b, seat, sum);
  for (std::size_t s = 0; s < kSeats; ++s) {
    sum += t.hand_size[s] + t.flowers[s] + t.wall_left[s];
    require(t.wall_left[s] == 0 || rules.wall == WallModel::per_seat || s == 0,
            "a shared wall has one number");
    require(rules.flowers ? t.flowers[s] <= kFlowers : t.flowers[s] == 0, "there are no such flowers");
    const bool more = static_cast<int>(s) == t.actor && t.discards();
    require(t.hand_size[s] + 3 * t.num_melds[s] == 13 + more, "a seat holds too many tiles or too few");
  }
  for (std::size_t k = 0; k < kKinds; ++k) {
    require(copies[k] <= 4, "more copies of a tile are seen than there are");
    t.shown[k] = static_cast<std::uint8_t>(copies[k]);
    own += b.hand[k];
    copies[k] += b.hand[k];
  }
  for (const auto& m : t.melds_of(seat))
    if (m.concealed) copies[m.tile] += 4;
  require(std::ranges::all_of(copies, [](int n) { return n <= 4; }),
          "more copies of a tile are seen than there are");
  require(own == t.hand_size[at(seat)], "the own hand has another size");
  require(sum <= rules.num_tiles(), "there are more tiles than the set has");
  const bool drew = t.phase == Phase::turn && t.actor == seat;
  require(drew ? b.drawn < kKinds && b.hand[b.drawn] > 0 : b.drawn == kHidden,
          "the drawn tile is not in the hand");
  require(!asks || t.shown[t.last_tile] > 0, "the last tile is not among the discards");
}

void View::start_from(const Rules& rules, Snapshot base) {
  check_snapshot(rules, seat_, base);
  table_ = base.table;
  hand_ = base.hand;
  drawn_ = base.drawn;
  seq_ = base.seq;
  base_ = std::make_shared<const Snapshot>(std::move(base));
}

void View::write(ByteWriter& out) const {
  const bool dealt = !base_ && table_.phase != Phase::start;
  out.u8(seat_ | (base_ ? 4 : 0) | (dealt ? 8 : 0) | (reveal_ ? 16 : 0));
  if (base_) transfer_snapshot(out, *base_);
  if (dealt) {
    out.u8(table_.wind);
    for (const auto t : dealt_) out.u8(t);
  }
  out.varint(static_cast<std::uint64_t>(log_.size));
  for (const auto& e : log_.entries()) {
    out.u8(static_cast<int>(e.kind) | (e.seat + 1) << 4);
    out.u8(e.tile);
    if (e.kind != Kind::hu) continue;
    out.varint(fans_.size());
    for (const auto& [fan, times] : fans_) {
      out.u8(fan);
      out.u8(times);
    }
  }
  if (!reveal_) return;
  out.u8(reveal_->wind);
  for (const auto t : reveal_->tiles) out.u8(t);
  out.varint(reveal_->actions.size());
  for (const auto& [seat, action] : reveal_->actions) {
    out.u8(seat);
    out.u8(action);
  }
}

View View::read(const Rules& rules, ByteReader& in) {
  const auto head = in.u8();
  require(head < 32 && (head & 12) != 12, "there is no such view");
  View v(rules, static_cast<Seat>(head & 3));
  if (head & 4) {
    Snapshot base;
    transfer_snapshot(in, base);
    v.start_from(rules, std::move(base));
  }
  if (head & 8) {
    Event deal{.kind = Kind::deal, .seat = v.seat_, .wind = in.u8()};
    for (int i = 0; i < kDealt; ++i) deal.tiles.push_back(in.u8());
    v.observe(deal);
  }
  for (auto n = in.count(Log::kMost); n > 0; --n) {
    const auto byte = in.u8();
    const LogEntry entry{static_cast<Kind>(byte & 15), static_cast<Seat>((byte >> 4) - 1), in.u8()};
    require(entry.kind != Kind::deal && entry.kind < Kind::reveal, "there is no such event");
    FanCounts fans;
    if (entry.kind == Kind::hu)
      for (auto k = in.count(kFans); k > 0; --k) {
        const auto fan = in.u8(), times = in.u8();
        require(fan < kFans && times > 0 && times <= 8 &&
                    (fans.empty() || fans.back().first < static_cast<Fan>(fan)),
                "there is no such fan");
        fans.emplace_back(static_cast<Fan>(fan), times);
      }
    v.observe(event_of(entry, v.table_.actor, fans));
  }
  if (head & 16) {
    Event e{.kind = Kind::reveal, .wind = in.u8()};
    for (int i = 0; i < rules.num_tiles(); ++i) e.tiles.push_back(in.u8());
    for (auto n = in.count(Log::kMost); n > 0; --n) {
      const auto seat = in.u8();
      require(seat < kSeats, "there is no such seat");
      e.actions.emplace_back(static_cast<Seat>(seat), in.u8());
    }
    v.observe(e);
  }
  return v;
}

}  // namespace bothost::mahjong
