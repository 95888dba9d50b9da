#include "othello/othello.h"

#include "core/options.h"
#include "core/words.h"

namespace bothost {

namespace {

using othello::Board;
using othello::Squares;

void list(Squares legal, ActionList& out) {
  if (legal == 0) out.push_back(Othello::kPass);
  for (; legal; legal &= legal - 1) out.push_back(std::countr_zero(legal));
}

std::string board_text(const Othello::Place& place) {
  std::string out(Othello::kSquares, '-');
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (place.discs(0) >> i & 1) out[i] = 'X';
    if (place.discs(1) >> i & 1) out[i] = 'O';
  }
  return out;
}

Othello::Place place_from(std::string_view board, std::int64_t turn) {
  require(board.size() == Othello::kSquares, "a board has 64 characters");
  require(board.find_first_not_of("XO-") == board.npos, "a board consists of X, O and -");
  Squares black = 0;
  Squares white = 0;
  for (std::size_t i = 0; i < board.size(); ++i) {
    if (board[i] == 'X') black |= Squares{1} << i;
    if (board[i] == 'O') white |= Squares{1} << i;
  }
  if (turn == 0) return {{black, white}, 0};
  return {{white, black}, 1};
}

Json place_json(const Othello::Place& place) {
  return JsonObject{{"board", board_text(place)}, {"turn", place.turn}};
}

Othello::Place place_from(const Json& json, const char* what) {
  json.only(what, {"board", "turn"});
  return place_from(json.at("board").text("board"), json.at("turn").integer("turn", 0, 1));
}

const Othello::Rules kAnyRules;
constexpr std::array<std::string_view, 2> kScoreNames = {"result", "discs"};

/// In the order of their JSON.
template <class Rules, class Visit>
void each_option(Rules& rules, Visit& visit) {
  visit("score", rules.score, kScoreNames);
  visit("random_plies", rules.random_plies, 0, 40);
}

}  // namespace

// Rules

Othello::Rules Othello::Rules::from_json(const Json& options) {
  OptionReader read(options);
  Rules rules;
  const auto preset = read.preset(kPresets);
  if (preset == "discs") rules.score = Score::discs;
  if (preset == "random8") rules.random_plies = 8;
  each_option(rules, read);
  read.refuse_others("othello");
  return rules;
}

Json Othello::Rules::to_json() const {
  OptionWriter write;
  each_option(*this, write);
  return write.out;
}

std::string Othello::notation(const Rules&, Action action) {
  if (action == kPass) return "pass";
  return {static_cast<char>('a' + action % 8), static_cast<char>('1' + action / 8)};
}

Action Othello::parse_action(const Rules&, std::string_view text) {
  if (text == "pass") return kPass;
  if (text.size() != 2 || text[0] < 'a' || text[0] > 'h' || text[1] < '1' || text[1] > '8')
    reject(text, "is no move: a move is a1 .. h8 or pass");
  return text[0] - 'a' + 8 * (text[1] - '1');
}

// Hand

Othello::Hand::Hand(const Place& place) : start(place), now(place), legal(othello::moves(place.board)) {
  require((place.board.own & place.board.enemy) == 0, "two discs on one square");
  require(legal != 0 || othello::moves(othello::passed(place.board)) != 0, "neither side can move");
}

bool Othello::Hand::may(Action action) const {
  if (ended) return false;
  return action == kPass ? legal == 0 : (legal >> action & 1) != 0;
}

void Othello::Hand::play(Action action) {
  actions[count++] = static_cast<std::int8_t>(action);
  now.board = action == kPass ? othello::passed(now.board) : othello::placed(now.board, action);
  now.turn ^= 1;
  legal = othello::moves(now.board);
  ended = legal == 0 && othello::moves(othello::passed(now.board)) == 0;
}

void Othello::Hand::replay(Action action) {
  require(may(action), "an illegal move in the history");
  play(action);
}

// Events

std::string Othello::Event::text() const {
  switch (kind) {
    case Kind::start: return "start - " + board_text(place) + " " + std::to_string(place.turn);
    case Kind::move: return "move " + std::to_string(seat) + " " + notation(kAnyRules, square);
    case Kind::pass: return "pass " + std::to_string(seat);
    case Kind::reveal: break;
  }
  return "reveal -";
}

Othello::Event Othello::Event::parse(const Rules& rules, std::string_view text) {
  if (text == "reveal -") return {Kind::reveal};
  if (text.starts_with("start - ") && text.size() == 8 + kSquares + 2 && text[8 + kSquares] == ' ') {
    const Seat turn = parse_seat(text.substr(9 + kSquares), 2);
    return {Kind::start, kNobody, 0, place_from(text.substr(8, kSquares), turn)};
  }
  const auto seat = [&] { return parse_seat(text.substr(5, 1), 2); };
  if (text.starts_with("pass ") && text.size() == 6)
    return {Kind::pass, seat(), static_cast<std::int8_t>(kPass)};
  if (text.starts_with("move ") && text.size() == 9 && text[6] == ' ')
    return {Kind::move, seat(), static_cast<std::int8_t>(parse_action(rules, text.substr(7)))};
  reject(text, "is no event of Othello");
}

// State

Othello::State::State(const Rules& rules, Rng& rng) : rules_(&rules), hand_(Place{}) {
  ActionList legal;
  for (int ply = 0; ply < rules.random_plies; ++ply) {
    legal.clear();
    list(hand_.legal, legal);
    hand_.play(legal[rng.below(static_cast<std::uint32_t>(legal.size()))]);
    if (hand_.ended) {  // begin anew: there must be something left to play
      hand_ = Hand(Place{});
      ply = -1;
    }
  }
  hand_ = Hand(hand_.now);
}

Othello::State Othello::State::from_deal(const Rules& rules, const Json& deal) {
  return State(rules, Hand(place_from(deal, "deal")));
}

Json Othello::State::deal() const { return place_json(hand_.start); }

void Othello::State::legal(Seat seat, ActionList& out) const {
  if (to_act() >> seat & 1) list(hand_.legal, out);
}

void Othello::State::returns(double* out) const {
  const int black = std::popcount(hand_.now.discs(0));
  const int white = std::popcount(hand_.now.discs(1));
  int margin = black - white;
  const int empty = kSquares - black - white;
  if (rules_->score == Rules::Score::discs)
    margin += margin > 0 ? empty : margin < 0 ? -empty : 0;
  else
    margin = (margin > 0) - (margin < 0);
  out[0] = margin;
  out[1] = -margin;
}

Othello::View Othello::State::view(Seat seat) const {
  View view(*rules_, seat);
  view.dealt_ = true;
  view.revealed_ = hand_.ended;
  view.hand_ = hand_;
  return view;
}

// View

void Othello::View::observe(const Event& event) {
  switch (event.kind) {
    case Event::Kind::start:
      require(!dealt_, "the start is the first event");
      hand_ = Hand(event.place);
      dealt_ = true;
      return;
    case Event::Kind::move:
    case Event::Kind::pass:
      require(dealt_ && !hand_.ended, "no move is due");
      require(event.seat == hand_.now.turn, "the other seat is on turn");
      require((event.kind == Event::Kind::pass) == (event.square == kPass), "a move is not a pass");
      require(hand_.may(event.square), "that move is not legal here");
      hand_.play(event.square);
      return;
    case Event::Kind::reveal:
      require(hand_.ended && !revealed_, "no reveal is due");
      revealed_ = true;
      return;
  }
}

void Othello::View::legal(ActionList& out) const {
  if (asked()) list(hand_.legal, out);
}

Othello::State Othello::View::sample(Rng&) const {
  require(dealt_, "the hand has not begun");
  return State(*rules_, hand_);
}

void Othello::View::write(ByteWriter& out) const {
  out.u8(seat_);
  out.u8(dealt_ | hand_.complete << 1 | revealed_ << 2);
  if (!dealt_) return;
  out.u64(hand_.start.discs(0));
  out.u64(hand_.start.discs(1));
  out.u8(hand_.start.turn);
  if (!hand_.complete) out.u32(hand_.seq_at_start);
  out.u8(hand_.count);
  for (std::size_t i = 0; i < hand_.count; ++i) out.u8(hand_.actions[i]);
}

Othello::View Othello::View::read(const Rules& rules, ByteReader& in) {
  View view(rules, static_cast<Seat>(in.count(1)));
  const auto flags = in.count(7);
  view.dealt_ = flags & 1;
  if (!view.dealt_) {
    require(flags == 2, "no such flags before the start");
    return view;
  }
  const Squares black = in.u64();
  const Squares white = in.u64();
  const auto turn = static_cast<Seat>(in.count(1));
  view.hand_ = Hand({turn == 0 ? Board{black, white} : Board{white, black}, turn});
  view.hand_.complete = flags & 2;
  if (!view.hand_.complete) view.hand_.seq_at_start = in.u32();
  require(view.hand_.seq_at_start >= 1 && view.hand_.seq_at_start <= 1U << 30, "seq is out of range");
  for (auto left = in.count(kMaxActions - 1); left > 0; --left)
    view.hand_.replay(static_cast<Action>(in.count(kPass)));
  view.revealed_ = flags & 4;
  require(!view.revealed_ || view.hand_.ended, "a reveal before the end");
  return view;
}

Json Othello::View::to_json() const {
  JsonObject out{{"seat", seat_}, {"seq", seq()}};
  if (!dealt_) return out;
  JsonArray moves;
  for (std::size_t i = 0; i < hand_.count; ++i) moves.emplace_back(notation(*rules_, hand_.actions[i]));
  out.emplace_back("board", board_text(hand_.now));
  out.emplace_back("turn", hand_.ended ? Json() : Json(hand_.now.turn));
  out.emplace_back("start", place_json(hand_.start));
  out.emplace_back("moves", moves);
  out.emplace_back("complete", hand_.complete);
  out.emplace_back("revealed", revealed_);
  return out;
}

Othello::View Othello::View::from_snapshot(const Rules& rules, const Json& json) {
  View view(rules, json.at("seat").integer<Seat>("seat", 0, 1));
  const Json* start = json.find("start");
  const Json* board = json.find("board");
  if (!start && !board) return view;
  view.dealt_ = true;
  const Json* complete = json.find("complete");
  const Json* revealed = json.find("revealed");
  view.revealed_ = revealed && revealed->boolean("revealed");
  if (start) {
    view.hand_ = Hand(place_from(*start, "start"));
    view.hand_.complete = !complete || complete->boolean("complete");
    const JsonArray& moves = json.at("moves").array("moves");
    require(moves.size() < kMaxActions, "too many moves");
    for (const Json& move : moves) view.hand_.replay(parse_action(rules, move.text("move")));
    require(!board || board->text("board") == board_text(view.hand_.now),
            "the board does not follow from the moves");
  } else {
    view.hand_ = Hand(place_from(board->text("board"), json.at("turn").integer("turn", 0, 1)));
    view.hand_.complete = false;
  }
  require(!view.revealed_ || view.hand_.ended, "a reveal before the end");
  if (const Json* seq = json.find("seq"); seq && !view.hand_.complete) {
    const auto later = static_cast<std::uint32_t>(view.hand_.count + view.revealed_);
    view.hand_.seq_at_start = seq->integer<std::uint32_t>("seq", later + 1, (1 << 30) + later) - later;
  }
  return view;
}

std::optional<Record> Othello::View::record() const {
  if (!revealed_ || !hand_.complete) return std::nullopt;
  Record record{place_json(hand_.start), {}};
  for (std::size_t i = 0; i < hand_.count; ++i)
    record.actions.emplace_back(static_cast<Seat>((hand_.start.turn + i) % 2), hand_.actions[i]);
  return record;
}

// Encoders

const std::vector<Block>& Othello::blocks() {
  static const std::vector<Block> list{
      Block("board", {3, 8, 8}, 1, Block::Of::view,
            "Planes own discs, enemy discs, legal squares, 0 or 1; rows 1 .. 8, columns a .. h."),
      Block("squares", {3 * kSquares}, 1, Block::Of::view,
            "For each square a1, b1 .. h8: own, enemy, empty, 0 or 1; square s has 3 s .. 3 s + 2."),
      Block("turned", {2, 8, 8}, 1, Block::Of::action,
            "Planes disc placed, discs turned over, 0 or 1; all 0 for a pass."),
  };
  return list;
}

namespace {

void planes(std::initializer_list<Squares> bits, float* out) {
  for (const Squares plane : bits)
    for (int i = 0; i < Othello::kSquares; ++i) *out++ = static_cast<float>(plane >> i & 1);
}

}  // namespace

void Othello::encode(const View& view, int block, float* out) {
  const Hand& hand = view.hand();
  const auto other = static_cast<Seat>(view.seat() ^ 1);
  const Squares own = view.seq() > 0 ? hand.now.discs(view.seat()) : 0;
  const Squares enemy = view.seq() > 0 ? hand.now.discs(other) : 0;
  if (block == 0) return planes({own, enemy, view.asked() ? hand.legal : 0}, out);
  for (int i = 0; i < kSquares; ++i) {
    const bool mine = own >> i & 1;
    const bool theirs = enemy >> i & 1;
    *out++ = mine;
    *out++ = theirs;
    *out++ = !mine && !theirs;
  }
}

void Othello::encode_actions(const View& view, int, std::span<const Action> actions, float* out) {
  for (const Action action : actions) {
    const bool places = action != kPass && view.is_legal(action);
    planes({places ? Squares{1} << action : 0, places ? othello::flips(view.hand().now.board, action) : 0},
           out);
    out += 2 * kSquares;
  }
}

static_assert(Game<Othello>);

}  // namespace bothost
