// "claims": a made-up game, the contract test for simultaneous decisions (and for hidden hands and
// priorities).
//
// Three or four seats hold up to five cards each, numbers 0 .. 7, four of each; the rest stays aside, unseen.
// The seat on turn discards a number. Every other seat that holds that number is asked at once: pass, match
// (lay one equal card down, 1 point) or pair (two of them, 3 points). The discarder pays. A pair beats a
// match; among equals the seat nearest after the discarder wins, and discards next; with no taker the next
// seat does. An answer is an event to its own seat alone; the outcome is public once the last answer is in;
// losing answers stay hidden until the reveal. The hand ends when a seat has no cards left.
#pragma once
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/game.h"

namespace bothost {

struct Claims {
  static constexpr std::string_view kName = "claims";
  static constexpr int kFormatVersion = 1;
  static constexpr int kMaxSeats = 4;
  static constexpr int kNumbers = 8;
  static constexpr int kCopies = 4;
  static constexpr int kMaxHand = 5;
  static constexpr int kMaxTurns = kMaxSeats * kMaxHand;

  // Actions 0 .. 7 discard that number.
  static constexpr Action kPass = 8;
  static constexpr Action kMatch = 9;
  static constexpr Action kPair = 10;
  static constexpr int kNumActions = 11;

  /// Copies held of each number.
  using Hand = std::array<std::int8_t, kNumbers>;
  template <class T>
  using BySeat = std::array<T, kMaxSeats>;

  // What a seat answered in a turn. What others do not see is kNone.
  enum : std::int8_t { kNone = -1, kUnanswered = -2 };

  /// One discard and what came of it.
  struct Turn {
    Seat discarder = kNobody;
    std::int8_t number = 0;
    Seat taker = kNobody;
    std::int8_t with = kNone;  // kMatch or kPair where somebody took it
    BySeat<std::int8_t> answers{kNone, kNone, kNone, kNone};
    bool operator==(const Turn&) const = default;
  };
  /// The last one may be open: its claims are being asked for.
  struct Turns {
    std::array<Turn, kMaxTurns> list;
    std::int8_t count = 0;
    bool open = false;
    bool operator==(const Turns&) const = default;
  };

  struct Rules {
    int seats = 3;
    int hand = 4;
    static Rules from_json(const Json& options);
    Json to_json() const;
    int num_seats() const { return seats; }
    int num_actions() const { return kNumActions; }
  };

  struct Event {
    enum class Kind : std::int8_t { deal, discard, answer, take, none, reveal } kind;
    Seat seat = kNobody;
    /// discard: the number. answer, take: the action. deal: who begins.
    std::int8_t value = 0;
    /// deal: the own hand, alone. reveal: every seat's.
    std::vector<Hand> hands;
    /// reveal: the answers of each turn in the order of their submission.
    std::vector<std::vector<std::pair<Seat, std::int8_t>>> answers;

    std::string text() const;
    static Event parse(const Rules& rules, std::string_view text);
  };

  class View;

  class State {
   public:
    State(const Rules& rules, Rng& rng);
    static State from_deal(const Rules& rules, const Json& deal);
    Json deal() const;

    template <class Sink>
    void start(Sink&& sink) const {
      for (Seat s = 0; s < rules_->seats; ++s)
        sink(s, Event{Event::Kind::deal, s, first_, {dealt_[at(s)]}, {}});
    }
    SeatMask to_act() const;
    bool terminal() const { return ended_; }
    void legal(Seat seat, ActionList& out) const;
    template <class Sink>
    void apply_legal(Seat seat, Action action, Sink&& sink);
    void returns(double* out) const;
    View view(Seat seat) const;
    const BySeat<Hand>& hands() const { return hands_; }

   private:
    friend class View;
    State(const Rules& rules, const BySeat<Hand>& dealt, Seat first);
    bool pending() const;
    /// Settles the open turn by its answers.
    void resolve();
    Event reveal() const;
    Turn& turn() { return turns_.list[at(turns_.count - 1)]; }
    const Turn& turn() const { return turns_.list[at(turns_.count - 1)]; }

    const Rules* rules_;
    BySeat<Hand> dealt_{};
    BySeat<Hand> hands_{};
    Seat first_ = 0;
    Seat active_ = 0;
    bool ended_ = false;
    Turns turns_;
    /// Order in which the seats answered, turn by turn.
    std::array<BySeat<Seat>, kMaxTurns> order_{};
    std::array<std::int8_t, kMaxTurns> num_answers_{};
    BySeat<std::int16_t> score_{};
    BySeat<std::uint32_t> seq_{};
  };

  class View {
   public:
    View(const Rules& rules, Seat seat);
    bool operator==(const View& other) const;
    void observe(const Event& event);
    Seat seat() const { return seat_; }
    std::uint32_t seq() const { return seq_; }
    bool asked() const;
    Seat to_act() const { return dealt_ && !ended_ && !turns_.open ? active_ : kNobody; }
    bool terminal() const { return ended_; }
    std::string_view phase() const;
    void legal(ActionList& out) const;
    void apply(Action action);
    State sample(Rng& rng) const;
    void write(ByteWriter& out) const;
    static View read(const Rules& rules, ByteReader& in);
    Json to_json() const;
    /// "turns" may leave "answer" out of past turns: it is then taken for a pass where one was asked.
    static View from_snapshot(const Rules& rules, const Json& json);
    std::optional<Record> record() const;
    const Hand& hand() const { return hand_; }

   private:
    friend class State;
    void on_deal(const Event& event);
    void on_discard(const Event& event);
    void on_answer(const Event& event);
    void on_outcome(const Event& event);
    void on_reveal(const Event& event);
    /// The end of the hand that the reveal describes.
    State revealed(const Event& reveal) const;
    std::int8_t& own_answer() { return turn().answers[at(seat_)]; }
    std::int8_t own_answer() const { return turn().answers[at(seat_)]; }
    Turn& turn() { return turns_.list[at(turns_.count - 1)]; }
    const Turn& turn() const { return turns_.list[at(turns_.count - 1)]; }
    /// Rebuilds the view from its deal, its past turns and its own answers; refuses what cannot have
    /// happened.
    static View rebuild(const Rules& rules, Seat seat, bool dealt, Seat first, const Hand& hand,
                        const Turns& turns, const std::optional<Event>& reveal, bool lenient);
    /// Cards that each seat still holds, and the copies of each number that have been seen lying open.
    BySeat<int> sizes() const;
    Hand laid_down() const;

    const Rules* rules_;
    Seat seat_;
    std::uint32_t seq_ = 0;
    bool dealt_ = false;
    bool ended_ = false;
    Seat first_ = 0;
    Seat active_ = 0;
    Hand start_{};  // our hand as dealt
    Hand hand_{};
    Turns turns_;
    std::optional<Event> reveal_;
  };

  static constexpr std::array<std::string_view, 2> kPresets{"three", "four"};
  static const std::vector<Block>& blocks();
  static std::string notation(const Rules& rules, Action action);
  static Action parse_action(const Rules& rules, std::string_view text);
  static void encode(const View& view, int block, float* out);
  static void encode_actions(const View& view, int block, std::span<const Action> actions, float* out);
  static void encode_oracle(const State& state, Seat seat, int block, float* out);

 private:
  static void check_hand(const Hand& hand, int size);
  static bool better(const Turn& turn, Seat a, Seat b, int seats);
};

template <class Sink>
void Claims::State::apply_legal(Seat seat, Action action, Sink&& sink) {
  const auto everyone = [&](const Event& event) {
    for (Seat s = 0; s < rules_->seats; ++s) {
      ++seq_[at(s)];
      sink(s, event);
    }
  };
  const auto who = at(seat);
  if (!turns_.open) {
    const auto number = static_cast<std::int8_t>(action);
    --hands_[who][at(number)];
    turns_.open = true;
    Turn& next = turns_.list[at(turns_.count++)];
    next = Turn{.discarder = seat, .number = number};
    for (Seat s = 0; s < rules_->seats; ++s)
      if (s != seat && hands_[at(s)][at(number)] > 0) next.answers[at(s)] = kUnanswered;
    everyone(Event{Event::Kind::discard, seat, number, {}, {}});
  } else {
    const auto t = at(turns_.count - 1);
    turn().answers[who] = static_cast<std::int8_t>(action);
    order_[t][at(num_answers_[t]++)] = seat;
    ++seq_[who];
    sink(seat, Event{Event::Kind::answer, seat, static_cast<std::int8_t>(action), {}, {}});
  }
  if (pending()) return;
  resolve();
  const Turn& done = turn();
  everyone(done.taker == kNobody ? Event{Event::Kind::none, kNobody, 0, {}, {}}
                                 : Event{Event::Kind::take, done.taker, done.with, {}, {}});
  if (ended_) everyone(reveal());
}

// What the sources share: how cards and answers are written, and a refusal in words.
namespace claims {

using Event = Claims::Event;
using Hand = Claims::Hand;

inline void refuse(bool wrong, const char* why) {
  if (wrong) throw InvalidInput(why);
}

inline int total(const Hand& hand) { return std::accumulate(hand.begin(), hand.end(), 0); }

/// One digit, at most `most`. Throws InvalidInput.
int digit(std::string_view word, int most, const char* what);

/// The numbers held, ascending. The parser takes them in any order.
std::string hand_text(const Hand& hand);
Hand parse_hand(std::string_view text);
Json hand_json(const Hand& hand);
Hand hand_from_json(const Json& json);

const char* answer_word(Action answer);
std::int8_t parse_answer(std::string_view word);

/// Legal answers to a discard by a seat that holds `copies` of it.
void list_answers(int copies, ActionList& out);

}  // namespace claims

}  // namespace bothost
