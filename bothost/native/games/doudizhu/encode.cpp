#include "doudizhu/encode.h"

#include <algorithm>
#include <vector>

#include "doudizhu/cells.h"

namespace bothost::doudizhu {
namespace {

enum BlockIndex {
  kPlanes,
  kMovePlane,
  kPlanesWithMove,
  kCompact,
  kRecent,
  kMoveCards,
  kOthers,
  kMoveTypesBlock,
  kMoveAnalysisBlock,
  kPassedBlock,
  kSituationBlock
};

constexpr int kSide = 15, kPlane = kSide * kSide, kNumPlanes = 29, kRecentPlanes = 18;
constexpr int kCandidatePlane = 2, kFirstRecentPlane = 11;
constexpr int kRecentMoves = 15;
constexpr int kCompactSize = 9 * kCardVector + 3 * 20 + 15 + 4 + 3 * 6 + 1;

Seat relative(Seat s, int k) { return static_cast<Seat>((s + k) % 3); }

/// Row of a move's type among rows 4..13 of the plane, by kind; -1 for a pass and a call. Wings and fours
/// with two count as the nearest: planes with wings and shuttles as a sequence of threes, four with two solos
/// as three + 1, four with two pairs as three + 2.
constexpr std::array<std::int8_t, kKindNames.size()> kTypeRows = {-1, 4, 5, 6,  7,  8,  9,  10, 11, 11,
                                                                  11, 7, 8, 12, 13, 11, 11, 11, -1};

/// Rows 0..3: row c - 1 of column r is 1 where rank r counts c.
void put_cards(Cards cards, float* plane) {
  for (int r = 0; r < kRanks; ++r)
    if (const int c = count_of(cards, r)) plane[(c - 1) * kSide + r] = 1;
}

void put_move(const Move& m, bool by_landlord, float* plane) {
  if (m.kind == Kind::call) return;
  put_cards(m.cards, plane);
  if (const int row = kTypeRows[at(m.kind)]; row >= 0) std::fill_n(plane + row * kSide, kSide, 1.0f);
  if (by_landlord) std::fill_n(plane + 14 * kSide, kSide, 1.0f);
}

void planes(const View& v, float* out) {
  const auto& u = Universe::get();
  const auto& p = v.table();
  const auto plane = [&](int z) { return out + z * kPlane; };
  put_cards(v.hand(), plane(0));
  put_cards(v.unseen(), plane(1));
  for (int k = 0; k < kSeats; ++k) {
    const auto s = at(relative(v.seat(), k));
    put_cards(p.played[s], plane(3 + k));
    std::fill_n(plane(8 + k), p.counts[s], 1.0f);
  }
  if (p.last) put_move(u[p.last], p.last_seat == p.landlord, plane(6));
  put_cards(p.bottom, plane(7));
  const int recent = std::min(kRecentPlanes, p.size - p.calls);
  for (int i = 0; i < recent; ++i) {
    const int index = p.size - 1 - i;
    put_move(u[p.history[at(index)]], p.seat_of(index) == p.landlord, plane(kFirstRecentPlane + i));
  }
}

/// The newest play of a seat that is in the history; pass and nothing are empty.
Cards last_play_of(const Public& p, Seat s) {
  for (int i = p.size - 1; i >= p.calls; --i)
    if (p.seat_of(i) == s) return Universe::get()[p.history[at(i)]].cards;
  return 0;
}

void compact(const View& v, float* out) {
  const auto& u = Universe::get();
  const auto& p = v.table();
  const auto vector = [&](Cards c) {
    put_vector(c, out);
    out += kCardVector;
  };
  vector(v.hand());
  vector(v.unseen());
  vector(p.last ? u[p.last].cards : 0);
  vector(p.bottom);
  for (int k = 0; k < kSeats; ++k) vector(p.played[at(relative(v.seat(), k))]);
  for (int k = 1; k < kSeats; ++k) vector(last_play_of(p, relative(v.seat(), k)));
  for (int k = 0; k < kSeats; ++k, out += 20)
    if (const int n = p.counts[at(relative(v.seat(), k))]; n > 0) out[n - 1] = 1;
  out[std::min<int>(p.bombs, 14)] = 1;
  out += 15;
  const bool known = p.phase >= Phase::play && p.landlord != kNobody;
  out[known ? (v.seat() - p.landlord + 3) % 3 : 3] = 1;
  out += 4;
  for (int i = 0; i < p.calls; ++i)
    out[6 * ((p.seat_of(i) - v.seat() + 3) % 3) + p.history[at(i)] - u.first_call()] = 1;
  out += 18;
  *out = p.last == 0;
}

void recent_moves(const View& v, float* out) {
  const auto& p = v.table();
  for (int i = 0; i < std::min(kRecentMoves, p.size - p.calls); ++i)
    put_vector(Universe::get()[p.history[at(p.size - 1 - i)]].cards, out + i * kCardVector);
}

/// What the rule player thinks of the legal moves; of no move where the seat is not asked.
class Opinion {
 public:
  explicit Opinion(const View& view) {
    if (!view.asked()) return;
    view.legal(legal_);
    likes_.resize(legal_.size());
    const Sight sight = Sight::of(view);
    preferences(sight, legal_, likes_);
    top_ = *std::ranges::max_element(likes_);
    choice_ = choose(sight).action;
  }

  template <class Set>
  void tell(Action move, Set&& set) const {
    const auto found = std::ranges::lower_bound(legal_, move);
    if (found == legal_.end() || *found != move) return;
    preference_cells(likes_[at(found - legal_.begin())], top_, set);
    if (move == choice_) set(kChoiceCell);
  }

 private:
  ActionList legal_;
  std::vector<float> likes_;
  float top_ = 0;
  Action choice_ = kNoAction;
};

void move_analysis(const View& view, std::span<const Action> moves, float* out) {
  const Sight sight = Sight::of(view);
  const Opinion opinion(view);
  for (const Action move : moves) {
    const Move& m = Universe::get()[move];
    const Cards rest = minus(view.hand(), m.cards);
    const auto set = [&](int cell) { out[cell] = 1; };
    put_vector(rest, out);
    move_cells(sight, m, rest, set);
    opinion.tell(move, set);
    out += kMoveAnalysis;
  }
}

}  // namespace

void put_vector(Cards c, float* out) {
  each_cell(c, [&](int cell) { out[cell] = 1; });
}

const std::vector<Block>& encoder_blocks() {
  static const std::vector<Block> blocks = {
      Block("planes", {29, 15, 15}, 1, Block::Of::view,
            "29 planes [z][y][x]. x: the ranks 3456789TJQKA2BR. y 0-3: one-hot count of the rank, row c - 1 "
            "for c cards, none for 0; y 4-13, all x: type of the plane's move (single, pair, three, three+1, "
            "three+2, sequence of singles, of pairs, of threes, bomb, rocket; planes with wings and shuttles "
            "count as a sequence of threes, four with two solos as three+1, four with two pairs as three+2, "
            "a pass as none); y 14, all x: the landlord made the move. z 0 own hand, 1 unseen cards, 2 "
            "candidate move (empty here: see move_plane), 3-5 cards played by self, next, previous, 6 move "
            "to beat, 7 bottom cards (empty until shown), 8-10 hand counts of self, next, previous (n sets "
            "the first n cells in row-major order), 11-28 the last 18 moves, newest first. Only 2, 6 and "
            "11-28 set y 4-14. Calls are no moves here."),
      Block("move_plane", {15, 15}, 1, Block::Of::action,
            "Plane z = 2 of `planes` for each action: the candidate move."),
      Block("planes_with_move", {29, 15, 15}, 1, Block::Of::action,
            "`planes` with the action in plane z = 2."),
      Block("compact", {kCompactSize}, 1, Block::Of::view,
            "Card vectors of 54 (13 ranks x 4, cell i of a rank is 1 where more than i cards are held; small "
            "joker; big joker): own hand, unseen, move to beat, bottom, played by self, next, previous, "
            "newest move of next, of previous (9 x 54); hand counts of self, next, previous, cell n - 1 (3 x "
            "20); bombs and rockets seen (15); role (landlord, next after the landlord, previous to the "
            "landlord, unknown); calls bid0 bid1 bid2 bid3 call grab of self, next, previous (3 x 6); 1 "
            "where the turn's seat leads."),
      Block("recent_moves", {kRecentMoves, kCardVector}, 1, Block::Of::view,
            "Card vectors of the last 15 moves, newest first; zeros for a pass and before the first move."),
      Block("move_cards", {kCardVector + 6}, 1, Block::Of::action,
            "Card vector of the action, then one-hot bid0 bid1 bid2 bid3 call grab."),
      Block("others", {2, kCardVector}, 1, Block::Of::oracle,
            "Card vectors of the hands of next and previous."),
      Block("move_types", {kMoveTypeFeatures}, 1, Block::Of::view,
            "0 or 1. Abstract moves 1..308 that the own hand can make (308); abstract move to beat, 0 to "
            "lead (309); made by next, by previous (2); abstract moves that the unseen cards can make (308); "
            "cards left of next, of previous, cell n - 1 (2 x 20); landlord, next after the landlord, "
            "previous to it (3); for next and previous: rank of the smallest solo that it passed on (15), "
            "the same with one card left (15), of the smallest pair with two (13), of the smallest trio with "
            "three (13)."),
      Block("move_analysis", {kMoveAnalysis}, 1, Block::Of::action,
            "0 or 1: card vector of the hand after it (54); a lower bound of the plays that empty that hand, "
            "0 to 9 and more (11); its cards (21); kind of the move, from pass to space shuttles with pairs "
            "(18), its lowest rank (15) and length - 1 (12), all empty for a pass and a call; whether no "
            "enemy can beat it, as far as the unseen cards tell (1); whether the rule player likes another "
            "move better by 1, 3, 6, 12, 24, 48, 96, 192 half points (8); whether it wins for certain by the "
            "rule player's reckoning (1); whether it is the rule player's choice (1)."),
      Block("passed", {kPassed}, 1, Block::Of::view,
            "0 or 1. For next and previous: rank of the smallest solo of an enemy that it passed on (15), "
            "of the smallest pair (13), of the smallest trio, alone or with cards (13)."),
      Block(
          "situation", {kSituation}, 1, Block::Of::view,
          "0 or 1; all 0 before the play. For the landlord, the seat after and the seat before the landlord: "
          "it leads, follows an enemy, follows its partner (3 x 3). 1, 2, up to 4, 8, 12 or more cards: of "
          "the enemy with the fewest, of the partner, of the player to beat, own (4 x 6)."),
  };
  return blocks;
}

void encode(const View& view, int block, float* out) {
  std::fill_n(out, encoder_blocks()[at(block)].size(), 0.0f);
  if (block == kPlanes) return planes(view, out);
  if (block == kCompact) return compact(view, out);
  if (block == kMoveTypesBlock) return move_type_features(view, out);
  if (block == kPassedBlock) return passed(view, out);
  if (block == kSituationBlock) {
    if (view.table().phase == Phase::play) situation_cells(Sight::of(view), [&](int cell) { out[cell] = 1; });
    return;
  }
  recent_moves(view, out);
}

void encode_actions(const View& view, int block, std::span<const Action> actions, float* out) {
  const auto& u = Universe::get();
  const bool landlord = view.seat() == view.table().landlord && view.table().phase >= Phase::play;
  std::fill_n(out, actions.size() * encoder_blocks()[at(block)].size(), 0.0f);
  if (block == kMoveCards) {
    for (const Action a : actions) {
      put_vector(u[a].cards, out);
      if (u[a].kind == Kind::call) out[kCardVector + u[a].rank] = 1;
      out += kCardVector + 6;
    }
    return;
  }
  if (block == kMoveAnalysisBlock) return move_analysis(view, actions, out);
  const bool whole = block == kPlanesWithMove;
  const int stride = whole ? kNumPlanes * kPlane : kPlane;
  if (whole && !actions.empty()) {
    planes(view, out);
    for (std::size_t i = 1; i < actions.size(); ++i) std::copy_n(out, stride, out + i * at(stride));
  }
  for (const Action a : actions) {
    put_move(u[a], landlord, out + (whole ? kCandidatePlane * kPlane : 0));
    out += stride;
  }
}

void encode_oracle(const State& state, Seat seat, int, float* out) {
  std::fill_n(out, 2 * kCardVector, 0.0f);
  put_vector(state.hand(relative(seat, 1)), out);
  put_vector(state.hand(relative(seat, 2)), out + kCardVector);
}

}  // namespace bothost::doudizhu
