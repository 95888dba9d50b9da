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
  const auto& values = list->array(key);
  require(values.size() == kSeats, "a list has one entry per seat");
  for (std::size_t s = 0; s < kSeats; ++s) out[s] = static_cast<std::uint8_t>(values[s].integer(key, 0, 144));
  return true;
}

std::size_t meld_name(const TableMeld& m) {
  return m.kind == Meld::chow ? 0 : m.kind == Meld::pung ? 1 : m.concealed ? 3 : 2;
}

TableMeld meld_of(int name, Tile tile, Tile claimed) {
  const auto kind = name == 0 ? Meld::chow : name == 1 ? Meld::pung : Meld::kong;
  return {kind, name == 3, tile, claimed};
}

void write_counts(const Counts& c, ByteWriter& out) {
  for (const auto n : c) out.u8(n);
}
Counts read_counts(ByteReader& in) {
  Counts c;
  for (auto& n : c) n = in.u8();
  return c;
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
  View v(rules, static_cast<Seat>(json.at("seat").integer("seat", 0, kSeats - 1)));
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
  if (const auto* v = json.known("seq")) b.seq = static_cast<std::uint32_t>(v->integer("seq", 0, 1'000'000));
  t.wind = static_cast<std::uint8_t>(rules.prevalent_wind % 4);
  if (const auto* v = json.known("prevalent_wind"))
    t.wind = static_cast<std::uint8_t>(v->one_of("prevalent_wind", kWindNames));
  t.phase = static_cast<Phase>(json.at("phase").one_of("phase", kPhaseNames));
  if (const auto* v = json.known("actor")) t.actor = static_cast<Seat>(v->integer("actor", 0, kSeats - 1));
  t.last_tile = tile_from(json.known("last_tile"));
  if (const auto* v = json.known("after_kong")) t.after_kong = v->boolean("after_kong");
  b.drawn = tile_from(json.known("drawn"));
  for (const auto& word : json.at("hand").array("hand")) {
    const Tile tile = parse_tile(word.text("a tile"));
    require(++b.hand[tile] <= 4, "a kind of tile is held more than four times");
    if (t.phase == Phase::turn && t.actor == seat && !json.known("drawn")) b.drawn = tile;
  }
  if (const auto* v = json.known("melds")) {
    require(v->array("melds").size() == kSeats, "a list has one entry per seat");
    for (int s = 0; s < kSeats; ++s)
      for (const auto& m : v->array("melds")[at(s)].array("melds")) {
        require(t.num_melds[at(s)] < 4, "a seat has at most four melds");
        const int name = m.at("kind").one_of("kind", kMeldNames);
        t.melds[at(s)][t.num_melds[at(s)]++] =
            meld_of(name, tile_from(m.find("tile")), tile_from(m.find("claimed")));
      }
  }
  if (const auto* v = json.known("discards")) {
    require(v->array("discards").size() == kSeats, "a list has one entry per seat");
    for (int s = 0; s < kSeats; ++s)
      for (const auto& word : v->array("discards")[at(s)].array("discards"))
        b.discards[at(s)].push_back(parse_tile(word.text("a tile")));
  }
  read_numbers(json, "flowers", t.flowers);
  if (!read_numbers(json, "hand_sizes", t.hand_size))
    for (int s = 0; s < kSeats; ++s)
      t.hand_size[at(s)] =
          static_cast<std::uint8_t>(13 - 3 * t.num_melds[at(s)] +
                                    (s == t.actor && (t.phase == Phase::turn || t.phase == Phase::discard)));
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
      require(is_number(m.tile) && rank_of(m.tile) >= 1 && rank_of(m.tile) <= 7 &&
                  suit_of(m.claimed) == suit_of(m.tile) && m.claimed + 1 >= m.tile && m.claimed <= m.tile + 1,
              "a chow is three tiles in a row");
      for (int k = m.tile - 1; k <= m.tile + 1; ++k) show(k, k != m.claimed);
    }
  }
  return copies;
}

void View::check_snapshot(const Rules& rules, Seat seat, Snapshot& b) {
  auto& t = b.table;
  const bool asks = t.phase == Phase::claims || t.phase == Phase::robbing;
  require(asks || t.phase == Phase::turn || t.phase == Phase::discard || t.phase == Phase::drawing,
          "a snapshot is of a hand under way");
  require(t.wind < 4 && (rules.prevalent_wind == Rules::kDealtWind || rules.prevalent_wind == t.wind),
          "the rules settle another prevalent wind");
  require(t.actor >= 0 && t.actor < kSeats, "a snapshot names the seat that acts");
  require(t.last_tile < kKinds || (!asks && t.last_tile == kHidden), "the last tile is missing");
  int sum = 0, own = 0;
  auto copies = open_tiles(b, seat, sum);
  for (std::size_t s = 0; s < kSeats; ++s) {
    sum += t.hand_size[s] + t.flowers[s] + t.wall_left[s];
    require(t.wall_left[s] == 0 || rules.wall == WallModel::per_seat || s == 0,
            "a shared wall has one number");
    require(rules.flowers ? t.flowers[s] <= kFlowers : t.flowers[s] == 0, "there are no such flowers");
    const bool more = static_cast<int>(s) == t.actor && (t.phase == Phase::turn || t.phase == Phase::discard);
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
  require(std::all_of(copies.begin(), copies.end(), [](int n) { return n <= 4; }),
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

void View::write_snapshot(const Snapshot& b, ByteWriter& out) {
  const auto& t = b.table;
  out.varint(b.seq);
  out.u8(t.wind);
  out.u8(t.phase);
  out.u8(t.actor);
  out.u8(t.last_tile);
  out.u8(t.after_kong);
  write_counts(b.hand, out);
  out.u8(b.drawn);
  for (std::size_t s = 0; s < kSeats; ++s) {
    out.u8(t.hand_size[s]);
    out.u8(t.flowers[s]);
    out.u8(t.wall_left[s]);
    out.u8(t.num_melds[s]);
    for (const auto& m : t.melds_of(static_cast<int>(s))) {
      out.u8(meld_name(m));
      out.u8(m.tile);
      out.u8(m.claimed);
    }
    out.varint(b.discards[s].size());
    for (const auto d : b.discards[s]) out.u8(d);
  }
}

Snapshot View::read_snapshot(ByteReader& in) {
  Snapshot b;
  auto& t = b.table;
  b.seq = static_cast<std::uint32_t>(in.count(1'000'000));
  t.wind = in.u8();
  const auto phase = in.u8();
  require(phase < kPhaseNames.size(), "there is no such phase");
  t.phase = static_cast<Phase>(phase);
  t.actor = static_cast<Seat>(in.u8());
  t.last_tile = in.u8();
  const auto after_kong = in.u8();
  require(after_kong <= 1, "a flag is 0 or 1");
  t.after_kong = after_kong;
  b.hand = read_counts(in);
  for (const int n : b.hand) require(n <= 4, "a kind of tile is held more than four times");
  b.drawn = in.u8();
  for (std::size_t s = 0; s < kSeats; ++s) {
    t.hand_size[s] = in.u8();
    t.flowers[s] = in.u8();
    t.wall_left[s] = in.u8();
    const auto melds = in.u8();
    require(melds <= 4, "a seat has at most four melds");
    for (; t.num_melds[s] < melds; ++t.num_melds[s]) {
      const auto name = in.u8();
      require(name < kMeldNames.size(), "there is no such meld");
      const Tile tile = in.u8();
      t.melds[s][t.num_melds[s]] = meld_of(name, tile, in.u8());
    }
    for (auto n = in.count(144); n > 0; --n) {
      b.discards[s].push_back(in.u8());
      require(b.discards[s].back() < kKinds, "there is no such tile");
    }
  }
  return b;
}

void View::write(ByteWriter& out) const {
  const bool dealt = !base_ && table_.phase != Phase::start;
  out.u8(seat_ | (base_ ? 4 : 0) | (dealt ? 8 : 0) | (reveal_ ? 16 : 0));
  if (base_) write_snapshot(*base_, out);
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
  if (head & 4) v.start_from(rules, read_snapshot(in));
  if (head & 8) {
    Event deal{.kind = Kind::deal, .seat = v.seat_, .wind = in.u8()};
    for (int i = 0; i < kDealt; ++i) deal.tiles.push_back(in.u8());
    v.observe(deal);
  }
  for (auto n = in.count(Log::kMost); n > 0; --n) {
    const auto byte = in.u8();
    Event e{.kind = static_cast<Kind>(byte & 15), .seat = static_cast<Seat>((byte >> 4) - 1)};
    require(e.kind != Kind::deal && e.kind < Kind::reveal, "there is no such event");
    const auto tile = in.u8();
    if (e.kind == Kind::answer)
      e.action = tile;
    else
      e.tile = tile;
    if (e.kind == Kind::hu || e.kind == Kind::false_hu) e.from = v.table_.actor;
    if (e.kind == Kind::hu)
      for (auto k = in.count(kFans); k > 0; --k) {
        const auto fan = in.u8(), times = in.u8();
        require(fan < kFans && times > 0 && times <= 8 &&
                    (e.fans.empty() || e.fans.back().first < static_cast<Fan>(fan)),
                "there is no such fan");
        e.fans.emplace_back(static_cast<Fan>(fan), times);
      }
    v.observe(e);
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
