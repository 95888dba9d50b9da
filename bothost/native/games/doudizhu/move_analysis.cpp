#include <algorithm>
#include <vector>

#include "doudizhu/cells.h"

namespace bothost::doudizhu {
namespace {

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

}  // namespace

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

}  // namespace bothost::doudizhu
