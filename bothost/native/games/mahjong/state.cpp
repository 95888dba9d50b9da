#include "mahjong/state.h"

#include <algorithm>

#include "mahjong/view.h"

namespace bothost::mahjong {
namespace {

std::vector<Tile> full_deck(const Rules& rules) {
  std::vector<Tile> deck;
  for (int t = 0; t < kKinds; ++t) deck.insert(deck.end(), 4, static_cast<Tile>(t));
  for (int t = kKinds; rules.flowers && t < kKinds + kFlowers; ++t) deck.push_back(static_cast<Tile>(t));
  return deck;
}

}  // namespace

Wall::Wall(const Rules& rules, std::span<const Tile> tiles)
    : shares_(rules.wall == WallModel::shared ? 1 : kSeats), size_(static_cast<int>(tiles.size())) {
  const int each = size_ / shares_;
  for (int s = 0; s < shares_; ++s) {
    head_[at(s)] = s * each;
    end_[at(s)] = (s + 1) * each;
    std::reverse_copy(tiles.begin() + s * each, tiles.begin() + (s + 1) * each, tiles_.begin() + s * each);
  }
}

Wall::Wall(const Rules& rules, const BySeat<std::uint8_t>& left, std::span<const Tile> tiles)
    : shares_(rules.wall == WallModel::shared ? 1 : kSeats) {
  for (int s = 0; s < shares_; ++s) {
    head_[at(s)] = size_;
    size_ += left[at(s)];
    end_[at(s)] = size_;
  }
  if (at(size_) > std::min(tiles.size(), tiles_.size())) throw InvalidInput("no deal fits this view");
  std::copy_n(tiles.begin(), size_, tiles_.begin());
}

std::vector<Tile> Wall::deal() const {
  std::vector<Tile> out(tiles_.begin(), tiles_.begin() + size_);
  const int each = size_ / shares_;
  for (int s = 0; s < shares_; ++s) std::reverse(out.begin() + s * each, out.begin() + (s + 1) * each);
  return out;
}

void Wall::exchange(int seat, Tile tile) {
  auto& last = tiles_[at(head_[share(seat)] - 1)];
  for (int s = 0; s < shares_; ++s) {
    const auto from = tiles_.begin() + head_[at(s)], to = tiles_.begin() + end_[at(s)];
    if (const auto found = std::find(from, to, tile); found != to) return std::swap(last, *found);
  }
  throw InvalidInput("the wall holds no " + tile_name(tile));
}

State::State(const Rules& rules, Rng& rng) : rules_(&rules) {
  auto deck = full_deck(rules);
  rng.shuffle(deck.begin(), deck.end());
  const bool drawn = rules.prevalent_wind == Rules::kDealtWind;
  table_.begin(rules, static_cast<std::uint8_t>(drawn ? rng.below(4)
                                                      : static_cast<std::uint32_t>(rules.prevalent_wind)));
  wall_ = Wall(rules, deck);
  deal_tiles();
}

State::State(const Rules& rules, std::uint8_t wind, std::span<const Tile> wall) : rules_(&rules) {
  auto deck = full_deck(rules);
  std::vector<Tile> sorted(wall.begin(), wall.end());
  std::ranges::sort(sorted);
  if (sorted != deck) throw InvalidInput("the wall must hold every tile of the set once");
  require(rules.allows_wind(wind), "the rules allow no such prevalent wind");
  table_.begin(rules, wind);
  wall_ = Wall(rules, wall);
  deal_tiles();
}

State State::from_deal(const Rules& rules, const Json& deal) {
  deal.only("a deal", {"prevalent_wind", "wall"});
  const int wind = deal.at("prevalent_wind").one_of("prevalent_wind", std::span(kWindNames).first(4));
  std::vector<Tile> wall;
  for (const auto& word : deal.at("wall").array("wall"))
    wall.push_back(parse_tile(word.text("a tile"), rules.flowers));
  return State(rules, static_cast<std::uint8_t>(wind), wall);
}

std::vector<Tile> State::dealt_wall() const {
  if (beginnings_) throw InvalidInput("how this hand began is unknown: it was sampled from a snapshot");
  return wall_.deal();
}

Json deal_json(std::uint8_t wind, std::span<const Tile> wall) {
  JsonArray tiles;
  for (const auto t : wall) tiles.emplace_back(tile_name(t));
  return JsonObject{{"prevalent_wind", kWindNames[wind]}, {"wall", std::move(tiles)}};
}

Json State::deal() const { return deal_json(table_.wind, dealt_wall()); }

void State::deal_tiles() {
  for (int s = 0; s < kSeats; ++s)
    for (auto& tile : dealt_[at(s)]) {
      tile = wall_.take(s);
      if (!is_flower(tile)) ++hands_[at(s)][tile];
    }
  seq_.fill(1);
  if (rules_->flowers) replace_dealt_flowers();
  next_turn(0);
  for (auto& n : seq_) n += static_cast<std::uint32_t>(log_.size);
}

/// Seat by seat: all flowers are laid down, as many tiles drawn, until no flower comes.
void State::replace_dealt_flowers() {
  for (Seat s = 0; s < kSeats; ++s) {
    std::vector<Tile> flowers;
    std::ranges::copy_if(dealt_[at(s)], std::back_inserter(flowers), is_flower);
    while (!flowers.empty()) {
      for (const auto f : flowers) note(Event::Kind::flower, s, f);
      const auto n = flowers.size();
      flowers.clear();
      for (std::size_t i = 0; i < n; ++i) {
        const Tile t = wall_.take(s);
        note(Event::Kind::draw, s, t);
        if (is_flower(t))
          flowers.push_back(t);
        else
          ++hands_[at(s)][t];
      }
    }
  }
}

void State::next_turn(Seat seat) {
  for (;;) {
    drawn_ = kHidden;
    if (table_.left_for(*rules_, seat) == 0) return note(Event::Kind::exhausted, kNobody, kHidden);
    drawn_ = wall_.take(seat);
    note(Event::Kind::draw, seat, drawn_);
    if (!is_flower(drawn_)) break;
    note(Event::Kind::flower, seat, drawn_);
  }
  ++hands_[at(seat)][drawn_];
}

SeatMask State::to_act() const {
  if (terminal()) return 0;
  return pending_ ? pending_ : SeatMask{1} << table_.actor;
}

void State::legal(Seat seat, ActionList& out) const {
  if (to_act() >> seat & 1) legal_actions(*rules_, table_, seat, hands_[at(seat)], drawn_, out);
}

void State::take_out(Seat seat, Move move, Tile tile) {
  for (const auto t : outgoing(move, tile, table_.last_tile)) --hands_[at(seat)][t];
}

void State::move(Seat seat, Action action) {
  const auto [move, tile] = parts(action);
  if (move == Move::hu) return win(seat);
  take_out(seat, move, tile);
  note(move == Move::play ? Event::Kind::play : event_of(move), seat, tile);
  if (move == Move::angang) return next_turn(seat);
  drawn_ = kHidden;
  ask_claims();
}

void State::ask_claims() {
  asked_ = 0;
  for (Seat s = 0; s < kSeats; ++s)
    if (s != table_.actor && has_claim(*rules_, table_, s, hands_[at(s)])) asked_ |= SeatMask{1} << s;
  pending_ = asked_;
  if (!pending_) settle_claims();
}

Seat State::winner_of_claims() const {
  Seat best = kNobody;
  int rank = 0;
  for (int i = 1; i < kSeats; ++i) {
    const auto s = static_cast<Seat>((table_.actor + i) % kSeats);
    if (!(asked_ >> s & 1)) continue;
    const auto move = parts(answers_[at(s)]).move;
    const int r = move == Move::pass ? 0 : move == Move::chi ? 1 : move == Move::hu ? 3 : 2;
    if (r > rank) best = s, rank = r;
  }
  return best;
}

void State::settle_claims() {
  const Seat seat = winner_of_claims();
  asked_ = 0;
  if (seat == kNobody)
    return next_turn(table_.phase == Phase::robbing ? table_.actor : next_seat(table_.actor));
  const auto [move, tile] = parts(answers_[at(seat)]);
  if (move == Move::hu) return win(seat);
  take_out(seat, move, tile);
  note(event_of(move), seat, tile);
  if (move == Move::gang) next_turn(seat);
}

void State::win(Seat seat) {
  const auto fans = win_fans(*rules_, table_, seat, hands_[at(seat)], drawn_);
  result_ = {seat, table_.actor, fans->points < rules_->minimum, 0};
  if (!result_.false_win) {
    result_.points = fans->total;
    fans_ = fan_counts(*fans);
  }
  note(result_.false_win ? Event::Kind::false_hu : Event::Kind::hu, seat,
       win_context(*rules_, table_, seat, drawn_).win_tile);
}

void State::returns(double* out) const {
  const auto& r = result_;
  for (Seat s = 0; s < kSeats; ++s) {
    double score = 0;
    if (r.winner == kNobody) {
      score = 0;
    } else if (r.false_win) {
      score = s == r.winner ? -30 : 10;
    } else if (r.winner == r.from) {
      score = s == r.winner ? 3.0 * (8 + r.points) : -(8.0 + r.points);
    } else {
      score = s == r.winner ? 24.0 + r.points : s == r.from ? -(8.0 + r.points) : -8.0;
    }
    out[s] = score;
  }
}

State State::redrawn(Tile tile) const {
  State other = *this;
  if (tile == drawn_) return other;
  const Seat seat = table_.actor;
  other.wall_.exchange(seat, tile);
  --other.hands_[at(seat)][drawn_];
  ++other.hands_[at(seat)][tile];
  other.drawn_ = tile;
  other.log_.list[at(log_.size - 1)].tile = tile;
  return other;
}

Event State::reveal() const {
  Event e{.kind = Event::Kind::reveal, .wind = table_.wind};
  e.tiles = wall_.deal();
  for (const auto& [seat, action] : actions_) e.actions.emplace_back(seat, action);
  return e;
}

View State::view(Seat seat) const {
  View v(*rules_, seat);
  v.seq_ = seq_[at(seat)];
  v.table_ = table_;
  v.hand_ = hands_[at(seat)];
  v.result_ = result_;
  v.fans_ = fans_;
  if (seat == table_.actor) v.drawn_ = drawn_;
  v.answered_ = (asked_ & ~pending_) >> seat & 1;
  int log_from = 0;
  if (beginnings_) {
    v.base_ = (*beginnings_)[at(seat)].snapshot;
    log_from = (*beginnings_)[at(seat)].log_from;
  } else {
    v.dealt_ = dealt_[at(seat)];
  }
  for (Seat s = 0; s < kSeats; ++s)
    if (s != seat)
      for (auto& m : v.table_.melds[at(s)])
        if (m.concealed) m.tile = kHidden;
  for (const auto& entry : log_.entries().subspan(at(log_from)))
    if (entry.kind != Event::Kind::answer || entry.seat == seat) v.log_.add(seen_by(seat, entry));
  if (terminal() && !beginnings_) v.reveal_ = reveal();
  return v;
}

}  // namespace bothost::mahjong
