// The full truth of one hand.
#pragma once
#include <array>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "core/game.h"
#include "mahjong/table.h"

namespace bothost::mahjong {

class View;

/// A deal as `State::from_deal` takes it.
Json deal_json(std::uint8_t wind, std::span<const Tile> wall);

/// How a hand ended.
struct Result {
  Seat winner = kNobody;  // kNobody: exhausted, or not over
  Seat from = kNobody;
  bool false_win = false;
  int points = 0;  // flowers among them
  bool operator==(const Result&) const = default;
};

/// The wall in the order of its drawing. A seat's quarter of the deal's wall, or the whole of a shared one,
/// is drawn from its end, as in the official judge's games.
class Wall {
 public:
  Wall() = default;
  Wall(const Rules& rules, std::span<const Tile> tiles);
  /// `left[s]` tiles in each share, from the front of `tiles`, which hold at least as many.
  Wall(const Rules& rules, const BySeat<std::uint8_t>& left, std::span<const Tile> tiles);
  Tile take(int seat) { return tiles_[at(head_[share(seat)]++)]; }
  /// Tiles not yet drawn, the next one first.
  std::span<const Tile> left(int seat) const {
    const auto s = share(seat);
    return {tiles_.data() + head_[s], at(end_[s] - head_[s])};
  }
  /// As given to the constructor.
  std::vector<Tile> deal() const;
  /// Exchanges the last tile that the seat took with an undrawn `tile`.
  void exchange(int seat, Tile tile);

 private:
  std::size_t share(int seat) const { return shares_ == 1 ? 0 : at(seat); }
  std::array<Tile, 144> tiles_{};
  int shares_ = 1, size_ = 0;
  BySeat<int> head_{}, end_{};
};

class State {
 public:
  State(const Rules& rules, Rng& rng);
  static State from_deal(const Rules& rules, const Json& deal);
  State(const Rules& rules, std::uint8_t wind, std::span<const Tile> wall);
  /// Throws InvalidInput when the state was sampled from a snapshot: how the hand began is unknown then.
  Json deal() const;
  /// The wall of the deal, as the constructor takes it. Throws as `deal`.
  std::vector<Tile> dealt_wall() const;

  template <class Sink>
  void start(Sink&& sink) const;
  SeatMask to_act() const;
  bool terminal() const { return table_.phase == Phase::over; }
  void legal(Seat seat, ActionList& out) const;
  template <class Sink>
  void apply_legal(Seat seat, Action action, Sink&& sink);
  void returns(double* out) const;
  BySeat<double> scores() const {
    BySeat<double> out;
    returns(out.data());
    return out;
  }
  View view(Seat seat) const;
  /// The same hand if the actor, who has just drawn, had drawn this tile of the wall. The two change places.
  State redrawn(Tile tile) const;

  const Rules& rules() const { return *rules_; }
  const Table& table() const { return table_; }
  const Counts& hand(int seat) const { return hands_[at(seat)]; }
  const Wall& wall() const { return wall_; }
  const Log& log() const { return log_; }
  /// Whether a draw was the last thing that happened.
  bool has_drawn() const { return log_.size > 0 && log_.last().kind == Event::Kind::draw; }
  /// All answers so far, as (seat, action).
  std::span<const std::pair<Seat, std::uint8_t>> actions() const { return actions_; }

 private:
  friend class View;
  State(const Rules& rules) : rules_(&rules) {}
  void deal_tiles();
  void replace_dealt_flowers();
  /// Something happens at the table.
  void note(Event::Kind kind, Seat seat, int tile) {
    log_.add({kind, seat, static_cast<std::uint8_t>(tile)});
    table_.follow(*rules_, log_.last());
  }
  /// The actor's move: a discard or a kong of its own.
  void move(Seat seat, Action action);
  void ask_claims();
  /// All answers are in: whose claim goes through, kNobody where all pass.
  Seat winner_of_claims() const;
  void settle_claims();
  void win(Seat seat);
  /// Turns until a seat has to decide.
  void next_turn(Seat seat);
  void take_out(Seat seat, Move move, Tile tile);
  Event reveal() const;
  Event event_for(Seat to, const LogEntry& entry) const {
    return event_of(seen_by(to, entry), result_.from, fans_);
  }

  const Rules* rules_;
  Table table_;
  Log log_;
  Wall wall_;
  /// Of a state that was sampled from a snapshot: where each seat's view begins. How the hand began is
  /// unknown then.
  struct Beginning {
    std::shared_ptr<const Snapshot> snapshot;
    int log_from = 0;
  };
  std::shared_ptr<const BySeat<Beginning>> beginnings_;
  BySeat<Counts> hands_{};
  BySeat<std::array<Tile, kDealt>> dealt_{};
  /// What the actor has drawn; kHidden when it has not, or has discarded since.
  Tile drawn_ = kHidden;
  /// Asked and not answered yet; answers are valid for the seats of asked_.
  SeatMask pending_ = 0, asked_ = 0;
  BySeat<Action> answers_{};
  Result result_;
  FanCounts fans_;
  std::vector<std::pair<Seat, std::uint8_t>> actions_;
  BySeat<std::uint32_t> seq_{};
};

template <class Sink>
void State::start(Sink&& sink) const {
  for (Seat s = 0; s < kSeats; ++s) {
    Event e{.kind = Event::Kind::deal, .seat = s, .wind = table_.wind};
    e.tiles.assign(dealt_[at(s)].begin(), dealt_[at(s)].end());
    sink(s, e);
  }
  for (const auto& entry : log_.entries())
    for (Seat s = 0; s < kSeats; ++s) sink(s, event_for(s, entry));
}

template <class Sink>
void State::apply_legal(Seat seat, Action action, Sink&& sink) {
  const int before = log_.size;
  actions_.emplace_back(seat, static_cast<std::uint8_t>(action));
  if (pending_) {
    pending_ &= ~(SeatMask{1} << seat);
    answers_[at(seat)] = action;
    note(Event::Kind::answer, seat, action);
    if (!pending_) settle_claims();
  } else {
    move(seat, action);
  }
  for (int i = before; i < log_.size; ++i) {
    const auto& entry = log_.list[at(i)];
    for (Seat s = 0; s < kSeats; ++s) {
      if (entry.kind == Event::Kind::answer && s != entry.seat) continue;
      ++seq_[at(s)];
      if constexpr (!kDiscards<Sink>) sink(s, event_for(s, entry));
    }
  }
  if (!terminal() || beginnings_) return;
  for (Seat s = 0; s < kSeats; ++s) {
    ++seq_[at(s)];
    if constexpr (!kDiscards<Sink>) sink(s, reveal());
  }
}

}  // namespace bothost::mahjong
