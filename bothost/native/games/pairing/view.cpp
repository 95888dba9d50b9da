#include <algorithm>
#include <string>

#include "pairing/deal.h"
#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

namespace {

[[noreturn]] void wrong(const std::string& what) { throw InvalidInput("pairing: " + what); }

}  // namespace

Pairing::View::View(const Rules& rules, Seat seat) : rules_(&rules), seat_(seat) {
  if (seat != 0 && seat != 1) wrong("seat " + std::to_string(seat) + " is neither 0 nor 1");
}

bool Pairing::View::operator==(const View& other) const {
  return *rules_ == *other.rules_ && seat_ == other.seat_ && stage_ == other.stage_ && seq_ == other.seq_ &&
         deal_ == other.deal_ && now_ == other.now_ && cursor_ == other.cursor_ && log_ == other.log_ &&
         seen_ == other.seen_;
}

std::string_view Pairing::View::phase() const {
  if (stage_ == Stage::undealt) return "deal";
  if (terminal()) return "end";
  return asked() ? kPhaseNames[cursor_.phase] : "waiting";
}

std::uint64_t Pairing::View::legal_mask() const {
  return asked() ? legal_actions(*rules_, now_, cursor_) : 0;
}

void Pairing::View::legal(ActionList& out) const { append_bits(legal_mask(), out); }

CardSet Pairing::View::known_in_deck() const {
  CardSet set = 0;
  for (std::size_t i = now_.head; i < now_.tail; ++i) set |= bit(deal_.queue[i]);
  return set & kAllCards;
}

CardSet Pairing::View::elsewhere() const {
  return kAllCards & ~(now_.hand[at(seat_)] | now_.pool | now_.library[0] | now_.library[1] | now_.discards |
                       known_in_deck());
}

void Pairing::View::observe(const Event& event) {
  using Kind = Event::Kind;
  if (event.kind == Kind::deal) {
    fold_deal(event);
  } else if (event.kind == Kind::reveal) {
    fold_reveal(event);
  } else {
    if (stage_ != Stage::running || terminal())
      wrong("event \"" + event.text() + "\" outside of a running hand");
    if (event.kind == Kind::enter || event.kind == Kind::select)
      fold_own(event);
    else if (event.kind == Kind::draw || event.kind == Kind::refill)
      fold_draw(event);
    else
      fold_effect(event);
  }
  ++seq_;
}

void Pairing::View::fold_deal(const Event& event) {
  if (stage_ != Stage::undealt) wrong("a second deal");
  if (!event.deal || event.seat != seat_) wrong("a deal for another seat");
  Deal deal = *event.deal;
  check_deal(*rules_, deal, seat_);
  deal.aside = 0;
  deal_ = deal;
  stage_ = Stage::running;
  now_ = deal_.start;
  now_.hand[at(other(seat_))] = 0;
  cursor_.enter(now_.phase);
  seen_ = now_.hand[at(seat_)] | now_.pool | now_.library[0] | now_.library[1] | now_.discards |
          deal_.known[at(seat_)];
}

void Pairing::View::fold_own(const Event& event) {
  if (event.seat != seat_ || event.count != 1) wrong("\"" + event.text() + "\" is not for this seat");
  const bool enters = event.kind == Event::Kind::enter;
  const int action = enters ? enter_action(event.cards[0]) : event.cards[0];
  if (action < 0 || action >= kNumActions || (action >= kCards) != enters || !(legal_mask() >> action & 1))
    wrong("\"" + event.text() + "\" is not possible now");
  if (enters) {
    cursor_.enter(event.cards[0]);
  } else {
    cursor_.select(event.cards[0]);
    if (cursor_.count >= rules_->phases().row(cursor_.phase, now_.conditions(*rules_))->quota)
      wrong("\"" + event.text() + "\" is the last selection: its effect tells it");
  }
  log_.push(seat_, static_cast<std::uint8_t>(action));
}

void Pairing::View::fold_effect(const Event& event) {
  const auto refuse = [&] { wrong("\"" + event.text() + "\" is not possible now"); };
  if (event.seat != now_.mover || now_.owes()) refuse();
  const auto effect = static_cast<Effect>(event.kind);
  const bool own = event.seat == seat_;
  const Machine& machine = rules_->phases();
  const Row* row = machine.row_of(
      effect, own ? now_.conditions(*rules_) : now_.conditions(*rules_, effect == Effect::pair));
  if (!row || event.count != row->quota || !(machine.is_hub(now_.phase) || row->phase == now_.phase))
    refuse();
  const CardSet held = own ? now_.hand[at(seat_)] : elsewhere();
  for (std::size_t i = 0; i < event.count; ++i) {
    const bool hidden = !own && effect == Effect::replace;
    if (hidden ? event.cards[i] != kHidden
               : !(now_.choices(*row, i, held, event.cards[0]) & bit(event.cards[i])))
      refuse();
  }
  push_effect(*row, event.cards[0], event.cards[1]);
}

void Pairing::View::push_effect(const Row& row, Card a, Card b) {
  const Seat mover = now_.mover;
  log_.cut();
  if (rules_->phases().is_hub(now_.phase))
    log_.push(mover, static_cast<std::uint8_t>(enter_action(row.phase)));
  log_.push(mover, a);
  if (row.quota == 2) log_.push(mover, b);
  log_.settled = log_.size;
  now_.execute(*rules_, row, a, b, deal_.queue);
  seen_ |= (bit(a) | (row.quota == 2 ? bit(b) : 0)) & kAllCards;
  settle();
}

void Pairing::View::settle() {
  if (!now_.owes()) now_.settle();
  cursor_.enter(now_.phase);
}

void Pairing::View::fold_draw(const Event& event) {
  const bool to_hand = event.kind == Event::Kind::draw;
  const auto refuse = [&] { wrong("\"" + event.text() + "\" is not what is drawn now"); };
  if (to_hand ? event.seat != now_.mover || event.count != now_.owed_hand
              : event.seat != kNobody || now_.owed_hand || event.count != now_.owed_pool)
    refuse();
  if (event.count == 0) refuse();
  for (const Card card : event.list()) {
    if (to_hand && event.seat != seat_) {
      if (card != kHidden) refuse();
      now_.draw_to_hand(kHidden);
      continue;
    }
    Card& top = deal_.queue[now_.head];
    if (top != kHidden ? card != top : !(elsewhere() & bit(card))) refuse();
    top = card;
    seen_ |= bit(card);
    to_hand ? now_.draw_to_hand(card) : now_.draw_to_pool(card);
  }
  settle();
}

void Pairing::View::learn_replaced(const std::vector<Card>& replaced) {
  std::size_t next = 0;
  for (std::size_t i = 1; i < log_.size; ++i) {
    if (Log::what(log_.entries[i - 1]) != enter_action(kSkillA)) continue;
    const std::uint8_t what = Log::what(log_.entries[i]);
    if (next >= replaced.size() || replaced[next] >= kCards || (what != kHidden && what != replaced[next]))
      wrong("the reveal's replacements are not those of this hand");
    log_.set(i, replaced[next]);
    deal_.queue[deal_.start.tail + next] = replaced[next];
    ++next;
  }
  if (next != replaced.size()) wrong("the reveal's replacements are not those of this hand");
}

void Pairing::View::fold_reveal(const Event& event) {
  if (stage_ != Stage::running || !terminal() || !event.reveal) wrong("a reveal before the end of the hand");
  const Deal& revealed = event.reveal->deal;
  Deal expected = revealed;
  expected.start.hand[at(other(seat_))] &= deal_.known[at(seat_)];
  if (!(expected.start == deal_.start)) {
    // what a lobby told after a reconnect is not where the hand began: there is no record of it
    if (deal_.fresh(*rules_)) wrong("the reveal tells another deal");
    stage_ = Stage::closed;
    return;
  }
  const Deal before = deal_;
  deal_.start = revealed.start;
  deal_.aside = revealed.aside;
  for (std::size_t i = 0; i < revealed.start.tail; ++i) deal_.queue[i] = revealed.queue[i];
  learn_replaced(event.reveal->replaced);
  for (std::size_t i = 0; i < now_.tail; ++i)
    if (before.queue[i] != kHidden && before.queue[i] != deal_.queue[i])
      wrong("the reveal tells another deck");
  stage_ = Stage::revealed;
  seen_ = kAllCards;
  View replayed = State::replay(*rules_, deal_.as_dealt(), log_).view(seat_);
  replayed.seq_ = seq_;
  if (!(replayed == *this)) wrong("the reveal does not lead to this end");
}

Pairing::Event Pairing::View::completed(Action last) const {
  const Row& row = *rules_->phases().row(cursor_.phase, now_.conditions(*rules_));
  const auto card = static_cast<Card>(last);
  if (cursor_.count + 1 < row.quota) return Event{Event::Kind::select, seat_, 1, {card}};
  Event event{static_cast<Event::Kind>(row.effect), seat_, row.quota};
  std::copy_n(cursor_.items.begin(), cursor_.count, event.cards.begin());
  event.cards[cursor_.count] = card;
  return event;
}

void Pairing::View::apply(Action action) {
  if (action >= kCards)
    observe(Event{Event::Kind::enter, seat_, 1, {entered_phase(action)}});
  else
    observe(completed(action));
}

std::optional<Record> Pairing::View::record() const {
  if (stage_ != Stage::revealed) return std::nullopt;
  Record out{deal_json(*rules_, deal_, kNobody), {}};
  for (const std::uint8_t entry : log_.all()) out.actions.emplace_back(Log::seat(entry), Log::what(entry));
  return out;
}

}  // namespace bothost
