#include <algorithm>
#include <array>
#include <vector>

#include "doudizhu/analysis.h"
#include "doudizhu/encode.h"
#include "doudizhu/policy.h"

namespace bothost::doudizhu {
namespace {

constexpr int kMostPlays = 10, kKinds = 18, kMostLength = 12;
/// Half points by which another move is liked better: one cell each is 1 from there on.
constexpr std::array<float, 8> kBehind = {1, 3, 6, 12, 24, 48, 96, 192};

/// Fills the cells of one action in the order of the doc.
class Cells {
 public:
  explicit Cells(float* out) : out_(out) {}
  void one_of(int cells, int index) {
    out_[std::clamp(index, 0, cells - 1)] = 1;
    out_ += cells;
  }
  void flag(bool set) { *out_++ = set ? 1.0f : 0.0f; }
  void cards(Cards c) {
    put_vector(c, out_);
    out_ += kCardVector;
  }
  void skip(int cells) { out_ += cells; }

 private:
  float* out_;
};

void shape_of(const Move& m, Cells& cells) {
  if (m.kind == Kind::call || m.kind == Kind::pass) return cells.skip(kKinds + kRanks + kMostLength);
  cells.one_of(kKinds, static_cast<int>(m.kind));
  cells.one_of(kRanks, m.rank);
  cells.one_of(kMostLength, m.length - 1);
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

  void tell(Action move, bool call, Cells& cells) const {
    const auto found = std::ranges::lower_bound(legal_, move);
    if (found == legal_.end() || *found != move) return;
    const float like = likes_[at(found - legal_.begin())];
    for (const float behind : kBehind) cells.flag(top_ - like >= behind);
    cells.flag(!call && like >= kCertainLike);
    cells.flag(move == choice_);
  }

 private:
  ActionList legal_;
  std::vector<float> likes_;
  float top_ = 0;
  Action choice_ = kNoAction;
};

}  // namespace

void move_analysis(const View& view, std::span<const Action> moves, float* out) {
  const Sight sight = Sight::of(view);
  const Opinion opinion(view);
  for (const Action move : moves) {
    const Move& m = Universe::get()[move];
    const bool call = m.kind == Kind::call;
    const Cards rest = minus(view.hand(), m.cards);
    Cells cells(out);
    cells.cards(rest);
    cells.one_of(kMostPlays + 1, fewest_plays_bound(rest));
    cells.one_of(kDealSize + kBottomSize + 1, size_of(rest));
    shape_of(m, cells);
    cells.flag(!call && m.kind != Kind::pass && view.table().phase == Phase::play && stands(sight, m));
    opinion.tell(move, call, cells);
    out += kMoveAnalysis;
  }
}

}  // namespace bothost::doudizhu
