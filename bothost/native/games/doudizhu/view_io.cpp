// Bytes and JSON of a view.
#include <algorithm>

#include "doudizhu/view.h"

namespace bothost::doudizhu {
namespace {

/// Counts as one number in mixed radix (5 for suited ranks, 2 for jokers): below 2^33.
void transfer(ByteWriter& w, Cards c) {
  std::uint64_t v = 0;
  for (int r = 0; r < kRanks; ++r) v = v * (r < kSmallJoker ? 5 : 2) + static_cast<unsigned>(count_of(c, r));
  w.varint(v);
}

void transfer(ByteReader& in, Cards& out) {
  auto v = in.varint();
  out = 0;
  for (int r = kRanks - 1; r >= 0; --r) {
    const unsigned radix = r < kSmallJoker ? 5 : 2;
    out += card(r, static_cast<int>(v % radix));
    v /= radix;
  }
  require(v == 0, "not a part of the deck");
}

void transfer(ByteWriter& w, Seat s) { w.u8(s + 1); }
void transfer(ByteReader& in, Seat& s) { s = static_cast<Seat>(static_cast<int>(in.count(3)) - 1); }

/// What the view of a position without its whole history has besides. Writes or reads.
template <class Io, class Public>
void transfer_position(Io& io, Public& p) {
  io.number(p.phase, at(Phase::end));
  for (auto* seat : {&p.landlord, &p.turn, &p.winner, &p.last_seat}) transfer(io, *seat);
  io.number(p.last, 0xffff);
  io.number(p.stake, 0xffff);
  io.number(p.calls, 4);
  io.number(p.passes, 2);
  io.number(p.bombs, 14);
  for (std::size_t i = 0; i < kSeats; ++i) {
    io.number(p.counts[i], 20);
    io.number(p.plays[i], 20);
    transfer(io, p.played[i]);
  }
}

enum Flag : std::uint8_t { kComplete = 1, kDealt = 2, kBottomKnown = 4, kRevealed = 8 };

Json seat_json(Seat s) { return s == kNobody ? Json() : Json(s); }

struct PublicHistory {
  std::vector<Seat> seats;
  std::vector<Action> actions;
  std::size_t calls = 0;

  /// "bids" and "history": [[seat, notation], …]
  explicit PublicHistory(const Json& json) {
    if (const auto* j = json.known("bids")) add(*j, "bids");
    calls = actions.size();
    if (const auto* j = json.known("history")) add(*j, "history");
  }

  void check_seats(const Public& pub) const {
    for (std::size_t i = 0; i < seats.size(); ++i)
      require(pub.seat_of(static_cast<int>(i)) == seats[i], "the history's seats are out of turn");
  }

 private:
  void add(const Json& json, std::string_view what) {
    const auto& u = Universe::get();
    for (const auto& entry : json.array(what)) {
      const auto& pair = entry.array(what, 2);
      seats.push_back(pair[0].integer<Seat>(what, 0, 2));
      actions.push_back(u.parse(pair[1].text(what)));
      require((actions.back() >= u.first_call()) == (what == "bids"),
              "bids and moves have lists of their own");
      require(actions.size() <= kMaxHistory, "the history is too long");
    }
  }
};

Event reveal_from(const Json& json) {
  const auto& hands = json.at("hands").array("hands", kSeats);
  Event e{Event::Kind::reveal, kNobody, json.at("first").integer<Seat>("first", 0, 2), 0, {}};
  for (std::size_t i = 0; i < kSeats; ++i) e.cards[i] = cards_from_text(hands[i].text("hands"));
  e.cards[3] = cards_from_text(json.at("bottom").text("bottom"));
  return e;
}

Cards read_bottom(const Json& json) {
  const auto* j = json.known("bottom");
  if (!j) return 0;
  const Cards out = cards_from_text(j->text("bottom"));
  require(size_of(out) == kBottomSize, "bottom is 3 cards");
  return out;
}

/// Whether a view with these members reaches back to the deal.
bool tells_everything(const Rules& rules, const Json& json) {
  if (const auto* j = json.known("complete")) return j->boolean("complete");
  const auto* phase = json.known("phase");
  if (phase ? phase->text("phase") == "bid" || phase->text("phase") == "bottom" : !json.known("landlord"))
    return true;
  return json.known("bottom") && json.known("history") &&
         (rules.bidding == Bidding::none || json.known("bids"));
}

}  // namespace

void View::write(ByteWriter& w) const {
  const bool dealt = pub_.phase != Phase::deal;
  w.u8((pub_.complete ? kComplete : 0) | (dealt ? kDealt : 0) | (pub_.bottom ? kBottomKnown : 0) |
       (revealed_ ? kRevealed : 0) | seat_ << 4);
  if (!dealt) return;
  transfer(w, pub_.complete ? own_dealt() : hand_);
  if (pub_.bottom) transfer(w, pub_.bottom);
  transfer(w, pub_.first);
  w.varint(pub_.size);
  for (std::size_t i = 0; i < pub_.size; ++i) w.varint(pub_.history[i]);
  if (!pub_.complete) {
    w.varint(seq_);
    transfer_position(w, pub_);
  }
  if (revealed_)
    for (const Cards c : dealt_) transfer(w, c);
}

View View::read(const Rules& rules, ByteReader& in) {
  const auto flags = in.u8();
  require((flags >> 4) < kSeats, "a seat is 0, 1 or 2");
  View v(rules, static_cast<Seat>(flags >> 4));
  if (!(flags & kDealt)) {
    require((flags & 15) == kComplete, "nothing is known before the deal");
    return v;
  }
  Cards hand = 0, bottom = 0;
  Seat first = kNobody;
  transfer(in, hand);
  if (flags & kBottomKnown) transfer(in, bottom);
  require(!(flags & kBottomKnown) || size_of(bottom) == kBottomSize, "the bottom is 3 cards");
  transfer(in, first);
  std::vector<Action> history(in.count(kMaxHistory));
  for (auto& a : history) in.number(a, at(Universe::get().num_actions() - 1));
  if (flags & kComplete) {
    v.replay(hand, first, bottom, history);
  } else {
    auto& p = v.pub_;
    p.complete = false;
    v.hand_ = hand;
    p.bottom = bottom;
    p.first = first;
    p.set_history(history);
    in.number(v.seq_, 0xffffffffu);
    transfer_position(in, p);
    v.check_fields();
    v.check_feasible();
  }
  if (flags & kRevealed) {
    Event e{Event::Kind::reveal, kNobody, v.pub_.first, 0, {}};
    for (auto& c : e.cards) transfer(in, c);
    v.observe_reveal(e);
    if (v.pub_.complete) ++v.seq_;
  }
  return v;
}

Json View::to_json() const {
  const auto& u = Universe::get();
  const auto& p = pub_;
  JsonArray played, bids, history;
  for (const Cards c : p.played) played.emplace_back(to_text(c));
  for (int i = 0; i < p.size; ++i)
    (i < p.calls ? bids : history).emplace_back(JsonArray{p.seat_of(i), u.notation(p.history[at(i)])});
  return JsonObject{{"seat", seat_},
                    {"seq", seq_},
                    {"phase", phase()},
                    {"complete", p.complete},
                    {"first", seat_json(p.first)},
                    {"landlord", p.phase == Phase::bid ? Json() : seat_json(p.landlord)},
                    {"stake", p.stake},
                    {"hand", to_text(hand_)},
                    {"counts", JsonArray(p.counts.begin(), p.counts.end())},
                    {"played", played},
                    {"bottom", p.bottom ? Json(to_text(p.bottom)) : Json()},
                    {"bids", bids},
                    {"turn", seat_json(p.turn)},
                    {"last", p.last ? Json(JsonArray{p.last_seat, u.notation(p.last)}) : Json()},
                    {"passes", p.passes},
                    {"bombs", p.bombs},
                    {"plays", JsonArray(p.plays.begin(), p.plays.end())},
                    {"history", history},
                    {"winner", seat_json(p.winner)},
                    {"revealed", revealed_ ? deal_json(dealt_, p.first) : Json()}};
}

View View::from_snapshot(const Rules& rules, const Json& json) {
  json.only("a view", {"seat",   "seq",    "phase",  "complete", "first",  "landlord", "stake",
                       "hand",   "counts", "played", "bottom",   "bids",   "turn",     "last",
                       "passes", "bombs",  "plays",  "history",  "winner", "revealed"});
  View v(rules, json.at("seat").integer<Seat>("seat", 0, 2));
  v.hand_ = cards_from_text(json.at("hand").text("hand"));
  if (!tells_everything(rules, json))
    v.load_position(json);
  else if (!json.known("phase") || json.known("phase")->text("phase") != "deal")
    v.load_history(json);
  if (const auto* r = json.known("revealed")) {
    v.observe_reveal(reveal_from(*r));
    if (v.pub_.complete) ++v.seq_;
  }
  // Of the fields that tell cards, which may come in any order, nothing is left to compare.
  const Json mine = v.to_json();
  for (const auto key : {"seat", "phase", "complete", "first", "landlord", "stake", "counts", "turn", "bombs",
                         "plays", "winner"})
    if (const auto* given = json.known(key); given && *given != mine.at(key))
      throw InvalidInput("view: \"" + std::string(key) + "\" contradicts the rest");
  return v;
}

/// From the own hand and everything that happened since the deal.
void View::load_history(const Json& json) {
  const PublicHistory public_history(json);
  const Cards bottom = read_bottom(json);
  Seat first = kNobody, landlord = kNobody;
  json.read("first", first, 0, 2);
  json.read("landlord", landlord, 0, 2);
  if (first == kNobody && rules_->bidding == Bidding::none) first = landlord;
  if (first == kNobody && !public_history.seats.empty()) first = public_history.seats[0];
  Cards dealt = hand_;
  for (std::size_t i = public_history.calls; i < public_history.actions.size(); ++i)
    if (public_history.seats[i] == seat_) {
      dealt += Universe::get()[public_history.actions[i]].cards;
      require(contains(kDeck, dealt), "the seat played and holds more of a rank than the deck has");
    }
  if (bottom && landlord == seat_) {
    require(contains(dealt, bottom), "the landlord holds or played the bottom cards");
    dealt -= bottom;
  }
  replay(dealt, first, bottom, public_history.actions);
  public_history.check_seats(pub_);
}

/// Position without history: what is absent takes its default.
void View::load_position(const Json& json) {
  const PublicHistory public_history(json);
  auto& p = pub_;
  const auto three = [&](std::string_view key, auto& out, int most) {
    const auto* j = json.known(key);
    if (!j) return false;
    const auto& values = j->array(key, kSeats);
    for (std::size_t i = 0; i < kSeats; ++i) out[i] = values[i].integer<std::uint8_t>(key, 0, most);
    return true;
  };
  p.complete = false;
  p.bottom = read_bottom(json);
  p.calls = static_cast<std::uint8_t>(public_history.calls);
  p.set_history(public_history.actions);
  json.read("seq", seq_, 0, 0xffffffffLL);
  p.phase = json.known("phase") && json.known("phase")->text("phase") == "end" ? Phase::end : Phase::play;
  json.read("landlord", p.landlord, 0, 2);
  require(p.landlord != kNobody, "the landlord is unknown");
  json.read("first", p.first, 0, 2);
  if (rules_->bidding == Bidding::none) p.first = p.landlord;
  json.read("stake", p.stake, 1, 16);
  json.read("bombs", p.bombs, 0, 14);
  if (!three("counts", p.counts, 20)) {
    p.counts.fill(kDealSize);
    p.counts[at(p.landlord)] = kDealSize + kBottomSize;
    p.counts[at(seat_)] = static_cast<std::uint8_t>(size_of(hand_));
  }
  json.read("winner", p.winner, 0, 2);
  json.read("turn", p.turn, 0, 2);
  if (p.phase == Phase::play && p.turn == kNobody) p.turn = seat_;
  load_last(json);
  if (const auto* j = json.known("played")) {
    const auto& piles = j->array("played", kSeats);
    for (std::size_t i = 0; i < kSeats; ++i) p.played[i] = cards_from_text(piles[i].text("played"));
  } else {
    for (std::size_t i = public_history.calls; i < public_history.actions.size(); ++i) {
      auto& pile = p.played[at(public_history.seats[i])];
      pile += Universe::get()[public_history.actions[i]].cards;
      require(contains(kDeck, pile), "more cards of a rank than the deck holds");
    }
    const Cards last = Universe::get()[p.last].cards;
    if (p.last && !contains(p.played[at(p.last_seat)], last)) p.played[at(p.last_seat)] = last;
  }
  if (!three("plays", p.plays, 20))
    for (Seat s = 0; s < kSeats; ++s)
      p.plays[at(s)] = static_cast<std::uint8_t>(std::clamp(dealt_size_of(s) - p.counts[at(s)], 0, 2));
  public_history.check_seats(p);
  check_fields();
  check_feasible();
}

/// The move to beat, its seat, and the passes since.
void View::load_last(const Json& json) {
  auto& p = pub_;
  const auto* last = json.known("last");
  if (!last) {
    p.last_seat = p.turn;
    json.read("passes", p.passes, 0, 2);
    return;
  }
  const auto& pair = last->array("last", 2);
  p.last_seat = pair[0].integer<Seat>("last", 0, 2);
  const Action a = Universe::get().parse(pair[1].text("last"));
  require(a != kPass && a < Universe::get().first_call(), "last is a play");
  if (p.last_seat == p.turn) {  // everybody passed: its seat leads
    p.passes = 2;
    return;
  }
  p.last = static_cast<Id16>(a);
  const int next = p.winner == kNobody ? p.turn : p.winner + 1;
  p.passes = static_cast<std::uint8_t>((next - p.last_seat + 5) % 3);
}

}  // namespace bothost::doudizhu
