// Othello (World Othello Federation rules): 8 x 8, seat 0 is black and begins, a pass is an action of its own
// and only legal when nothing else is. The hand ends when neither side can place a disc.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/game.h"
#include "othello/board.h"

namespace bothost {

struct Othello {
  static constexpr std::string_view kName = "othello";
  static constexpr int kFormatVersion = 1;
  static constexpr int kSquares = 64;
  /// Actions 0 .. 63 place a disc on that square.
  static constexpr Action kPass = 64;
  static constexpr int kNumActions = 65;
  /// Every other action at least fills a square.
  static constexpr int kMaxActions = 2 * kSquares;

  struct Rules {
    enum class Score { result, discs };
    /// What returns() holds: 1, 0, -1; or the difference of discs, empty squares counting for the winner.
    Score score = Score::result;
    /// Plies of random play before the hand begins, so that deals differ.
    int random_plies = 0;
    static Rules from_json(const Json& options);
    Json to_json() const;
    int num_seats() const { return 2; }
    int num_actions() const { return kNumActions; }
  };

  /// A board with the seat to move.
  struct Place {
    othello::Board board = othello::kStart;  // own: the seat to move
    Seat turn = 0;
    othello::Squares discs(Seat seat) const { return seat == turn ? board.own : board.enemy; }
    bool operator==(const Place&) const = default;
  };

  /// All that is known of a hand; nothing is hidden in this game, so State and View share it.
  struct Hand {
    Place start;
    Place now;
    othello::Squares legal = 0;  // of the seat to move
    std::array<std::int8_t, kMaxActions> actions{};
    std::uint8_t count = 0;
    bool ended = false;
    /// False after a snapshot without history: `start` is then where our knowledge begins.
    bool complete = true;
    std::uint32_t seq_at_start = 1;

    Hand() = default;
    /// Throws InvalidInput where the discs overlap or neither side can move.
    explicit Hand(const Place& start);
    void play(Action action);
    /// As play; throws InvalidInput for an illegal one.
    void replay(Action action);
    bool may(Action action) const;
    std::uint32_t seq() const { return seq_at_start + count; }
    bool operator==(const Hand&) const = default;
  };

  struct Event {
    enum class Kind : std::int8_t { start, move, pass, reveal } kind;
    Seat seat = kNobody;
    std::int8_t square = 0;
    Place place{};  // start
    std::string text() const;
    static Event parse(const Rules& rules, std::string_view text);
  };

  class View;

  class State {
   public:
    State(const Rules& rules, Rng& rng);
    State(const Rules& rules, const Hand& hand) : rules_(&rules), hand_(hand) {}
    static State from_deal(const Rules& rules, const Json& deal);
    Json deal() const;
    template <class Sink>
    void start(Sink&& sink) const {
      both(sink, Event{Event::Kind::start, kNobody, 0, hand_.start});
    }
    SeatMask to_act() const { return hand_.ended ? 0 : SeatMask{1} << hand_.now.turn; }
    bool terminal() const { return hand_.ended; }
    void legal(Seat seat, ActionList& out) const;
    bool is_legal(Seat seat, Action action) const { return to_act() >> seat & 1 && hand_.may(action); }
    template <class Sink>
    void apply_legal(Seat seat, Action action, Sink&& sink) {
      const auto kind = action == kPass ? Event::Kind::pass : Event::Kind::move;
      hand_.play(action);
      both(sink, Event{kind, seat, static_cast<std::int8_t>(action), {}});
      if (hand_.ended) both(sink, Event{Event::Kind::reveal, kNobody, 0, {}});
    }
    void returns(double* out) const;
    View view(Seat seat) const;

   private:
    template <class Sink>
    static void both(Sink&& sink, const Event& event) {
      sink(Seat{0}, event);
      sink(Seat{1}, event);
    }

    const Rules* rules_;
    Hand hand_;
  };

  class View {
   public:
    View(const Rules& rules, Seat seat) : rules_(&rules), seat_(seat) {}
    bool operator==(const View& other) const {
      return seat_ == other.seat_ && dealt_ == other.dealt_ && revealed_ == other.revealed_ &&
             hand_ == other.hand_;
    }
    void observe(const Event& event);
    Seat seat() const { return seat_; }
    std::uint32_t seq() const { return dealt_ ? hand_.seq() + revealed_ : 0; }
    bool asked() const { return dealt_ && !hand_.ended && hand_.now.turn == seat_; }
    Seat to_act() const { return dealt_ && !hand_.ended ? hand_.now.turn : kNobody; }
    bool terminal() const { return hand_.ended; }
    std::string_view phase() const { return !dealt_ ? "deal" : hand_.ended ? "end" : "move"; }
    void legal(ActionList& out) const;
    bool is_legal(Action action) const { return asked() && hand_.may(action); }
    void apply(Action action) { hand_.play(action); }
    State sample(Rng& rng) const;
    void write(ByteWriter& out) const;
    static View read(const Rules& rules, ByteReader& in);
    /// "board" is 64 characters, a1 b1 … h8: X black, O white, - empty; "turn" is the seat to move, null at
    /// the end.
    Json to_json() const;
    /// "board" and "turn" suffice; without "start" and "moves" there will be no record of the hand.
    static View from_snapshot(const Rules& rules, const Json& json);
    std::optional<Record> record() const;
    const Hand& hand() const { return hand_; }

   private:
    friend class State;
    const Rules* rules_;
    Seat seat_;
    bool dealt_ = false;
    bool revealed_ = false;
    Hand hand_;
  };

  static constexpr std::array<std::string_view, 3> kPresets{"standard", "discs", "random8"};
  static const std::vector<Block>& blocks();
  static std::string notation(const Rules& rules, Action action);
  static Action parse_action(const Rules& rules, std::string_view text);
  static void encode(const View& view, int block, float* out);
  static void encode_actions(const View& view, int block, std::span<const Action> actions, float* out);
  static void encode_oracle(const State&, Seat, int, float*) {}  // nothing is hidden
};

}  // namespace bothost
