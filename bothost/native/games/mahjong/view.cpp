#include "mahjong/view.h"

#include <algorithm>

namespace bothost::mahjong {

using Kind = Event::Kind;

bool View::operator==(const View& o) const {
  const bool same_base = base_ && o.base_ ? *base_ == *o.base_ : !base_ == !o.base_;
  return same_base && *rules_ == *o.rules_ && seat_ == o.seat_ && seq_ == o.seq_ && table_ == o.table_ &&
         hand_ == o.hand_ && drawn_ == o.drawn_ && answered_ == o.answered_ && dealt_ == o.dealt_ &&
         log_ == o.log_ && result_ == o.result_ && fans_ == o.fans_ && reveal_ == o.reveal_;
}

bool View::asked() const {
  if (table_.asks_others())
    return table_.actor != seat_ && !answered_ && has_claim(*rules_, table_, seat_, hand_);
  return table_.actor == seat_ &&
         (table_.phase == Phase::discard || (table_.phase == Phase::turn && drawn_ < kKinds));
}

Seat View::to_act() const { return table_.discards() ? table_.actor : kNobody; }

std::string_view View::phase() const { return kPhaseNames[at(table_.phase)]; }

void View::legal(ActionList& out) const {
  if (!answered_) legal_actions(*rules_, table_, seat_, hand_, drawn_, out);
}

Counts View::unseen() const {
  Counts out;
  for (std::size_t t = 0; t < kKinds; ++t) out[t] = static_cast<std::uint8_t>(4 - hand_[t] - table_.shown[t]);
  for (const auto& m : table_.melds_of(seat_))
    if (m.concealed) out[m.tile] = 0;
  return out;
}

std::vector<Tile> View::discards(int seat) const {
  std::vector<Tile> out;
  if (base_) out = base_->discards[at(seat)];
  for (const auto& e : log_.entries())
    if (e.kind == Kind::play && e.seat == seat) out.push_back(e.tile);
  return out;
}

std::optional<Record> View::record() const {
  if (!reveal_) return {};
  return Record{deal_json(reveal_->wind, reveal_->tiles), reveal_->actions};
}

void View::observe(const Event& e) {
  require(e.kind == Kind::exhausted || e.kind == Kind::reveal ? e.seat == kNobody
                                                              : e.seat >= 0 && e.seat < kSeats,
          "the event has no such seat");
  require((e.kind == Kind::deal) == (table_.phase == Phase::start),
          "a hand begins with its deal, and with one only");
  require((e.kind == Kind::reveal) == (table_.phase == Phase::over), "the hand is over");
  switch (e.kind) {
    case Kind::deal: fold_deal(e); break;
    case Kind::draw: fold_draw(e); break;
    case Kind::flower: fold_flower(e); break;
    case Kind::play: fold_play(e); break;
    case Kind::answer: fold_answer(e); break;
    case Kind::chi:
    case Kind::peng:
    case Kind::gang: fold_claim(e); break;
    case Kind::angang:
    case Kind::bugang: fold_own_kong(e); break;
    case Kind::hu:
    case Kind::false_hu:
    case Kind::exhausted: fold_end(e); break;
    case Kind::reveal: fold_reveal(e); break;
  }
  answered_ = e.kind == Kind::answer;
  if (e.kind != Kind::deal && e.kind != Kind::reveal) {
    log_.add({e.kind, e.seat, answered_ ? static_cast<std::uint8_t>(e.action) : e.tile});
    table_.follow(*rules_, log_.last());
  }
  ++seq_;
}

void View::fold_deal(const Event& e) {
  require(e.seat == seat_, "another seat's deal is hidden");
  require(e.tiles.size() == kDealt, "13 tiles are dealt");
  require(rules_->allows_wind(e.wind), "the rules allow no such prevalent wind");
  std::array<std::uint8_t, kKinds + kFlowers> held{};
  for (const auto t : e.tiles) {
    require(t < (rules_->flowers ? held.size() : kKinds), "a tile is dealt that this table has not");
    require(++held[t] <= (is_flower(t) ? 1 : 4), "more copies are dealt than there are");
  }
  std::copy_n(e.tiles.begin(), kDealt, dealt_.begin());
  std::copy_n(held.begin(), kKinds, hand_.begin());
  table_.begin(*rules_, e.wind);
}

void View::fold_draw(const Event& e) {
  const bool dealing = table_.phase == Phase::dealing;
  const bool replaces = dealing && table_.owed[at(e.seat)] > 0;
  const bool first = dealing && e.seat == 0 && std::ranges::all_of(table_.owed, [](int n) { return n == 0; });
  const bool passed =
      (table_.phase == Phase::claims && e.seat == next_seat(table_.actor)) ||
      ((table_.phase == Phase::robbing || table_.phase == Phase::drawing) && e.seat == table_.actor);
  require(replaces || first || passed, "it is not this seat's turn to draw");
  require(table_.left_for(*rules_, e.seat) > 0, "no tile is left to draw");
  require((e.tile != kHidden) == (e.seat == seat_), "a drawn tile is seen by its drawer alone");
  if (e.seat == seat_) {
    require(is_flower(e.tile) ? rules_->flowers : e.tile < kKinds && unseen()[e.tile] > 0,
            "a tile is drawn of which none is left");
    if (!is_flower(e.tile)) ++hand_[e.tile];
  }
  drawn_ = !replaces && e.seat == seat_ ? e.tile : kHidden;
}

void View::fold_flower(const Event& e) {
  require(rules_->flowers && is_flower(e.tile), "this table has no such flower");
  require(table_.phase == Phase::dealing || (table_.phase == Phase::turn && e.seat == table_.actor),
          "no flower can be laid down now");
  int held = static_cast<int>(std::ranges::count(dealt_, e.tile));
  for (const auto& entry : log_.entries()) {
    require(entry.kind != Kind::flower || entry.tile != e.tile, "this flower lies on the table already");
    held += entry.kind == Kind::draw && entry.seat == seat_ && entry.tile == e.tile;
  }
  require(base_ || e.seat != seat_ || held == 1, "this seat does not hold that flower");
  require(table_.flowers[at(e.seat)] < kFlowers, "there are eight flowers");
  if (e.seat == seat_) drawn_ = kHidden;
}

void View::take_out(Move move, Tile tile) {
  for (const auto t : outgoing(move, tile, table_.last_tile)) {
    require(hand_[t] > 0, "this seat does not hold that tile");
    --hand_[t];
  }
}

void View::fold_play(const Event& e) {
  require(table_.discards() && e.seat == table_.actor, "it is not this seat's turn to discard");
  require(e.tile < kKinds, "this cannot be discarded");
  if (e.seat == seat_) {
    require(table_.phase == Phase::discard || drawn_ < kKinds, "a flower is to be laid down first");
    take_out(Move::play, e.tile);
  } else {
    require(unseen()[e.tile] > 0, "a tile is discarded of which none is left");
  }
  drawn_ = kHidden;
}

void View::fold_answer(const Event& e) {
  require(e.seat == seat_, "another seat's answer is hidden");
  require(table_.asks_others(), "nothing is to be answered");
  ActionList list;
  legal(list);
  require(std::ranges::binary_search(list, e.action), "this answer is not legal");
}

void View::fold_claim(const Event& e) {
  const Move move = move_of(e.kind);
  require(table_.phase == Phase::claims && e.seat != table_.actor, "there is no discard to claim");
  require(!table_.last_round(*rules_), "the last tile cannot be claimed");
  require(e.tile < kKinds && table_.num_melds[at(e.seat)] < 4, "this cannot be claimed");
  if (move == Move::chi) {
    require(e.seat == next_seat(table_.actor), "a chow is claimed by the next seat only");
    require(is_middle(e.tile) && in_chow(table_.last_tile, e.tile), "the discard is not in this chow");
  } else {
    require(e.tile == table_.last_tile, "another tile was discarded");
    require(move != Move::gang || table_.left_for(*rules_, e.seat) > 0,
            "no tile is left to replace the kong");
  }
  if (e.seat == seat_) {
    take_out(move, e.tile);
  } else {
    auto left = unseen();
    for (const auto t : outgoing(move, e.tile, table_.last_tile))
      require(left[t]-- > 0, "a claim needs tiles of which too few are left");
  }
}

void View::fold_own_kong(const Event& e) {
  const bool own = e.seat == seat_, concealed = e.kind == Kind::angang;
  require(table_.phase == Phase::turn && e.seat == table_.actor, "it is not this seat's turn");
  require(!table_.last_round(*rules_) && table_.left_for(*rules_, e.seat) > 0,
          "no tile is left to replace the kong");
  if (concealed) {
    require((e.tile != kHidden) == own, "a concealed kong is seen by its owner alone");
    require(!own || (e.tile < kKinds && hand_[e.tile] == 4), "this seat does not hold that kong");
    require(table_.num_melds[at(e.seat)] < 4 && table_.hand_size[at(e.seat)] >= 5, "this seat holds no kong");
    const auto left = unseen();
    require(own || std::ranges::count(left, 4) > 0, "no kong can be hidden any more");
  } else {
    require(e.tile < kKinds, "this cannot be added to a pung");
    const auto melds = table_.melds_of(e.seat);
    require(std::ranges::any_of(melds,
                                [&](const TableMeld& m) { return m.kind == Meld::pung && m.tile == e.tile; }),
            "this seat has no such pung");
    require(own || unseen()[e.tile] > 0, "a tile is added of which none is left");
  }
  if (own) take_out(move_of(e.kind), e.tile);
  drawn_ = kHidden;
}

void View::fold_end(const Event& e) {
  const bool claimed = table_.asks_others();
  if (e.kind == Kind::exhausted) {
    require(claimed || table_.phase == Phase::drawing, "a seat must act before the hand can end");
    const Seat drawer = table_.phase == Phase::claims ? next_seat(table_.actor) : table_.actor;
    require(table_.left_for(*rules_, drawer) == 0 && e.tile == kHidden, "there are tiles left to draw");
  } else {
    require(table_.phase == Phase::turn ? e.seat == table_.actor : claimed && e.seat != table_.actor,
            "this seat cannot win now");
    require(e.from == table_.actor, "the winning tile came from another seat");
    require(e.tile < kKinds && (claimed ? e.tile == table_.last_tile : e.seat != seat_ || e.tile == drawn_),
            "this is not the winning tile");
    result_ = {e.seat, e.from, e.kind == Kind::false_hu, total_points(e.fans)};
    fans_ = e.fans;
  }
}

void View::fold_reveal(const Event& e) {
  require(!reveal_, "the hand has been revealed already");
  State s(*rules_, e.wind, e.tiles);
  for (const auto& [seat, action] : e.actions) apply_checked(s, seat, action, NoEvents{});
  require(s.terminal(), "the revealed hand does not end");
  if (!base_) {
    // What was revealed must be what we have seen. (A lobby may have left out the answers that it gave for
    // us.)
    const View seen = s.view(seat_);
    require(seen.dealt_ == dealt_ && seen.table_ == table_ && seen.hand_ == hand_ && seen.result_ == result_,
            "the reveal contradicts what was seen");
  }
  reveal_ = e;
}

Event View::own_win() const {
  const auto fans = win_fans(*rules_, table_, seat_, hand_, drawn_);
  const bool ok = fans && fans->points >= rules_->minimum;
  Event e{.kind = ok ? Kind::hu : Kind::false_hu, .seat = seat_};
  e.tile = drawn_;
  e.from = seat_;
  if (ok) e.fans = fan_counts(*fans);
  return e;
}

void View::apply(Action action) {
  const auto [move, tile] = parts(action);
  if (table_.asks_others()) observe({.kind = Kind::answer, .seat = seat_, .action = action});
  if (move == Move::pass) return;
  if (move != Move::hu)
    return observe({.kind = move == Move::play ? Kind::play : event_of(move), .seat = seat_, .tile = tile});
  if (table_.phase == Phase::turn) observe(own_win());
}

}  // namespace bothost::mahjong
