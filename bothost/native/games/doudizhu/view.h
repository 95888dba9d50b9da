// What one seat of Dou Dizhu may know.
#pragma once
#include "core/game.h"
#include "doudizhu/state.h"

namespace bothost::doudizhu {

class View {
 public:
  View(const Rules& rules, Seat seat) : rules_(&rules), seat_(seat) {}

  bool operator==(const View& o) const {
    return *rules_ == *o.rules_ && seat_ == o.seat_ && seq_ == o.seq_ && hand_ == o.hand_ &&
           revealed_ == o.revealed_ && dealt_ == o.dealt_ && pub_ == o.pub_;
  }

  void observe(const Event& event);
  Seat seat() const { return seat_; }
  std::uint32_t seq() const { return seq_; }
  bool asked() const { return pub_.turn == seat_; }
  Seat to_act() const { return pub_.turn; }
  bool terminal() const { return pub_.phase == Phase::end; }
  std::string_view phase() const { return kPhaseNames[at(pub_.phase)]; }
  void legal(ActionList& out) const {
    if (asked()) append_legal(pub_, *rules_, hand_, out);
  }
  bool is_legal(Action action) const;
  /// A call or play of the seat on turn.
  void apply(Action action);

  /// Every assignment of the unseen cards, taken as distinct cards, to the places where they may lie is
  /// equally likely. Bottom cards that the landlord has not played since lie in his hand.
  State sample(Rng& rng) const;

  /// Complete views as the events they came from, others field by field. About 2 bytes a move and 12 more.
  void write(ByteWriter& writer) const;
  static View read(const Rules& rules, ByteReader& reader);
  Json to_json() const;
  /// Keys of `to_json`; needed: seat and hand. Known bids, bottom and history (all plays since the deal) make
  /// the view complete. Without a history: "landlord", "counts" (default: none has played), "turn" and "last"
  /// ([seat, move] to beat, null to lead) tell the position, "played" what is known of the cards gone,
  /// "bombs" and "plays" what is known for the score; everything else is sampled by `sample`.
  static View from_snapshot(const Rules& rules, const Json& json);
  std::optional<Record> record() const;

  const Rules& rules() const { return *rules_; }
  const Public& table() const { return pub_; }
  Cards hand() const { return hand_; }
  /// The other seats' hands together with what the view does not know to be played; while bidding also the
  /// bottom.
  Cards unseen() const { return kDeck - hand_ - pub_.played[0] - pub_.played[1] - pub_.played[2]; }

 private:
  void observe_deal(const Event& e);
  void observe_landlord(const Event& e);
  void observe_play(const Event& e);
  void observe_reveal(const Event& e);
  /// 17, or 20 for the landlord.
  int dealt_size_of(Seat s) const {
    return kDealSize + (pub_.phase >= Phase::play && pub_.landlord == s ? kBottomSize : 0);
  }
  /// Number of cards that left the seat's hand unseen.
  int gone(Seat s) const {
    const auto i = at(s);
    return dealt_size_of(s) - pub_.counts[i] - size_of(pub_.played[i]);
  }
  /// Bottom cards that must still lie with the landlord, in places this view does not see.
  Cards hidden_bottom() const;
  /// Throws InvalidInput where no deal fits.
  void check_feasible() const;
  /// Throws InvalidInput where fields that came from outside contradict each other.
  void check_fields() const;
  void replay(Cards dealt, Seat first, Cards bottom, std::span<const Action> history);
  void load_history(const Json& json);
  void load_position(const Json& json);
  void load_last(const Json& json);
  Cards own_dealt() const {
    return hand_ + pub_.played[at(seat_)] -
           (pub_.landlord == seat_ && pub_.phase >= Phase::play ? pub_.bottom : 0);
  }

  friend class State;
  const Rules* rules_;
  Seat seat_;
  bool revealed_ = false;
  std::uint32_t seq_ = 0;
  Cards hand_ = 0;
  /// The deal once revealed: hands and bottom.
  std::array<Cards, 4> dealt_{};
  Public pub_;
};

}  // namespace bothost::doudizhu
