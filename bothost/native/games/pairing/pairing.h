// The four-colour pairing game: two players, 52 cards, turns that are walks through a phase machine.
//
// Deal: a hand each, a pool face up, a deck. In a turn the mover enters phases and selects cards:
//   A         replace: a hand card goes under the deck, known to its owner alone, and the top card is drawn
//   B         forced pair: a hand card with a pool card of any colour
//   discard   only where no hand card has the colour of a pool card: discard one, draw one to the hand, one
//             to the pool
//   pairing   a hand card with a pool card of the same colour: both are collected and score; the turn ends
//   final     no match and no discard left: discard one, the turn ends
// A and B cost a charge each. After each pair the pool is topped up. An empty hand ends or skips the turn;
// the hand ends when both are empty. returns() is the lead of each seat: own score less the other's.
//
// Events, in the order of a hand ("S" the actor; cards as g7, r12; "?" where the receiver does not see one):
//   deal S hand=… pool=…          to seat S alone; more fields where the hand did not begin with a fresh deal
//   enter S PHASE, select S CARD  to S alone: what was entered and selected so far, but the last selection
//   pair S c p, force S c p, replace S c|?, discard S c, final S c    public, when the quota is reached
//   draw S c…|?…                  drawn to the hand
//   refill - c…                   drawn to the pool
//   reveal - hands=…|… deck=… aside=… replaced=…     the last: all that was hidden
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/game.h"
#include "pairing/position.h"

namespace bothost {

struct Pairing {
  static constexpr std::string_view kName = "pairing";
  static constexpr int kFormatVersion = 1;

  using Rules = pairing::Rules;
  using Card = pairing::Card;
  using CardSet = pairing::CardSet;
  template <class T>
  using BySeat = pairing::BySeat<T>;

  /// What the last event of a hand tells.
  struct Reveal {
    /// The deal without any "?".
    pairing::Deal deal;
    /// The cards of all replacements, in their order.
    std::vector<Card> replaced;
    /// Of a deal whose queue has grown to this tail.
    static std::shared_ptr<const Reveal> of(const pairing::Deal& deal, int tail) {
      const auto queue = deal.queue.begin();
      return std::make_shared<Reveal>(
          Reveal{deal.as_dealt(), std::vector<Card>(queue + deal.start.tail, queue + tail)});
    }
  };

  struct Event {
    /// pair .. final_discard are in the order of pairing::Effect.
    enum class Kind : std::uint8_t {
      pair,
      force,
      replace,
      discard,
      final_discard,
      deal,
      enter,
      select,
      draw,
      refill,
      reveal
    } kind;
    Seat seat = kNobody;
    /// Cards of the event in the order of its text; of enter, the phase.
    std::uint8_t count = 0;
    std::array<std::uint8_t, 20> cards{};
    /// deal: as its receiver sees it.
    std::shared_ptr<const pairing::Deal> deal{};
    std::shared_ptr<const Reveal> reveal{};

    std::span<const std::uint8_t> list() const { return {cards.data(), count}; }
    std::string text() const;
    static Event parse(const Rules& rules, std::string_view text);
  };

  class View;
  class Rebuilder;

  class State {
   public:
    State(const Rules& rules, Rng& rng);
    /// A deal without any "?". Throws InvalidInput.
    State(const Rules& rules, const pairing::Deal& deal);
    /// {"hands": [[…], […]], "pool": […], "deck": [top, …]}, or with more keys any position at the start of a
    /// phase walk: "libraries", "discards", "charges", "scores", "to_move", "turn", "discards_used", "known",
    /// "aside".
    static State from_deal(const Rules& rules, const Json& deal);
    Json deal() const;

    template <class Sink>
    void start(Sink&& sink) const {
      if constexpr (!kDiscards<Sink>)
        for (Seat seat = 0; seat < 2; ++seat) sink(seat, deal_event(seat));
    }
    SeatMask to_act() const { return now_.mover == kNobody ? 0 : SeatMask{1} << now_.mover; }
    bool terminal() const { return now_.mover == kNobody; }
    void legal(Seat seat, ActionList& out) const;
    bool is_legal(Seat seat, Action action) const {
      return action < pairing::kNumActions && legal_mask(seat) >> action & 1;
    }
    template <class Sink>
    void apply_legal(Seat seat, Action action, Sink&& sink);
    void returns(double* out) const {
      out[0] = now_.score[0] - now_.score[1];
      out[1] = -out[0];
    }
    View view(Seat seat) const;

    const pairing::Position& position() const { return now_; }
    const pairing::Cursor& cursor() const { return cursor_; }
    /// Cards that a seat has never seen, while the hand lasts.
    CardSet unseen(Seat seat) const {
      const auto me = at(seat);
      return pairing::kAllCards & ~(now_.hand[me] | now_.pool | now_.library[0] | now_.library[1] |
                                    now_.discards | replaced_[me] | deal_.known[me]);
    }
    const pairing::Queue& queue() const { return deal_.queue; }
    const Rules& rules() const { return *rules_; }
    /// The state that these actions (of a full log) lead to. Throws InvalidInput.
    static State replay(const Rules& rules, const pairing::Deal& deal, const pairing::Log& log);

   private:
    friend class View;
    /// Bit i is set when action i is legal; 0 for a seat that is not asked.
    std::uint64_t legal_mask(Seat seat) const;
    void begin();
    template <class Sink>
    void execute(const pairing::Row& row, Sink&& sink);
    Event deal_event(Seat seat) const;
    Event reveal_event() const;
    template <class Sink>
    void tell(Sink&& sink, Event event, std::size_t first_hidden = 99);

    const Rules* rules_;
    /// As dealt, but for the queue: it grows.
    pairing::Deal deal_;
    pairing::Position now_;
    pairing::Cursor cursor_;
    pairing::Log log_;
    BySeat<std::uint32_t> seq_{};
    /// Entries of the queue that a seat has learnt, bit by bit.
    BySeat<std::uint64_t> known_queue_{};
    /// Cards that a seat put under the deck at any time.
    BySeat<CardSet> replaced_{};
  };

  class View {
   public:
    View(const Rules& rules, Seat seat);
    bool operator==(const View& other) const;
    void observe(const Event& event);
    Seat seat() const { return seat_; }
    std::uint32_t seq() const { return seq_; }
    bool asked() const { return stage_ == Stage::running && now_.mover == seat_ && !now_.owes(); }
    Seat to_act() const { return stage_ == Stage::running && !now_.owes() ? now_.mover : kNobody; }
    bool terminal() const { return stage_ != Stage::undealt && now_.mover == kNobody; }
    /// Of this seat: a name of the machine while it is asked, "waiting", "end", or "deal" before the first
    /// event.
    std::string_view phase() const;
    void legal(ActionList& out) const;
    bool is_legal(Action action) const { return legal_mask() >> action & 1; }
    /// Folds enter, select, or (at the last selection) the effect's event; what it draws is not certain.
    void apply(Action action);
    /// Uniform over all deals, and replacements that this seat did not see, under which everything that it
    /// saw was legal. After apply() of a last selection the state stands behind the draws. Throws
    /// InvalidInput where no deal fits, which only happens when events or a snapshot were wrong.
    State sample(Rng& rng) const;
    void write(ByteWriter& out) const;
    static View read(const Rules& rules, ByteReader& in);
    Json to_json() const;
    /// Needs "seat", "hands" (the other as "?" or as a count), "pool", "deck" ("?" and known cards, or a
    /// count) and "to_move"; the rest of to_json's current position where known. Unseen cards in no place lie
    /// aside.
    static View from_snapshot(const Rules& rules, const Json& json);
    std::optional<Record> record() const;

    const pairing::Position& position() const { return now_; }
    const pairing::Cursor& cursor() const { return cursor_; }
    const Rules& rules() const { return *rules_; }
    /// Cards that this seat has never seen: in the other hand, the deck, or aside.
    CardSet unseen() const { return pairing::kAllCards & ~seen_; }

   private:
    friend class State;
    friend class Rebuilder;
    /// closed: ended without a record.
    enum class Stage : std::uint8_t { undealt, running, revealed, closed };

    std::uint64_t legal_mask() const;
    void fold_deal(const Event& event);
    void fold_own(const Event& event);
    void fold_effect(const Event& event);
    void fold_draw(const Event& event);
    void fold_reveal(const Event& event);
    void settle();
    void push_effect(const pairing::Row& row, Card a, Card b);
    /// Cards that the deck or the other hand may hold, as far as open cards and known deck places tell.
    CardSet elsewhere() const;
    CardSet known_in_deck() const;
    /// The other seat's replacements by the reveal, put into the log.
    void learn_replaced(const std::vector<Card>& replaced);
    Event completed(Action last) const;
    /// From all members of to_json.
    static View from_history(const Rules& rules, const Json& json);
    /// Folds the deal, log and queue of a decoded view anew: refuses what cannot have happened.
    static View rebuild(const View& raw);
    JsonObject current_json() const;

    const Rules* rules_;
    Seat seat_;
    Stage stage_ = Stage::undealt;
    std::uint32_t seq_ = 0;
    /// As this seat knows it now; the queue holds all that it has learnt of the deck.
    pairing::Deal deal_;
    pairing::Position now_;
    pairing::Cursor cursor_;
    pairing::Log log_;
    CardSet seen_ = 0;
  };

  static constexpr auto& kPresets = pairing::kPresets;
  static const std::vector<Block>& blocks();
  static std::string notation(const Rules& rules, Action action);
  static Action parse_action(const Rules& rules, std::string_view text);
  static void encode(const View& view, int block, float* out);
  static void encode_actions(const View& view, int block, std::span<const Action> actions, float* out);
  static void encode_oracle(const State& state, Seat seat, int block, float* out);
  /// Of the rule player with its usual weights.
  static Action rule_action(const View& view);
};

template <class Sink>
void Pairing::State::apply_legal(Seat seat, Action action, Sink&& sink) {
  log_.push(seat, static_cast<std::uint8_t>(action));
  const auto mover = at(seat);
  if (action >= pairing::kCards) {
    cursor_.enter(pairing::entered_phase(action));
    ++seq_[mover];
    if constexpr (!kDiscards<Sink>) sink(seat, Event{Event::Kind::enter, seat, 1, {cursor_.phase}});
    return;
  }
  const pairing::Row& row = *rules_->phases().row(cursor_.phase, now_.conditions(*rules_));
  cursor_.select(static_cast<Card>(action));
  if (cursor_.count == row.quota) return execute(row, sink);
  ++seq_[mover];
  if constexpr (!kDiscards<Sink>)
    sink(seat, Event{Event::Kind::select, seat, 1, {static_cast<Card>(action)}});
}

/// Tells both seats; the seat that is not the actor sees "?" from card `first_hidden` on.
template <class Sink>
void Pairing::State::tell(Sink&& sink, Event event, std::size_t first_hidden) {
  for (Seat to = 0; to < 2; ++to) {
    Event seen = event;
    if (to != event.seat)
      for (std::size_t i = first_hidden; i < event.count; ++i) seen.cards[i] = pairing::kHidden;
    sink(to, seen);
  }
}

template <class Sink>
void Pairing::State::execute(const pairing::Row& row, Sink&& sink) {
  using pairing::bit;
  const Seat seat = now_.mover;
  const auto both = [&] { ++seq_[0], ++seq_[1]; };
  const Card a = cursor_.items[0], b = cursor_.items[1];
  now_.execute(*rules_, row, a, b, deal_.queue);
  const bool hides = row.effect == pairing::Effect::replace;
  if (hides) {
    known_queue_[at(seat)] |= std::uint64_t{1} << (now_.tail - 1);
    replaced_[at(seat)] |= bit(a);
  }
  both();
  if constexpr (!kDiscards<Sink>)
    tell(sink, Event{static_cast<Event::Kind>(row.effect), seat, row.quota, {a, b}}, hides ? 0 : 99);

  if (now_.owed_hand) {
    Event event{Event::Kind::draw, seat, 0};
    while (now_.owed_hand) {
      const Card card = deal_.queue[now_.head];
      known_queue_[at(seat)] |= std::uint64_t{1} << now_.head;
      now_.draw_to_hand(card);
      if constexpr (!kDiscards<Sink>) event.cards[event.count++] = card;
    }
    both();
    if constexpr (!kDiscards<Sink>) tell(sink, event, 0);
  }
  if (now_.owed_pool) {
    Event event{Event::Kind::refill, kNobody, 0};
    while (now_.owed_pool) {
      const Card card = deal_.queue[now_.head];
      for (auto& known : known_queue_) known |= std::uint64_t{1} << now_.head;
      now_.draw_to_pool(card);
      if constexpr (!kDiscards<Sink>) event.cards[event.count++] = card;
    }
    both();
    if constexpr (!kDiscards<Sink>) tell(sink, event);
  }
  now_.settle();
  cursor_.enter(now_.phase);
  log_.settled = log_.size;
  if (terminal()) {
    both();
    if constexpr (!kDiscards<Sink>) tell(sink, reveal_event());
  }
}

}  // namespace bothost
