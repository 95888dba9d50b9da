// What everybody at a Dou Dizhu table knows, events, and the transitions that State and View share.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "doudizhu/rules.h"

namespace bothost::doudizhu {

enum class Phase : std::uint8_t {
  deal,  ///< no card was seen yet (a view only)
  bid,
  bottom,  ///< the landlord is known, the bottom cards are about to be shown (a view between two events only)
  play,
  end
};
inline constexpr std::array<std::string_view, 5> kPhaseNames = {"deal", "bid", "bottom", "play", "end"};

/// deal SEAT HAND FIRST          to SEAT alone: its 17 cards; FIRST bids first (without bidding: is the
///                               landlord)
/// bid SEAT CALL                 bid0 bid1 bid2 bid3 call grab
/// landlord SEAT BOTTOM          the three bottom cards, which SEAT takes
/// play SEAT MOVE, pass SEAT
/// reveal - HAND HAND HAND BOTTOM FIRST   the deal, after the end
struct Event {
  enum class Kind : std::uint8_t { deal, bid, landlord, play, reveal } kind;
  Seat seat = kNobody;
  Seat first = kNobody;
  Action action = 0;
  /// deal: hand; landlord: bottom; reveal: three hands and bottom.
  std::array<Cards, 4> cards{};

  std::string text() const;
  static Event parse(const Rules& rules, std::string_view text);
};

/// Calls 4 at most; each of at most 54 plays is followed by two passes at most.
inline constexpr int kMaxHistory = 168;

inline Seat next_seat(Seat s) { return static_cast<Seat>(s == 2 ? 0 : s + 1); }

struct Public {
  /// Calls, then plays and passes, in order; zeros behind `size`. Seats follow from `first` and `landlord`.
  std::array<Id16, kMaxHistory> history{};
  std::uint16_t size = 0;
  /// How many leading entries of the history are calls.
  std::uint8_t calls = 0;
  Phase phase = Phase::deal;
  /// Whether the history reaches back to the deal. False after a snapshot that did not tell it.
  bool complete = true;
  std::uint8_t passes = 0;  ///< since `last`
  std::uint8_t bombs = 0;   ///< bombs and rockets played (and seen)
  std::uint16_t stake = 1;
  Seat first = kNobody, landlord = kNobody, turn = kNobody, winner = kNobody;
  /// Who made the play to beat, or led last; and that play, 0 where the turn's seat leads.
  Seat last_seat = kNobody;
  Id16 last = 0;
  std::array<std::uint8_t, kSeats> counts{};
  /// Number of plays (passes not counted) seen of each seat.
  std::array<std::uint8_t, kSeats> plays{};
  std::array<Cards, kSeats> played{};
  /// 0 while unknown.
  Cards bottom = 0;

  bool operator==(const Public&) const = default;

  /// At most kMaxHistory actions, in place of what there was.
  void set_history(const std::vector<Action>& actions) {
    size = static_cast<std::uint16_t>(actions.size());
    std::ranges::copy(actions, history.begin());
  }
  void begin_bidding(Seat first_seat, const Rules& rules);
  void call(Seat seat, Action action, const Rules& rules);
  void show_bottom(Cards cards) {
    bottom = cards;
    counts[at(landlord)] += kBottomSize;
    turn = last_seat = landlord;
    phase = Phase::play;
  }
  void play(Seat seat, Action action, const Move& m) {
    const auto s = at(seat);
    history[size++] = static_cast<Id16>(action);
    turn = next_seat(seat);
    if (action == kPass) {
      if (++passes == 2) last = 0;
      return;
    }
    last = static_cast<Id16>(action);
    last_seat = seat;
    passes = 0;
    bombs = static_cast<std::uint8_t>(bombs + m.is_bomb());
    ++plays[s];
    played[s] += m.cards;
    counts[s] = static_cast<std::uint8_t>(counts[s] - size_of(m.cards));
    if (counts[s] == 0) {
      phase = Phase::end;
      winner = seat;
      turn = kNobody;
    }
  }

  /// Seat of history[i].
  Seat seat_of(int i) const;
  bool is_legal_call(Action call_index, const Rules& rules) const;
  /// Whether the move exists here, for any holder of the cards.
  bool is_playable(Action action, const Rules& rules) const;
};

/// Whether `m` (a play, not a pass) beats `last`.
inline bool beats(const Move& m, const Move& last) {
  if (last.kind == Kind::rocket) return false;
  if (m.kind == Kind::rocket) return true;
  if (m.kind == Kind::bomb) return last.kind != Kind::bomb || m.rank > last.rank;
  return m.kind == last.kind && m.length == last.length && m.rank > last.rank;
}

/// Score per seat of a finished hand.
void score(const Public& pub, const Rules& rules, double* returns);

}  // namespace bothost::doudizhu
