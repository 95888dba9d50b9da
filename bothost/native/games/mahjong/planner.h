// Values a seat's actions by what the hand can win afterwards (lookahead.h) and what a discard may cost
// (visible.h).
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "mahjong/lookahead.h"
#include "mahjong/view.h"
#include "mahjong/visible.h"

namespace bothost::mahjong {

Outlook outlook_of(const View& view, Appraisal appraisal = Appraisal::plain);
/// After an action, before a tile is drawn. `claimed`: the last discard.
Holding after(const Holding& before, Move move, Tile tile, Tile claimed);
/// The targets of the view's hand, none found yet.
Targets targets_of(const View& view);

/// An action and what it leads to. After a claim that requires a discard, the best discard counts.
struct Option {
  Action action = kPass;
  Prospect prospect;
  /// Points that the discard is expected to lose.
  double danger = 0;
  double value() const { return prospect.worth - danger; }
};

class Planner {
 public:
  /// The view's seat need not be asked. `targets`: those of the view's hand.
  Planner(const View& view, Targets& targets, Appraisal appraisal = Appraisal::plain);

  /// One option for each of `actions`, which must be legal. A win is worth what it pays.
  std::vector<Option> options(std::span<const Action> actions);

 private:
  Option option(Action action);
  Option win() const;
  /// The best discard of a hand that must discard.
  Option discard(const Counts& standing, const LookAhead& ahead);
  const std::array<double, kKinds>& dangers();

  const View& view_;
  Targets& targets_;
  Outlook outlook_;
  Arrivals arrivals_;
  int depth_ = 0;
  LookAhead ahead_;
  std::optional<std::array<double, kKinds>> dangers_;
};

}  // namespace bothost::mahjong
