// The full truth of one hand of Dou Dizhu.
#pragma once
#include "core/game.h"
#include "doudizhu/generate.h"
#include "doudizhu/table.h"

namespace bothost::doudizhu {

class View;

/// Legal actions of the seat to act, whose hand this is; `out` has room for kMoveRoom. Returns the end.
Action* legal_of(const Public& pub, const Rules& rules, Cards hand, Action* out);
/// Appends them.
void append_legal(const Public& pub, const Rules& rules, Cards hand, ActionList& out);
/// A deal as `State::from_deal` takes it; hands, then bottom.
Json deal_json(const std::array<Cards, 4>& dealt, Seat first);

/// Trivially copyable, about 0.5 KB: searches copy it freely.
class State {
 public:
  State(const Rules& rules, Rng& rng);
  /// {"hands": [17 cards each], "bottom": 3 cards, "first": seat}
  static State from_deal(const Rules& rules, const Json& deal);
  Json deal() const;

  template <class Sink>
  void start(Sink&& sink) const {
    for (Seat s = 0; s < kSeats; ++s) sink(s, Event{Event::Kind::deal, s, pub_.first, 0, {dealt(s)}});
    if (rules_->bidding == Bidding::none)
      to_all(sink, {Event::Kind::landlord, pub_.landlord, kNobody, 0, {bottom_}});
  }

  SeatMask to_act() const { return pub_.turn == kNobody ? 0 : SeatMask{1} << pub_.turn; }
  bool terminal() const { return pub_.phase == Phase::end; }
  void legal(Seat seat, ActionList& out) const {
    if (seat == pub_.turn) append_legal(pub_, *rules_, hand(seat), out);
  }
  bool is_legal(Seat seat, Action action) const;
  /// One of the legal actions of the seat to act, uniformly.
  Action random_legal(Rng& rng) const {
    Action* const room = move_room();
    const Action* const end = legal_of(pub_, *rules_, hand(pub_.turn), room);
    return room[rng.below(static_cast<std::uint32_t>(end - room))];
  }

  template <class Sink>
  void apply_legal(Seat seat, Action action, Sink&& sink) {
    if (pub_.phase == Phase::bid) return apply_call(seat, action, sink);
    const Move& m = Universe::get()[action];
    hands_[at(seat)] -= m.cards;
    pub_.play(seat, action, m);
    to_all(sink, {Event::Kind::play, seat, kNobody, action, {}});
    if (pub_.phase == Phase::end) reveal(sink);
  }

  void returns(double* out) const { score(pub_, *rules_, out); }
  View view(Seat seat) const;

  const Rules& rules() const { return *rules_; }
  const Public& table() const { return pub_; }
  Cards hand(Seat s) const { return hands_[at(s)]; }
  Cards bottom() const { return bottom_; }
  /// The 17 cards that the seat was dealt.
  Cards dealt(Seat s) const {
    const auto i = at(s);
    const bool took = pub_.landlord == s && pub_.phase >= Phase::play;
    return hands_[i] + pub_.played[i] + gone_[i] - (took ? bottom_ : 0);
  }

  /// What each seat was dealt, and the bottom.
  std::array<Cards, 4> whole_deal() const { return {dealt(0), dealt(1), dealt(2), bottom_}; }

  /// The first seat of the deal; of a sample from a view that does not know it, the landlord stands in.
  Seat first() const { return pub_.first == kNobody ? pub_.landlord : pub_.first; }

  /// Scratch of this thread for kMoveRoom actions.
  static Action* move_room();

 private:
  friend class View;
  State() = default;
  void begin(Seat first);

  template <class Sink>
  static void to_all(Sink& sink, const Event& e) {
    for (Seat s = 0; s < kSeats; ++s) sink(s, e);
  }

  template <class Sink>
  void apply_call(Seat seat, Action action, Sink& sink) {
    pub_.call(seat, action, *rules_);
    to_all(sink, {Event::Kind::bid, seat, kNobody, action, {}});
    if (pub_.phase == Phase::bottom) {
      take_bottom();
      to_all(sink, {Event::Kind::landlord, pub_.landlord, kNobody, 0, {bottom_}});
    } else if (pub_.phase == Phase::end) {
      reveal(sink);
    }
  }

  std::uint32_t events_seen() const {
    return 1u + pub_.size + (pub_.phase >= Phase::play && pub_.landlord != kNobody) + terminal();
  }

  void take_bottom() {
    hands_[at(pub_.landlord)] += bottom_;
    pub_.show_bottom(bottom_);
  }

  template <class Sink>
  void reveal(Sink& sink) const {
    to_all(sink, {Event::Kind::reveal, kNobody, first(), 0, whole_deal()});
  }

  const Rules* rules_ = nullptr;
  std::array<Cards, kSeats> hands_{};
  Cards bottom_ = 0;
  /// Of a sample from a view that does not know the history: cards that left a hand unseen, and how many more
  /// events (modulo 2^32) the view has received than its history shows.
  std::array<Cards, kSeats> gone_{};
  std::uint32_t seq_offset_ = 0;
  Public pub_;
};

}  // namespace bothost::doudizhu
