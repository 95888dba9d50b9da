// Views as bytes and as JSON. Both hold what a view cannot do without (its deal, the log, what it learnt of
// the deck); reading folds that anew, so that nothing gets in that could not have happened.

#include "pairing/deal.h"
#include "pairing/pairing.h"

namespace bothost {

using namespace pairing;

namespace {

constexpr std::array<std::string_view, 4> kStages{"deal", "running", "revealed", "closed"};

void transfer(ByteWriter& out, CardSet cards) { out.u64(cards); }
void transfer(ByteReader& in, CardSet& cards) { cards = in.u64() & kAllCards; }

void transfer(ByteWriter& out, std::int16_t score) { out.u16(static_cast<std::uint16_t>(score)); }
void transfer(ByteReader& in, std::int16_t& score) {
  score = static_cast<std::int16_t>(in.u16());
  if (score < -20000 || score > 20000) throw InvalidInput("pairing: a score out of range");
}

/// Writes or reads.
template <class Io, class Deal>
void transfer_deal(Io& io, Deal& deal, bool& fresh) {
  auto& p = deal.start;
  io.number(fresh, 1);
  for (auto& hand : p.hand) transfer(io, hand);
  transfer(io, p.pool);
  transfer(io, deal.aside);
  if (fresh) return;
  for (auto& known : deal.known) transfer(io, known);
  for (std::size_t s = 0; s < 2; ++s) {
    transfer(io, p.library[s]);
    io.number(p.hand_count[s], kCards);
    for (auto& charges : p.charges[s]) io.number(charges, 7);
    transfer(io, p.score[s]);
  }
  transfer(io, p.discards);
  io.number(p.tail, kQueue);
  io.number(p.mover, 1);
  io.number(p.turn, 127);
  io.number(p.discards_used, 127);
}

void check_entry(std::uint8_t entry) {
  if (Log::what(entry) >= kNumActions && Log::what(entry) != kHidden)
    throw InvalidInput("pairing: a log entry that is no action");
}

Json history_json(const Pairing::Rules& rules, const Log& log) {
  JsonArray out;
  for (const std::uint8_t entry : log.all()) {
    const std::uint8_t what = Log::what(entry);
    out.push_back(JsonArray{Log::seat(entry), what == kHidden ? "?" : Pairing::notation(rules, what)});
  }
  return out;
}

void read_history(const Pairing::Rules& rules, const Json& json, std::int64_t open, Log& log) {
  const auto& list = json.array("history");
  if (list.size() > Log::kMost) throw InvalidInput("history: more than 224 actions");
  for (const Json& entry : list) {
    const auto& pair = entry.array("history", 2);
    const auto seat = pair[0].integer<Seat>("history seat", 0, 1);
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
  bool fresh = deal_.fresh(*rules_);
  transfer_deal(out, deal_, fresh);
  out.varint(log_.size);
  out.varint(log_.settled);
  for (const std::uint8_t entry : log_.all()) out.u8(entry);
  out.u8(now_.tail);
  for (std::size_t i = 0; i < now_.tail; ++i) out.u8(deal_.queue[i]);
  out.u8(now_.owed_hand);
  out.u8(now_.owed_pool);
}

Pairing::View Pairing::View::read(const Rules& rules, ByteReader& in) {
  View raw(rules, static_cast<Seat>(in.count(1)));
  in.number(raw.stage_, kStages.size() - 1);
  in.number(raw.seq_, 0xffffffff);
  if (raw.stage_ == Stage::undealt) return rebuild(raw);
  bool fresh = false;
  raw.deal_.start = Deal::blank(rules);
  transfer_deal(in, raw.deal_, fresh);
  in.number(raw.log_.size, Log::kMost);
  in.number(raw.log_.settled, raw.log_.size);
  for (std::size_t i = 0; i < raw.log_.size; ++i) check_entry(raw.log_.entries[i] = in.u8());
  in.number(raw.now_.tail, kQueue);
  for (std::size_t i = 0; i < raw.now_.tail; ++i)
    if (const Card card = in.u8(); card < kCards || card == kHidden)
      raw.deal_.queue[i] = card;
    else
      throw InvalidInput("pairing: a deck entry that is no card");
  in.number(raw.now_.owed_hand, kCards);
  in.number(raw.now_.owed_pool, kCards);
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
    auto deal = std::make_shared<Deal>(raw_.deal_.seen_by(raw_.seat_));
    deal->aside = raw_.deal_.aside;  // to be checked
    view_.observe({.kind = Event::Kind::deal, .seat = raw_.seat_, .deal = deal});
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
    view_.observe(event);
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
    Event draw = to_hand ? Event{Event::Kind::draw, mover, now.owed_hand}
                         : Event{Event::Kind::refill, kNobody, now.owed_pool};
    for (std::size_t i = 0; i < draw.count; ++i)
      draw.cards[i] = to_hand && mover != raw_.seat_ ? kHidden : raw_.deal_.queue[now.head + i];
    view_.observe(draw);
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
    view_.fold_reveal({.kind = Event::Kind::reveal, .reveal = Reveal::of(raw_.deal_, view_.now_.tail)});
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
          {"to_move", p.mover == kNobody ? Json() : Json(p.mover)},
          {"turn", p.turn},
          {"hands", JsonArray{hand(0), hand(1)}},
          {"selected", std::move(selected)},
          {"pool", cards_json(p.pool, 0)},
          {"deck", deck_json(deal_.queue, p.head, p.tail)},
          {"libraries", sets_json(p.library)},
          {"discards", cards_json(p.discards, 0)},
          {"scores", JsonArray(p.score.begin(), p.score.end())},
          {"charges", charges_json(p)},
          {"discards_used", p.discards_used}};
}

Json Pairing::View::to_json() const {
  JsonObject out{{"seat", seat_}, {"seq", seq_}, {"stage", kStages[at(stage_)]}};
  if (stage_ == Stage::undealt) return out;
  for (auto& member : current_json()) out.push_back(std::move(member));
  out.emplace_back("start", deal_json(*rules_, deal_, stage_ == Stage::revealed ? kNobody : seat_));
  out.emplace_back("history", history_json(*rules_, log_));
  out.emplace_back("open", log_.size - log_.settled);
  out.emplace_back("drawn", deck_json(deal_.queue, 0, now_.tail));
  out.emplace_back("owed", JsonArray{now_.owed_hand, now_.owed_pool});
  return out;
}

Pairing::View Pairing::View::from_history(const Rules& rules, const Json& json) {
  View raw(rules, json.at("seat").integer<Seat>("seat", 0, 1));
  raw.seq_ = json.at("seq").integer<std::uint32_t>("seq", 0, 0xffffffff);
  raw.stage_ = json.at("stage").one_of<Stage>("stage", kStages);
  if (raw.stage_ != Stage::undealt) {
    raw.deal_ = deal_from_json(rules, json.at("start"), raw.stage_ == Stage::revealed ? kNobody : raw.seat_);
    read_history(rules, json.at("history"), json.at("open").integer("open", 0, 3), raw.log_);
    const auto& drawn = json.at("drawn").array("drawn");
    if (drawn.size() > kQueue) throw InvalidInput("drawn: more cards than a deck can hold");
    for (std::size_t i = 0; i < drawn.size(); ++i) raw.deal_.queue[i] = parse_seen(drawn[i].text("drawn"));
    raw.now_.tail = static_cast<std::uint8_t>(drawn.size());
    const auto& owed = json.at("owed").array("owed", 2);
    raw.now_.owed_hand = owed[0].integer<std::uint8_t>("owed", 0, kCards);
    raw.now_.owed_pool = owed[1].integer<std::uint8_t>("owed", 0, kCards);
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
  View view(rules, json.at("seat").integer<Seat>("seat", 0, 1));
  json.at("to_move");
  auto deal = std::make_shared<Deal>(deal_from_json(rules, json, view.seat_, kIgnored));
  view.observe({.kind = Event::Kind::deal, .seat = view.seat_, .deal = deal});
  const Json* phase = json.find("phase");
  const Json* selected = json.find("selected");
  if (view.asked() && phase && phase->text("phase") != kPhaseNames[kInit]) {
    const Action enter = parse_action(rules, "enter:" + phase->text("phase"));
    view.fold_own(Event{Event::Kind::enter, view.seat_, 1, {entered_phase(enter)}});
    if (selected)
      for (const Json& card : selected->array("selected"))
        view.fold_own(Event{Event::Kind::select, view.seat_, 1, {parse_card(card.text("selected"))}});
  }
  if (const Json* seq = json.find("seq")) view.seq_ = seq->integer<std::uint32_t>("seq", 1, 0xffffffff);
  return view;
}

}  // namespace bothost
