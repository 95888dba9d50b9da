// What one seat may know.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "core/game.h"
#include "mahjong/state.h"
#include "mahjong/table.h"

namespace bothost::mahjong {

class View {
 public:
  View(const Rules& rules, Seat seat) : rules_(&rules), seat_(seat) {}
  bool operator==(const View& other) const;

  void observe(const Event& event);
  Seat seat() const { return seat_; }
  std::uint32_t seq() const { return seq_; }
  bool asked() const;
  Seat to_act() const;
  bool terminal() const { return table_.phase == Phase::over; }
  std::string_view phase() const;
  void legal(ActionList& out) const;
  void apply(Action action);
  State sample(Rng& rng) const;
  void write(ByteWriter& out) const;
  static View read(const Rules& rules, ByteReader& in);
  Json to_json() const;
  /// The keys of to_json; "events" and all but "seat", "hand" and "phase" may be absent. Without "events" the
  /// past is unknown: discards count as seen, and the sampled state does not know how the hand began.
  static View from_snapshot(const Rules& rules, const Json& json);
  std::optional<Record> record() const;

  const Rules& rules() const { return *rules_; }
  const Table& table() const { return table_; }
  const Counts& hand() const { return hand_; }
  /// The tile just drawn by this seat, kHidden where there is none.
  Tile drawn() const { return drawn_; }
  const Log& log() const { return log_; }
  /// Known discards of a seat, oldest first, those among them that were claimed.
  std::vector<Tile> discards(int seat) const;
  /// Copies of each kind that this seat does not see.
  Counts unseen() const;

 private:
  friend class State;

  void fold_deal(const Event& e);
  void fold_draw(const Event& e);
  void fold_flower(const Event& e);
  void fold_play(const Event& e);
  void fold_answer(const Event& e);
  void fold_claim(const Event& e);
  void fold_own_kong(const Event& e);
  void fold_end(const Event& e);
  void fold_reveal(const Event& e);
  /// Takes the tiles of a move of ours out of our hand.
  void take_out(Move move, Tile tile);
  /// Our own win as an event.
  Event own_win() const;

  struct Hidden;
  void sample_hands(Rng& rng, Hidden& hidden) const;
  State sample_from_deal(Rng& rng, const Hidden& hidden) const;
  State sample_from_snapshot(const Hidden& hidden) const;
  std::vector<Tile> tiles_drawn(Rng& rng, int seat, const Hidden& hidden) const;
  State replay(State start, const Hidden& hidden) const;

  /// The position as it stands now, without its past.
  Snapshot now() const;
  static Json snapshot_json(const Snapshot& base);
  static Snapshot snapshot_from_json(const Rules& rules, Seat seat, const Json& json);
  /// Fills in what follows from the rest, and refuses what cannot be.
  static void check_snapshot(const Rules& rules, Seat seat, Snapshot& base);
  void start_from(const Rules& rules, Snapshot base);

  const Rules* rules_;
  Seat seat_;
  std::uint32_t seq_ = 0;
  Table table_;
  Counts hand_{};
  Tile drawn_ = kHidden;
  /// This seat has answered the open discard or kong.
  bool answered_ = false;
  std::array<Tile, kDealt> dealt_{};
  Log log_;
  Result result_;
  FanCounts fans_;
  /// Where the fold began when it was not the deal.
  std::shared_ptr<const Snapshot> base_;
  std::optional<Event> reveal_;
};

}  // namespace bothost::mahjong
