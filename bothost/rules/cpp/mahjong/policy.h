// The rule player: it aims at the hands that reach the eight points, by how near they are and how many tiles
// help.
//
// A route is a family of hands that score by themselves or nearly so (all pungs, a flush, three chows in
// step, …). The worth of the standing tiles is summed over the routes: points of the win, shrunk by a factor
// for each missing tile, grown by the unseen copies of the tiles that help; where the hand waits, the fans of
// each tile are calculated. Every discard, claim and kong is tried, and the best is taken; a claim must gain
// more than it gives away.
#pragma once
#include <string_view>

#include "mahjong/view.h"

namespace bothost::mahjong {

struct Choice {
  Action action;
  /// The route that counts most after the action, or "win".
  std::string_view reason;
  /// Worth of the hand after the action, on the policy's own scale.
  double worth;
};

/// The view must be asked. Deterministic; about 0.1 ms.
Choice choose(const View& view);

}  // namespace bothost::mahjong
