#include "doudizhu/view.h"

namespace bothost::doudizhu {
namespace {

Cards gather(const std::uint8_t* from, int n) {
  Cards out = 0;
  for (int i = 0; i < n; ++i) out += card(from[i]);
  return out;
}

}  // namespace

void View::observe(const Event& e) {
  switch (e.kind) {
    case Event::Kind::deal: observe_deal(e); break;
    case Event::Kind::bid:
      require(pub_.phase == Phase::bid, "a bid outside the bidding");
      require(e.seat == pub_.turn, "a bid out of turn");
      require(e.action >= Universe::get().first_call() &&
                  pub_.is_legal_call(e.action - Universe::get().first_call(), *rules_),
              "this bid is not allowed now");
      pub_.call(e.seat, e.action, *rules_);
      break;
    case Event::Kind::landlord: observe_landlord(e); break;
    case Event::Kind::play: observe_play(e); break;
    case Event::Kind::reveal: observe_reveal(e); break;
  }
  ++seq_;
}

void View::observe_deal(const Event& e) {
  require(pub_.phase == Phase::deal, "the cards were dealt before");
  require(e.seat == seat_, "the deal of another seat");
  require(e.first >= 0 && e.first < kSeats, "the first seat is unknown");
  require(size_of(checked(e.cards[0])) == kDealSize, "a deal is 17 cards");
  hand_ = e.cards[0];
  pub_.begin_bidding(e.first, *rules_);
}

void View::observe_landlord(const Event& e) {
  require(pub_.phase == Phase::bottom, "the bottom cards are shown after the bidding");
  require(e.seat == pub_.landlord, "this seat is not the landlord");
  require(size_of(checked(e.cards[0])) == kBottomSize, "the bottom is 3 cards");
  require(contains(kDeck - hand_, e.cards[0]), "a bottom card is in the own hand");
  pub_.show_bottom(e.cards[0]);
  if (pub_.landlord == seat_) hand_ += e.cards[0];
}

void View::observe_play(const Event& e) {
  require(pub_.phase == Phase::play, "a play outside the play");
  require(e.seat == pub_.turn, "a play out of turn");
  require(pub_.is_playable(e.action, *rules_),
          "this play does not beat the last one, or is none under these rules");
  const Move& m = Universe::get()[e.action];
  if (e.seat == seat_) {
    require(contains(hand_, m.cards), "a card that the hand does not hold");
    hand_ -= m.cards;
  } else {
    require(contains(unseen(), m.cards), "a card that was seen elsewhere");
    require(size_of(m.cards) <= pub_.counts[at(e.seat)], "more cards than the seat holds");
  }
  pub_.play(e.seat, e.action, m);
  if (e.action != kPass) check_feasible();
}

void View::observe_reveal(const Event& e) {
  require(pub_.phase == Phase::end && !revealed_, "hands are revealed once, after the end");
  Cards all = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    require(size_of(checked(e.cards[i])) == (i < 3 ? kDealSize : kBottomSize),
            "a deal is 17 + 17 + 17 + 3 cards");
    all += e.cards[i];
    require(contains(kDeck, all), "the revealed cards are not one deck");
  }
  require(e.first >= 0 && e.first < kSeats && (pub_.first == kNobody || e.first == pub_.first),
          "another first seat");
  require(pub_.bottom == 0 || e.cards[3] == pub_.bottom, "other bottom cards");
  for (Seat s = 0; s < kSeats; ++s) {
    const Cards total = e.cards[at(s)] + (pub_.landlord == s ? e.cards[3] : 0);
    require(contains(total, pub_.played[at(s)] + (s == seat_ ? hand_ : 0)),
            "a seat played or held other cards");
  }
  revealed_ = true;
  dealt_ = e.cards;
  pub_.first = e.first;
}

void View::apply(Action action) {
  const bool call = action >= Universe::get().first_call();
  observe({call ? Event::Kind::bid : Event::Kind::play, pub_.turn, kNobody, action, {}});
}

Cards View::hidden_bottom() const {
  if (pub_.bottom == 0 || pub_.landlord == kNobody) return 0;
  const auto l = at(pub_.landlord);
  return minus(pub_.bottom, pub_.played[l] + (pub_.landlord == seat_ ? hand_ : 0));
}

void View::check_feasible() const {
  Cards seen = hand_;
  for (Seat s = 0; s < kSeats; ++s) {
    require(contains(kDeck - seen, pub_.played[at(s)]), "more cards of a rank than the deck holds");
    seen += pub_.played[at(s)];
    require(gone(s) >= 0, "more cards than a seat was dealt");
  }
  const Cards forced = hidden_bottom();
  require(contains(kDeck - seen, forced), "a bottom card was seen with another seat");
  if (pub_.landlord != kNobody) {
    const int room = gone(pub_.landlord) + (pub_.landlord == seat_ ? 0 : pub_.counts[at(pub_.landlord)]);
    require(size_of(forced) <= room, "the landlord still holds more bottom cards than that");
  }
}

State View::sample(Rng& rng) const {
  if (pub_.phase == Phase::deal) return State(*rules_, rng);
  State s;
  s.rules_ = rules_;
  s.pub_ = pub_;
  s.bottom_ = revealed_ ? dealt_[3] : pub_.bottom;
  std::uint8_t pool[kDeckSize], region[kDeckSize];
  const Cards forced = hidden_bottom();
  int left = spread(unseen() - forced, pool);
  rng.shuffle(pool, pool + left);
  for (Seat seat = 0; seat < kSeats; ++seat) {
    const auto i = at(seat);
    const int outside = gone(seat), need = outside + (seat == seat_ ? 0 : pub_.counts[i]);
    int n = 0;
    if (revealed_) {
      const Cards total = dealt_[i] + (seat == pub_.landlord ? dealt_[3] : 0);
      n = spread(total - pub_.played[i] - (seat == seat_ ? hand_ : 0), region);
    } else {
      if (seat == pub_.landlord) n = spread(forced, region);
      while (n < need) region[n++] = pool[--left];
    }
    if (outside > 0) rng.shuffle(region, region + n);
    s.gone_[i] = gather(region, outside);
    s.hands_[i] = seat == seat_ ? hand_ : gather(region + outside, n - outside);
  }
  if (s.bottom_ == 0 && pub_.phase < Phase::play) {
    s.bottom_ = gather(pool, kBottomSize);
    if (pub_.phase == Phase::bottom) s.take_bottom();
  } else if (s.bottom_ == 0 && pub_.landlord == kNobody) {
    s.bottom_ = gather(pool, kBottomSize);
  } else if (s.bottom_ == 0) {
    const auto l = at(pub_.landlord);
    const int n = spread(s.hands_[l] + s.pub_.played[l] + s.gone_[l], region);
    rng.shuffle(region, region + n);
    s.bottom_ = gather(region, kBottomSize);
  }
  s.seq_offset_ = pub_.complete ? 0 : seq_ - s.events_seen();
  return s;
}

std::optional<Record> View::record() const {
  if (!revealed_ || !pub_.complete) return std::nullopt;
  Record out{deal_json(dealt_, pub_.first), {}};
  for (int i = 0; i < pub_.size; ++i) out.actions.emplace_back(pub_.seat_of(i), pub_.history[at(i)]);
  return out;
}

/// Rebuilds a complete view, event by event. bottom 0: it was not shown yet.
void View::replay(Cards dealt, Seat first, Cards bottom, std::span<const Action> history) {
  observe({Event::Kind::deal, seat_, first, 0, {dealt}});
  const auto show = [&] {
    if (pub_.phase == Phase::bottom && bottom != 0)
      observe({Event::Kind::landlord, pub_.landlord, kNobody, 0, {bottom}});
  };
  show();
  for (const Action a : history) {
    apply(a);
    show();
  }
  require(bottom == pub_.bottom, "bottom cards before the bidding is over");
}

void View::check_fields() const {
  const auto& u = Universe::get();
  const auto& p = pub_;
  require(p.phase == Phase::play || p.phase == Phase::end,
          "a position without its history must be within the play");
  require(p.landlord >= 0 && p.landlord < kSeats, "the landlord is unknown");
  require(p.calls == 0 || p.first != kNobody, "bids without the first seat");
  require(p.calls <= 4 && p.calls <= p.size, "too many bids");
  int cards = 0;
  for (Seat s = 0; s < kSeats; ++s) {
    const int n = p.counts[at(s)];
    require(n <= dealt_size_of(s), "more cards than a seat was dealt");
    require((n == 0) == (p.phase == Phase::end && s == p.winner), "the hand ends when a seat has no cards");
    cards += n;
  }
  require(size_of(hand_) == p.counts[at(seat_)], "the hand is not of its counted size");
  require(p.size + 3 * cards <= kMaxHistory, "the history is too long");
  for (std::size_t i = 0; i < p.size; ++i)
    require(i < p.calls ? p.history[i] >= u.first_call() && p.history[i] < u.num_actions()
                        : p.history[i] < u.first_call(),
            "the history holds something that is no action");
  const bool over = p.phase == Phase::end;
  require(over ? p.turn == kNobody && p.winner >= 0 && p.winner < kSeats
               : p.winner == kNobody && p.turn >= 0 && p.turn < kSeats,
          "whose turn is it");
  require(p.last_seat >= 0 && p.last_seat < kSeats, "who played last is unknown");
  const Seat next = over ? next_seat(p.winner) : p.turn;
  if (p.last == 0) {
    require(!over && p.turn == p.last_seat && (p.passes == 0 || p.passes == 2), "who leads");
  } else {
    require(p.last < u.first_call() && rules_->allows(u[p.last]), "the last move is not one of these rules");
    require(contains(p.played[at(p.last_seat)], u[p.last].cards),
            "the last move is not among the cards played");
    require(p.passes <= 1 && (p.last_seat + 1 + p.passes) % 3 == next,
            "the last move, its seat and the turn disagree");
  }
  require(p.stake >= 1 && p.stake <= 16, "the stake is out of range");
  require(p.bombs <= 14, "too many bombs");
  for (const auto n : p.plays) require(n <= 20, "too many plays");
}

}  // namespace bothost::doudizhu
