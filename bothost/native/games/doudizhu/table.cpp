#include "doudizhu/table.h"

#include "core/words.h"

namespace bothost::doudizhu {
namespace {

constexpr std::array<std::string_view, 5> kEventNames = {"deal", "bid", "landlord", "play", "reveal"};

Cards parse_cards(std::string_view word, int size) {
  const Cards c = cards_from_text(word);
  if (size_of(c) != size) reject(word, "is not " + std::to_string(size) + " cards");
  return c;
}

}  // namespace

std::string Event::text() const {
  const std::string who = seat == kNobody ? "-" : std::to_string(seat);
  if (kind == Kind::play && action == kPass) return std::string("pass ").append(who);
  std::string out = std::string(kEventNames[at(kind)]) + " " + who;
  switch (kind) {
    case Kind::deal: return out + " " + to_text(cards[0]) + " " + std::to_string(first);
    case Kind::landlord: return out + " " + to_text(cards[0]);
    case Kind::reveal:
      for (const Cards c : cards) (out += ' ') += to_text(c);
      return out + " " + std::to_string(first);
    default: return out + " " + Universe::get().notation(action);
  }
}

Event Event::parse(const Rules&, std::string_view text) {
  const auto w = split(text.substr(0, 200), ' ');  // all events are shorter
  const auto is = [&](std::string_view name, std::size_t words) { return w[0] == name && w.size() == words; };
  const auto seat = [&w](std::size_t i) { return parse_seat(w[i], kSeats); };
  if (is("pass", 2)) return {Kind::play, seat(1), kNobody, kPass, {}};
  if (is("deal", 4)) return {Kind::deal, seat(1), seat(3), 0, {parse_cards(w[2], kDealSize)}};
  if (is("landlord", 3)) return {Kind::landlord, seat(1), kNobody, 0, {parse_cards(w[2], kBottomSize)}};
  if (is("reveal", 7) && w[1] == "-") {
    Event e{Kind::reveal, kNobody, seat(6), 0, {}};
    for (std::size_t i = 0; i < 4; ++i) e.cards[i] = parse_cards(w[i + 2], i < 3 ? kDealSize : kBottomSize);
    return e;
  }
  if (is("bid", 3) || is("play", 3)) {
    const auto& u = Universe::get();
    const Action a = u.parse(w[2]);
    const bool call = a >= u.first_call();
    if (a != kPass && call == (w[0] == "bid"))
      return {call ? Kind::bid : Kind::play, seat(1), kNobody, a, {}};
  }
  reject(text, "is not an event of Dou Dizhu");
}

void Public::begin_bidding(Seat first_seat, const Rules& rules) {
  counts.fill(kDealSize);
  first = first_seat;
  if (rules.bidding == Bidding::none) {
    landlord = first;
    phase = Phase::bottom;
  } else {
    turn = first;
    phase = Phase::bid;
  }
}

void Public::call(Seat seat, Action action, const Rules& rules) {
  const int index = action - Universe::get().first_call();
  history[size++] = static_cast<Id16>(action);
  ++calls;
  const bool took = index > 0;
  if (took) {
    landlord = seat;
    stake = static_cast<std::uint16_t>(rules.bidding == Bidding::score ? index : stake * 2);
  }
  turn = next_seat(seat);
  bool over = calls == 4 || (rules.bidding == Bidding::score && index == 3);
  if (calls == 3 && !over) {
    const bool first_called = history[0] != Universe::get().first_call();
    over = rules.bidding == Bidding::score || !first_called || landlord == first;
  }
  if (!over) return;
  turn = kNobody;
  if (landlord == kNobody && rules.all_pass == AllPass::first) landlord = first;
  phase = landlord == kNobody ? Phase::end : Phase::bottom;
}

Seat Public::seat_of(int i) const {
  if (i < calls) return static_cast<Seat>((first + i) % 3);
  if (complete) return static_cast<Seat>((landlord + i - calls) % 3);
  const int next = winner == kNobody ? turn : winner + 1;
  return static_cast<Seat>((next - (size - i) % 3 + 3) % 3);
}

bool Public::is_legal_call(Action index, const Rules& rules) const {
  if (index == 0) return true;
  if (rules.bidding == Bidding::score) return index <= 3 && (landlord == kNobody || index > stake);
  return index == (landlord == kNobody ? 4 : 5);
}

bool Public::is_playable(Action action, const Rules& rules) const {
  const auto& u = Universe::get();
  if (action < 0 || action >= u.first_call()) return false;
  if (action == kPass) return last != 0;
  const Move& m = u[action];
  return rules.allows(m) && (last == 0 || beats(m, u[last]));
}

void score(const Public& pub, const Rules& rules, double* returns) {
  returns[0] = returns[1] = returns[2] = 0;
  if (pub.winner == kNobody) return;
  double points = 1;
  const auto landlord = at(pub.landlord);
  const bool landlord_won = pub.winner == pub.landlord;
  if (rules.points) {
    points = rules.base * static_cast<double>(pub.stake);
    for (int i = 0; i < pub.bombs; ++i) points *= rules.bomb_factor;
    const bool spring = pub.plays[(landlord + 1) % 3] == 0 && pub.plays[(landlord + 2) % 3] == 0;
    if (landlord_won ? spring : pub.plays[landlord] == 1) points *= rules.spring_factor;
  }
  for (std::size_t s = 0; s < kSeats; ++s) {
    const bool won = (s == landlord) == landlord_won;
    returns[s] = (won ? points : -points) * (s == landlord && rules.landlord_double ? 2 : 1);
  }
}

}  // namespace bothost::doudizhu
