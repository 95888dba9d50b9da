// The run-time interface of games, which bindings/ shows to Python. core/erased.h makes it from any `Game`.
//
// Everything here validates input from outside (seats, actions, sizes, text) and throws InvalidInput, so
// that a `Game` receives only values within range. Objects are not synchronised: one thread at a time may use
// a State, a View or a VecEnv; a Game is immutable and may be shared.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/game.h"

namespace bothost {

/// "view", "action" or "oracle".
const char* name_of(Block::Of of);

class AnyState;
class AnyView;
class AnyVecEnv;

/// A game with fixed rules.
class AnyGame : public std::enable_shared_from_this<AnyGame> {
 public:
  virtual ~AnyGame() = default;
  virtual std::string_view name() const = 0;
  virtual Json rules() const = 0;
  virtual int num_seats() const = 0;
  virtual int num_actions() const = 0;
  virtual int format_version() const = 0;
  virtual const std::vector<Block>& blocks() const = 0;

  virtual std::unique_ptr<AnyState> new_state(std::uint64_t seed) const = 0;
  virtual std::unique_ptr<AnyState> state_from_deal(const Json& deal) const = 0;
  virtual std::unique_ptr<AnyView> new_view(std::int64_t seat) const = 0;
  virtual std::unique_ptr<AnyView> view_from_bytes(std::string_view data) const = 0;
  virtual std::unique_ptr<AnyView> view_from_json(const Json& data) const = 0;
  virtual std::unique_ptr<AnyView> view_from_snapshot(const Json& data) const = 0;
  virtual std::unique_ptr<AnyVecEnv> vec_env(std::int64_t n, std::uint64_t seed) const = 0;

  virtual std::string notation(std::int64_t action) const = 0;
  virtual Action parse(std::string_view text) const = 0;

  /// Index of the block `name`, which must be one `of` that kind.
  int block_index(std::string_view name, Block::Of of) const;
  Seat checked_seat(std::int64_t seat) const;
  Action checked_action(std::int64_t action) const;
};

/// What one seat may know.
class AnyView {
 public:
  virtual ~AnyView() = default;
  virtual const AnyGame& game() const = 0;
  virtual Seat seat() const = 0;
  virtual std::uint32_t seq() const = 0;
  virtual bool asked() const = 0;
  virtual Seat to_act() const = 0;
  virtual bool terminal() const = 0;
  virtual std::string_view phase() const = 0;
  virtual void legal(ActionList& out) const = 0;
  virtual bool is_legal(std::int64_t action) const = 0;
  /// Throws InvalidInput and changes nothing if the event cannot happen now.
  virtual void observe(std::string_view event) = 0;
  /// Throws IllegalAction and changes nothing if the action is illegal.
  virtual void apply(std::int64_t action) = 0;
  virtual std::unique_ptr<AnyState> sample(std::uint64_t seed) const = 0;
  virtual std::optional<Record> record() const = 0;
  virtual std::string to_bytes() const = 0;
  virtual Json to_json() const = 0;
  virtual std::unique_ptr<AnyView> clone() const = 0;
  /// Equal knowledge and equal rules.
  virtual bool equals(const AnyView& other) const = 0;
  /// `out` has room for the block's floats; `block` comes from `AnyGame::block_index`.
  virtual void encode(int block, float* out) const = 0;
  virtual void encode_actions(int block, std::span<const Action> actions, float* out) const = 0;
};

/// The full truth of one hand, with the event streams of its seats.
class AnyState {
 public:
  virtual ~AnyState() = default;
  virtual const AnyGame& game() const = 0;
  virtual SeatMask to_act() const = 0;
  virtual bool terminal() const = 0;
  /// num_seats values. Throws InvalidInput before the end.
  virtual std::vector<double> returns() const = 0;
  virtual Json deal() const = 0;
  virtual void legal(std::int64_t seat, ActionList& out) const = 0;
  /// Throws IllegalAction and changes nothing if the action is illegal.
  virtual void apply(std::int64_t seat, std::int64_t action) = 0;
  /// Events of a seat as text, from number `since` on. A sampled state knows only those after its sampling.
  virtual std::vector<std::string> events(std::int64_t seat, std::int64_t since) const = 0;
  virtual const std::vector<std::pair<Seat, Action>>& actions() const = 0;
  virtual std::unique_ptr<AnyView> view(std::int64_t seat) const = 0;
  virtual std::unique_ptr<AnyState> clone() const = 0;
  virtual void encode_oracle(std::int64_t seat, int block, float* out) const = 0;
};

/// `n` hands stepped at once; contract in bothost/rules/game.py.
class AnyVecEnv {
 public:
  virtual ~AnyVecEnv() = default;
  virtual const AnyGame& game() const = 0;
  virtual std::size_t size() const = 0;
  /// Takes one legal action for each environment. Throws InvalidInput otherwise and changes nothing.
  /// kNoAction leaves an environment unchanged.
  virtual void step(std::span<const Action> actions) = 0;
  /// Blocks of these environments, one after another; `rows` are within 0 .. size() - 1.
  using Rows = std::span<const std::int64_t>;
  virtual void encode(int block, Rows rows, float* out) const = 0;
  virtual void encode_actions(int block, Rows rows, float* out) const = 0;
  /// What the asked seats do not know: an oracle block.
  virtual void encode_oracle(int block, Rows rows, float* out) const = 0;
  /// (n, num_actions), row by row.
  virtual void legal_mask(bool* out) const = 0;
  virtual Json deal(std::size_t index) const = 0;
  /// The actions of the game's rule player in these environments. Throws InvalidInput if the game has none.
  virtual void rule_actions(Rows rows, Action* out) const = 0;

  // The addresses and sizes of the first three never change.
  const std::vector<Seat>& seats() const { return seat_; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const std::vector<float>& returns() const { return returns_; }
  /// One byte per environment, 0 or 1.
  const std::vector<std::uint8_t>& done() const { return done_; }
  /// A step may move the legal ids into a larger buffer. The shared pointer keeps the old one alive.
  const std::shared_ptr<Action[]>& legal_ids() const { return ids_; }
  std::size_t num_legal() const { return at(offsets_.back()); }

 protected:
  std::vector<Seat> seat_;
  std::vector<std::int64_t> offsets_;
  std::vector<float> returns_;
  std::vector<std::uint8_t> done_;
  std::shared_ptr<Action[]> ids_;
};

}  // namespace bothost
