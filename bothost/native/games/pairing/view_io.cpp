// Views as bytes and as JSON. Both hold what a view cannot do without (its deal, the log, what it learnt of
// the deck); reading folds that anew, so that nothing gets in that could not have happened.
#include <algorithm>
#include <string>

#include "pairing/deal.h"
#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

namespace {

constexpr std::array<std::string_view, 4> kStages{"deal", "running", "revealed", "closed"};

CardSet read_set(ByteReader& in) { return in.u64() & kAllCards; }

void write_deal(ByteWriter& out, const Deal& deal, bool fresh) {
  const Position& p = deal.start;
  out.u8(fresh);
  for (const auto hand : p.hand) out.u64(hand);
  out.u64(p.pool);
  out.u64(deal.aside);
  if (fresh) return;
  for (const auto known : deal.known) out.u64(known);
  for (std::size_t s = 0; s < 2; ++s) {
    out.u64(p.library[s]);
    out.u8(p.hand_count[s]);
    out.u8(p.charges[s][0]);
    out.u8(p.charges[s][1]);
    out.u16(static_cast<std::uint16_t>(p.score[s]));
  }
  out.u64(p.discards);
  out.u8(p.tail);
  out.u8(p.mover);
  out.u8(p.turn);
  out.u8(p.discards_used);
}

Deal read_deal(const Pairing::Rules& rules, ByteReader& in) {
  Deal deal;
  Position& p = deal.start;
  p = Deal::blank(rules);
  const bool fresh = in.count(1) != 0;
  for (auto& hand : p.hand) hand = read_set(in);
  p.pool = read_set(in);
  deal.aside = read_set(in);
  if (fresh) return deal;
  for (auto& known : deal.known) known = read_set(in);
  for (std::size_t s = 0; s < 2; ++s) {
    p.library[s] = read_set(in);
    p.hand_count[s] = static_cast<std::uint8_t>(in.count(kCards));
    p.charges[s][0] = static_cast<std::uint8_t>(in.count(7));
    p.charges[s][1] = static_cast<std::uint8_t>(in.count(7));
    p.score[s] = static_cast<std::int16_t>(in.u16());
    if (p.score[s] < -20000 || p.score[s] > 20000) throw InvalidInput("pairing: a score out of range");
  }
  p.discards = read_set(in);
  p.tail = static_cast<std::uint8_t>(in.count(kQueue));
  p.mover = static_cast<Seat>(in.count(1));
  p.turn = static_cast<std::uint8_t>(in.count(255));
  p.discards_used = static_cast<std::uint8_t>(in.count(255));
  return deal;
}

void check_entry(std::uint8_t entry) {
  if (Log::what(entry) >= kNumActions && Log::what(entry) != kHidden)
    throw InvalidInput("pairing: a log entry that is no action");
}

Json history_json(const Pairing::Rules& rules, const Log& log) {
  JsonArray out;
  for (std::size_t i = 0; i < log.size; ++i) {
    const std::uint8_t what = Log::what(log.entries[i]);
    out.push_back(JsonArray{int{Log::seat(log.entries[i])},
                            what == kHidden ? std::string("?") : Pairing::notation(rules, what)});
  }
  return out;
}

void read_history(const Pairing::Rules& rules, const Json& json, std::int64_t open, Log& log) {
  const auto& list = json.array("history");
  if (list.size() > Log::kMost) throw InvalidInput("history: more than 224 actions");
  for (const Json& entry : list) {
    const auto& pair = entry.array("history");
    if (pair.size() != 2) throw InvalidInput("history: [seat, action] is needed");
    const auto seat = static_cast<Seat>(pair[0].integer("history seat", 0, 1));
    const auto& text = pair[1].text("history action");
    log.push(seat, text == "?" ? kHidden : static_cast<std::uint8_t>(Pairing::parse_action(rules, text)));
  }
  if (open > log.size) throw InvalidInput("open: more actions than the history has");
  log.settled = static_cast<std::uint8_t>(log.size - open);
}

}  // namespace

void Pairing::View::write(ByteWriter& out) const {
  out.u8(seat_);
  out.u8(stage_);
  out.varint(seq_);
  if (stage_ == Stage::undealt) return;
  write_deal(out, deal_, deal_.fresh(*rules_));
  out.u8(log_.size);
  out.u8(log_.settled);
  for (std::size_t i = 0; i < log_.size; ++i) out.u8(log_.entries[i]);
  out.u8(now_.tail);
  for (std::size_t i = 0; i < now_.tail; ++i) out.u8(deal_.queue[i]);
  out.u8(now_.owed_hand);
  out.u8(now_.owed_pool);
}

Pairing::View Pairing::View::read(const Rules& rules, ByteReader& in) {
  View raw(rules, static_cast<Seat>(in.count(1)));
  raw.stage_ = static_cast<Stage>(in.count(kStages.size() - 1));
  const std::uint64_t seq = in.varint();
  if (seq > 0xffffffff) throw InvalidInput("pairing: seq is too large");
  raw.seq_ = static_cast<std::uint32_t>(seq);
  if (raw.stage_ == Stage::undealt) return rebuild(raw);
  raw.deal_ = read_deal(rules, in);
  raw.log_.size = static_cast<std::uint8_t>(in.count(Log::kMost));
  raw.log_.settled = static_cast<std::uint8_t>(in.count(raw.log_.size));
  for (std::size_t i = 0; i < raw.log_.size; ++i) check_entry(raw.log_.entries[i] = in.u8());
  raw.now_.tail = static_cast<std::uint8_t>(in.count(kQueue));
  for (std::size_t i = 0; i < raw.now_.tail; ++i)
    if (const Card card = in.u8(); card < kCards || card == kHidden)
      raw.deal_.queue[i] = card;
    else
      throw InvalidInput("pairing: a deck entry that is no card");
  raw.now_.owed_hand = static_cast<std::uint8_t>(in.count(kCards));
  raw.now_.owed_pool = static_cast<std::uint8_t>(in.count(kCards));
  return rebuild(raw);
}

/// Folds a decoded view anew, event by event.
class Pairing::Rebuilder {
 public:
  explicit Rebuilder(const View& raw) : raw_(raw), view_(*raw.rules_, raw.seat_) {}

  View run() {
    using Stage = View::Stage;
    if (raw_.stage_ == Stage::undealt) {
      if (raw_.seq_) throw InvalidInput("pairing: events without a deal");
      return view_;
    }
    fold_deal();
    while (next_ < raw_.log_.settled) fold_effect();
    if (view_.now_.owed_hand != raw_.now_.owed_hand || view_.now_.owed_pool != raw_.now_.owed_pool ||
        view_.now_.tail != raw_.now_.tail)
      throw InvalidInput("pairing: draws that the history does not owe");
    fold_open();
    if (raw_.stage_ == Stage::revealed) fold_reveal();
    if (raw_.stage_ == Stage::closed) {
      if (!view_.terminal()) throw InvalidInput("pairing: closed before its end");
      view_.stage_ = Stage::closed;
    }
    view_.seq_ = raw_.seq_;
    return view_;
  }

 private:
  /// The deal as the seat saw it then, without what it learnt later.
  void fold_deal() {
    auto deal = std::make_shared<Deal>(raw_.deal_);
    const CardSet known = deal->known[at(raw_.seat_)];
    deal->start.hand[at(other(raw_.seat_))] &= known;
    deal->known[at(other(raw_.seat_))] = 0;
    for (std::size_t i = 0; i < kQueue; ++i)
      if (i >= deal->start.tail || !(known & bit(deal->queue[i]))) deal->queue[i] = kHidden;
    view_.fold(Event{Event::Kind::deal, raw_.seat_, 0, {}, deal, {}});
  }

  std::uint8_t take(Seat seat) {
    if (next_ >= raw_.log_.settled || Log::seat(raw_.log_.entries[next_]) != seat)
      throw InvalidInput("pairing: a history that breaks off within an effect");
    return Log::what(raw_.log_.entries[next_++]);
  }

  void fold_effect() {
    const Position& now = view_.now_;
    const Machine& machine = raw_.rules_->phases();
    if (now.mover == kNobody) throw InvalidInput("pairing: the history continues after the end");
    const Seat mover = now.mover;
    Phase phase = now.phase;
    if (machine.is_hub(phase)) {
      const int action = take(mover);
      if (action < kCards || action >= kNumActions)
        throw InvalidInput("pairing: a history that enters no phase");
      phase = entered_phase(action);
    }
    Card first = take(mover);
    const bool match = first < kCards && (now.pool & of_colour(colour_of(first)));
    const Row* row = machine.row(phase, now.conditions(*raw_.rules_, match));
    if (!row) throw InvalidInput("pairing: a history that enters a closed phase");
    if (mover != raw_.seat_ && row->effect == Effect::replace) first = kHidden;  // until the reveal
    Event event{static_cast<Event::Kind>(row->effect), mover, row->quota, {first}};
    if (row->quota == 2) event.cards[1] = take(mover);
    view_.fold(event);
    while (now.owes() && !stops_here()) fold_draw(mover);
  }

  /// Whether the decoded view had not seen the draws that are owed now.
  bool stops_here() const {
    const Position& now = view_.now_;
    return next_ == raw_.log_.settled && now.owed_hand == raw_.now_.owed_hand &&
           now.owed_pool == raw_.now_.owed_pool;
  }

  void fold_draw(Seat mover) {
    const Position& now = view_.now_;
    const bool to_hand = now.owed_hand != 0;
    Event draw{to_hand ? Event::Kind::draw : Event::Kind::refill,
               to_hand ? mover : kNobody,
               to_hand ? now.owed_hand : now.owed_pool,
               {},
               {},
               {}};
    for (std::size_t i = 0; i < draw.count; ++i)
      draw.cards[i] = to_hand && mover != raw_.seat_ ? kHidden : raw_.deal_.queue[now.head + i];
    view_.fold(draw);
  }

  /// What the seat itself entered and selected since.
  void fold_open() {
    for (; next_ < raw_.log_.size; ++next_) {
      const std::uint8_t what = Log::what(raw_.log_.entries[next_]);
      if (Log::seat(raw_.log_.entries[next_]) != raw_.seat_ || what >= kNumActions)
        throw InvalidInput("pairing: open selections of another seat");
      const bool enters = what >= kCards;
      const std::uint8_t card = enters ? entered_phase(what) : what;
      view_.fold_own(Event{enters ? Event::Kind::enter : Event::Kind::select, raw_.seat_, 1, {card}});
    }
  }

  void fold_reveal() {
    auto reveal = std::make_shared<Reveal>();
    reveal->deal = raw_.deal_;
    for (std::size_t i = raw_.deal_.start.tail; i < view_.now_.tail; ++i) {
      reveal->replaced.push_back(raw_.deal_.queue[i]);
      reveal->deal.queue[i] = kHidden;
    }
    view_.fold_reveal(Event{Event::Kind::reveal, kNobody, 0, {}, {}, reveal});
  }

  const View& raw_;
  View view_;
  /// The next entry of the log to fold.
  std::size_t next_ = 0;
};

Pairing::View Pairing::View::rebuild(const View& raw) { return Rebuilder(raw).run(); }

JsonObject Pairing::View::current_json() const {
  const Position& p = now_;
  const auto hand = [&](Seat s) { return cards_json(p.hand[at(s)], p.hand_count[at(s)]); };
  JsonArray selected;
  for (std::size_t i = 0; i < cursor_.count; ++i) selected.emplace_back(card_text(cursor_.items[i]));
  return {{"phase", phase()},
          {"to_move", p.mover == kNobody ? Json() : Json(int{p.mover})},
          {"turn", int{p.turn}},
          {"hands", JsonArray{hand(0), hand(1)}},
          {"selected", std::move(selected)},
          {"pool", cards_json(p.pool, 0)},
          {"deck", deck_json(deal_.queue, p.head, p.tail)},
          {"libraries", JsonArray{cards_json(p.library[0], 0), cards_json(p.library[1], 0)}},
          {"discards", cards_json(p.discards, 0)},
          {"scores", JsonArray{int{p.score[0]}, int{p.score[1]}}},
          {"charges", JsonArray{JsonArray{int{p.charges[0][0]}, int{p.charges[0][1]}},
                                JsonArray{int{p.charges[1][0]}, int{p.charges[1][1]}}}},
          {"discards_used", int{p.discards_used}}};
}

Json Pairing::View::to_json() const {
  JsonObject out{{"seat", int{seat_}}, {"seq", seq_}, {"stage", kStages[at(stage_)]}};
  if (stage_ == Stage::undealt) return out;
  for (auto& member : current_json()) out.push_back(std::move(member));
  out.emplace_back("start", deal_json(*rules_, deal_, stage_ == Stage::revealed ? kNobody : seat_));
  out.emplace_back("history", history_json(*rules_, log_));
  out.emplace_back("open", log_.size - log_.settled);
  out.emplace_back("drawn", deck_json(deal_.queue, 0, now_.tail));
  out.emplace_back("owed", JsonArray{int{now_.owed_hand}, int{now_.owed_pool}});
  return out;
}

Pairing::View Pairing::View::from_history(const Rules& rules, const Json& json) {
  View raw(rules, static_cast<Seat>(json.at("seat").integer("seat", 0, 1)));
  raw.seq_ = static_cast<std::uint32_t>(json.at("seq").integer("seq", 0, 0xffffffff));
  raw.stage_ = static_cast<Stage>(json.at("stage").one_of("stage", kStages));
  if (raw.stage_ != Stage::undealt) {
    raw.deal_ = deal_from_json(rules, json.at("start"), raw.stage_ == Stage::revealed ? kNobody : raw.seat_);
    read_history(rules, json.at("history"), json.at("open").integer("open", 0, 3), raw.log_);
    const auto& drawn = json.at("drawn").array("drawn");
    if (drawn.size() > kQueue) throw InvalidInput("drawn: more cards than a deck can hold");
    for (std::size_t i = 0; i < drawn.size(); ++i) raw.deal_.queue[i] = parse_seen(drawn[i].text("drawn"));
    raw.now_.tail = static_cast<std::uint8_t>(drawn.size());
    const auto& owed = json.at("owed").array("owed");
    if (owed.size() != 2) throw InvalidInput("owed: two values are needed");
    raw.now_.owed_hand = static_cast<std::uint8_t>(owed[0].integer("owed", 0, kCards));
    raw.now_.owed_pool = static_cast<std::uint8_t>(owed[1].integer("owed", 0, kCards));
  }
  View view = rebuild(raw);
  const Json derived = view.to_json();
  for (const auto& [key, value] : json.object("view")) {
    const Json* expected = derived.find(key);
    if (!expected) throw InvalidInput("unknown key \"" + key.substr(0, 40) + "\" in a view of pairing");
    if (key != "start" && !(*expected == value))
      throw InvalidInput("\"" + key + "\" is not what follows from the history");
  }
  return view;
}

Pairing::View Pairing::View::from_snapshot(const Rules& rules, const Json& json) {
  if (json.find("stage") && json.find("seq")) return from_history(rules, json);
  constexpr std::string_view kIgnored[] = {"seat", "seq", "phase", "selected", "terminal"};
  View view(rules, static_cast<Seat>(json.at("seat").integer("seat", 0, 1)));
  json.at("to_move");
  auto deal = std::make_shared<Deal>(deal_from_json(rules, json, view.seat_, kIgnored));
  view.fold(Event{Event::Kind::deal, view.seat_, 0, {}, deal, {}});
  const Json* phase = json.find("phase");
  const Json* selected = json.find("selected");
  if (view.asked() && phase && phase->text("phase") != kPhaseNames[kInit]) {
    const Action enter = parse_action(rules, "enter:" + phase->text("phase"));
    view.fold_own(Event{Event::Kind::enter, view.seat_, 1, {entered_phase(enter)}});
    if (selected)
      for (const Json& card : selected->array("selected"))
        view.fold_own(Event{Event::Kind::select, view.seat_, 1, {parse_card(card.text("selected"))}});
  }
  if (const Json* seq = json.find("seq"))
    view.seq_ = static_cast<std::uint32_t>(seq->integer("seq", 1, 0xffffffff));
  return view;
}

}  // namespace bothost
