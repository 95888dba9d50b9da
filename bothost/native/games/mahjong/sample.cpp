// Full states that a view allows.
#include <algorithm>
#include <numeric>

#include "mahjong/view.h"

namespace bothost::mahjong {

using Kind = Event::Kind;

/// One way to place the tiles that this seat does not see.
struct View::Hidden {
  BySeat<Counts> hands{};
  /// Tiles of the hidden concealed kongs, in the order of each seat's melds.
  BySeat<std::vector<Tile>> kongs;
  /// What is left to draw, shuffled, and sometimes tiles that were discarded unseen before a snapshot.
  std::vector<Tile> rest;
  /// Any tile of the actor's hand, each equally likely, if the actor is another seat.
  Tile of_actor = kHidden;
};

/// Uniform over the placements of the unseen tiles in the concealed hands, the hidden kongs and the wall.
void View::sample_hands(Rng& rng, Hidden& hidden) const {
  auto left = unseen();
  hidden = Hidden{};
  hidden.hands[at(seat_)] = hand_;
  // A hidden kong is a kind of which all four copies are unseen; each choice leaves equally many placements.
  std::vector<Tile> whole;
  for (int t = 0; t < kKinds; ++t)
    if (left[at(t)] == 4) whole.push_back(static_cast<Tile>(t));
  rng.shuffle(whole.begin(), whole.end());
  for (int s = 0; s < kSeats; ++s)
    for (const auto& m : table_.melds_of(s)) {
      if (!m.concealed || s == seat_) continue;
      if (whole.empty()) throw InvalidInput("no deal fits this view");
      hidden.kongs[at(s)].push_back(whole.back());
      left[whole.back()] = 0;
      whole.pop_back();
    }
  auto& pool = hidden.rest;
  for (int t = 0; t < kKinds; ++t) pool.insert(pool.end(), left[at(t)], static_cast<Tile>(t));
  rng.shuffle(pool.begin(), pool.end());
  for (int s = 0; s < kSeats; ++s) {
    if (s == seat_) continue;
    for (int i = 0; i < table_.hand_size[at(s)]; ++i) {
      if (pool.empty()) throw InvalidInput("no deal fits this view");
      ++hidden.hands[at(s)][pool.back()];
      if (s == table_.actor) hidden.of_actor = pool.back();
      pool.pop_back();
    }
  }
  if (!rules_->flowers) return;
  // A flower never stays in a hand, so the unseen ones are in the wall.
  std::array<bool, kFlowers> seen{};
  int count = 0;
  for (const auto& e : log_.entries())
    if (e.kind == Kind::flower) seen[at(e.tile - kFirstFlower)] = true;
  for (const int n : table_.flowers) count += n;
  for (const bool s : seen) count -= s;
  for (int f = 0; f < kFlowers; ++f)
    if (!seen[at(f)] && count-- <= 0) pool.push_back(static_cast<Tile>(kFirstFlower + f));
  rng.shuffle(pool.begin(), pool.end());
}

/// All that a seat has been dealt and has drawn, in this order: what it holds at the end of this view and
/// what it gave away, placed so that every tile came before it left; uniform over those orders.
std::vector<Tile> View::tiles_drawn(Rng& rng, int seat, const Hidden& hidden) const {
  struct Item {
    Tile tile;
    int time;  // when it left the hand
  };
  std::vector<Item> items;
  std::vector<int> slots(kDealt, -1);  // when each tile came
  std::vector<Tile> tiles(dealt_.begin(), dealt_.end());
  if (seat != seat_) std::ranges::fill(tiles, kHidden);
  // Flowers are laid down in the order of their coming, all that one batch of draws brought before any is
  // replaced.
  std::vector<std::size_t> batch(kDealt);
  std::iota(batch.begin(), batch.end(), std::size_t{0});
  std::vector<Tile> laid;
  const auto place_flowers = [&] {
    if (batch.size() < laid.size()) throw InvalidInput("no deal fits this view");
    rng.shuffle(batch.begin(), batch.end());
    std::sort(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(laid.size()));
    if (seat != seat_)
      for (std::size_t i = 0; i < laid.size(); ++i) tiles[batch[i]] = laid[i];
    laid.clear();
    batch.clear();
  };
  std::size_t owed = 0;
  std::size_t kong = 0;
  Tile last = kHidden;
  for (int time = 0; time < log_.size; ++time) {
    const auto& e = log_.list[at(time)];
    if (e.seat == seat && e.kind == Kind::draw) {
      if (!laid.empty()) {
        owed = laid.size();
        place_flowers();
      }
      if (owed == 0) batch.clear();
      owed -= owed > 0;
      batch.push_back(slots.size());
      slots.push_back(time);
      tiles.push_back(e.tile);
    } else if (e.seat == seat && e.kind == Kind::flower) {
      laid.push_back(e.tile);
    } else if (e.seat == seat && seat != seat_) {
      const bool melds = e.kind >= Kind::chi && e.kind <= Kind::bugang;
      const Move move = e.kind == Kind::play ? Move::play : melds ? move_of(e.kind) : Move::pass;
      const Tile tile = move == Move::angang ? hidden.kongs[at(seat)].at(kong++) : e.tile;
      for (const auto t : outgoing(move, tile, last)) items.push_back({t, time});
    }
    if (e.kind == Kind::play) last = e.tile;
  }
  if (!laid.empty()) place_flowers();
  if (seat == seat_) return tiles;
  // From the last tile that came back to the first: it is one of those that left later or stayed.
  std::vector<Tile> pool;
  for (int t = 0; t < kKinds; ++t)
    pool.insert(pool.end(), hidden.hands[at(seat)][at(t)], static_cast<Tile>(t));
  for (auto i = slots.size(); i-- > 0;) {
    if (tiles[i] != kHidden) continue;
    for (; !items.empty() && items.back().time > slots[i]; items.pop_back())
      pool.push_back(items.back().tile);
    if (pool.empty()) throw InvalidInput("no deal fits this view");
    std::swap(pool[rng.below(static_cast<std::uint32_t>(pool.size()))], pool.back());
    tiles[i] = pool.back();
    pool.pop_back();
  }
  return tiles;
}

State View::sample_from_deal(Rng& rng, const Hidden& hidden) const {
  BySeat<std::vector<Tile>> drawn;
  for (int s = 0; s < kSeats; ++s) drawn[at(s)] = tiles_drawn(rng, s, hidden);
  std::vector<Tile> order, rest = hidden.rest;
  const auto draw_rest = [&](int n) {
    for (; n > 0; --n) {
      if (rest.empty()) throw InvalidInput("no deal fits this view");
      order.push_back(rest.back());
      rest.pop_back();
    }
  };
  std::vector<Tile> wall;
  if (rules_->wall == WallModel::per_seat) {
    for (int s = 0; s < kSeats; ++s) {
      order = drawn[at(s)];
      draw_rest(table_.wall_left[at(s)]);
      wall.insert(wall.end(), order.rbegin(), order.rend());
    }
  } else {
    BySeat<std::size_t> taken;
    taken.fill(kDealt);
    for (const auto& tiles : drawn) order.insert(order.end(), tiles.begin(), tiles.begin() + kDealt);
    for (const auto& e : log_.entries())
      if (e.kind == Kind::draw) order.push_back(drawn[at(e.seat)].at(taken[at(e.seat)]++));
    draw_rest(table_.wall_left[0]);
    wall.assign(order.rbegin(), order.rend());
  }
  return replay(State(*rules_, table_.wind, wall), hidden);
}

/// The public past again, from its beginning; others pass wherever no claim of theirs was seen to go through.
State View::replay(State s, const Hidden& hidden) const {
  const auto apply = [&s](Seat seat, Action action) { apply_checked(s, seat, action, NoEvents{}); };
  std::size_t kong[kSeats] = {};
  for (int i = 0; i < log_.size; ++i) {
    const auto& e = log_.list[at(i)];
    Tile tile = e.tile;
    if (e.kind == Kind::angang && tile == kHidden) tile = hidden.kongs[at(e.seat)].at(kong[e.seat]++);
    if (e.kind == Kind::play) apply(e.seat, kPlay + tile);
    if (e.kind == Kind::angang || e.kind == Kind::bugang) apply(e.seat, action_of(move_of(e.kind), tile));
    if (e.kind != Kind::play && e.kind != Kind::bugang) continue;
    // What came of it: our own answer, then the claim that went through, if the view knows yet.
    Action own = kPass;
    bool own_known = false, settled = false;
    Seat claimer = kNobody;
    Action claim = kPass;
    for (int j = i + 1; j < log_.size && !settled; ++j) {
      const auto& f = log_.list[at(j)];
      if (f.kind == Kind::answer) {
        own = f.tile;
        own_known = true;
        continue;
      }
      settled = true;
      if (f.kind < Kind::chi || f.kind > Kind::gang) continue;
      claim = action_of(move_of(f.kind), f.tile);
      claimer = f.seat;
    }
    for (Seat q = 0; q < kSeats; ++q) {
      if (!(s.pending_ >> q & 1)) continue;
      if (q == seat_ && own_known)
        apply(q, own);
      else if (settled)
        apply(q, q == claimer ? claim : kPass);
    }
  }
  return s;
}

State View::sample_from_snapshot(const Hidden& hidden) const {
  State s(*rules_);
  s.log_ = log_;
  s.table_ = table_;
  s.hands_ = hidden.hands;
  s.drawn_ = drawn_;
  for (int q = 0; q < kSeats; ++q) {
    std::size_t kong = 0;
    for (auto& m : s.table_.melds[at(q)])
      if (m.concealed && m.tile == kHidden) m.tile = hidden.kongs[at(q)].at(kong++);
  }
  // Which of its tiles another seat has just drawn is not known.
  if (table_.phase == Phase::turn && table_.actor != seat_) s.drawn_ = hidden.of_actor;
  s.wall_ = Wall(*rules_, table_.wall_left, hidden.rest);
  if (table_.asks_others()) {
    for (Seat q = 0; q < kSeats; ++q)
      if (q != table_.actor && has_claim(*rules_, table_, q, s.hands_[at(q)])) s.asked_ |= SeatMask{1} << q;
    s.pending_ = s.asked_;
    if (answered_) {
      s.pending_ &= ~(SeatMask{1} << seat_);
      for (const auto& e : log_.entries())
        if (e.kind == Kind::answer) s.answers_[at(seat_)] = e.tile;
    }
  }
  s.seq_[at(seat_)] = seq_;
  BySeat<State::Beginning> beginnings;
  for (Seat q = 0; q < kSeats; ++q) {
    if (q == seat_) {
      beginnings[at(q)] = {base_, 0};
    } else {
      Snapshot seen = s.view(q).now();
      for (int other = 0; other < kSeats; ++other) seen.discards[at(other)] = discards(other);
      beginnings[at(q)] = {std::make_shared<const Snapshot>(std::move(seen)), log_.size};
    }
  }
  s.beginnings_ = std::make_shared<const BySeat<State::Beginning>>(std::move(beginnings));
  if (table_.phase == Phase::drawing) s.next_turn(table_.actor);
  return s;
}

State View::sample(Rng& rng) const {
  if (table_.phase == Phase::start) return State(*rules_, rng);
  if (reveal_) {
    State s(*rules_, reveal_->wind, reveal_->tiles);
    for (const auto& [seat, action] : reveal_->actions) apply_checked(s, seat, action, NoEvents{});
    return s;
  }
  if (terminal()) throw InvalidInput("the hand is over, and how it lay was not revealed");
  Hidden hidden;
  constexpr int kTries = 20000;
  for (int i = 0; i < kTries; ++i) {
    sample_hands(rng, hidden);
    // A discard is open as long as a seat that can claim it, ours or another, has not answered.
    bool waits = !table_.asks_others() || asked();
    for (Seat s = 0; s < kSeats && !waits; ++s)
      waits = s != seat_ && s != table_.actor && has_claim(*rules_, table_, s, hidden.hands[at(s)]);
    if (!waits) continue;
    State s = base_ ? sample_from_snapshot(hidden) : sample_from_deal(rng, hidden);
    s.seq_[at(seat_)] = seq_;
    // A view caught between the events of one moment has no state of its own: this is the next one.
    if (table_.phase == Phase::dealing || table_.phase == Phase::drawing || is_flower(drawn_)) return s;
    const View again = s.view(seat_);
    if (again.table_ != table_ || again.hand_ != hand_ || again.answered_ != answered_)
      throw InvalidInput("no deal fits this view");
    return s;
  }
  throw InvalidInput("no deal fits this view");
}

}  // namespace bothost::mahjong
