#include <algorithm>
#include <cmath>

#include "mahjong/fan_parts.h"
#include "mahjong/planner.h"
#include "mahjong/policy.h"

namespace bothost::mahjong {
namespace {

struct Route {
  enum Kind : std::uint8_t { special, pungs, flush, half_flush, chows, all_types } kind;
  std::string_view name;
  int points;
  /// Flushes: the suit.
  int suit = 0;
  /// Chows: the middle tiles of the three that score.
  std::array<Tile, 3> chow{};
  /// Special ones: the shape of the hand.
  Shape shape = Shape::standard;
};

std::vector<Route> make_routes() {
  const auto special = [](std::string_view name, int points, Shape shape) {
    return Route{.kind = Route::special, .name = name, .points = points, .shape = shape};
  };
  std::vector<Route> out = {special("seven pairs", 24, Shape::seven_pairs),
                            {Route::pungs, "all pungs", 6},
                            {Route::all_types, "all types", 6},
                            special("knitted straight", 12, Shape::knitted_straight),
                            special("honours and knitted tiles", 12, Shape::honours_and_knitted),
                            special("thirteen orphans", 88, Shape::thirteen_orphans)};
  const auto add_chows = [&out](std::string_view name, int points, int a, int b, int c) {
    out.push_back(
        {Route::chows, name, points, 0, {static_cast<Tile>(a), static_cast<Tile>(b), static_cast<Tile>(c)}});
  };
  for (int s = 0; s < 3; ++s) {
    out.push_back({Route::flush, "full flush", 24, s});
    out.push_back({Route::half_flush, "half flush", 6, s});
    add_chows("pure straight", 16, 9 * s + 1, 9 * s + 4, 9 * s + 7);
  }
  for (int r = 1; r <= 7; ++r) add_chows("mixed triple chow", 8, r, 9 + r, 18 + r);
  for (const auto& o : kSuitOrders) {
    add_chows("mixed straight", 8, 9 * o[0] + 1, 9 * o[1] + 4, 9 * o[2] + 7);
    for (int r = 1; r <= 5; ++r)
      add_chows("mixed shifted chows", 6, 9 * o[0] + r, 9 * o[1] + r + 1, 9 * o[2] + r + 2);
  }
  return out;
}

const std::vector<Route>& routes() {
  static const std::vector<Route> all = make_routes();
  return all;
}

int melds_of(const Holding& h) { return static_cast<int>(h.num_melds); }

class Judge {
 public:
  explicit Judge(const View& view) : view_(view), unseen_(view.unseen()) {
    const auto left = static_cast<double>(view.table().left_for(view.rules(), view.seat()));
    const double all = view.rules().wall == WallModel::shared ? 84.0 : 21.0;
    // What one missing tile leaves of the worth: less and less as the wall runs out.
    per_tile_ = 0.12 + 0.26 * std::min(1.0, left / all);
  }

  struct Worth {
    double value = 0;
    std::string_view route = "nothing";
  };

  Worth worth(const Holding& h) const {
    std::array<std::pair<double, const Route*>, 4> best{};
    double others = 0;
    const int extras = certain_points(h);
    for (const auto& route : routes()) {
      const int n = needed(route, h);
      if (n >= 9) continue;
      const double v = share(route, h, extras) * (24 + route.points) * std::pow(per_tile_, n);
      if (v > best.back().first) {
        others += best.back().first * best.back().first;
        best.back() = {v, &route};
        std::ranges::sort(best, [](const auto& a, const auto& b) { return a.first > b.first; });
      } else {
        others += v * v;
      }
    }
    Worth w;
    double sum = 0.09 * others, top = 0;
    for (const auto& [v, route] : best) {
      if (!route) continue;
      const double grown = v * (0.3 + helping_copies(*route, h) / 16.0);
      sum += grown * grown;
      if (grown > top) top = grown, w.route = route->name;
    }
    const double waiting = waits(h);
    if (waiting > top) w.route = "waiting";
    w.value = std::sqrt(sum + waiting * waiting);
    return w;
  }

 private:
  /// Points that the hand has by its honours and its concealment, whatever else it becomes.
  int certain_points(const Holding& h) const {
    const auto melds = h.on_table();
    int sum = std::ranges::all_of(melds, [](const Meld& m) { return m.concealed; }) ? 2 : 0;
    for (int t = kWindEast; t < kKinds; ++t) {
      const bool pung = h.standing[at(t)] >= 3 || std::ranges::any_of(h.on_table(), [t](const Meld& m) {
                          return m.kind != Meld::chow && m.tile == t;
                        });
      if (!pung) continue;
      sum += is_dragon(t) ? 2 : 1;
      sum += t == kWindEast + view_.seat();
      sum += t == kWindEast + view_.table().wind;
    }
    return sum;
  }

  /// How surely a route reaches the minimum.
  double share(const Route& route, const Holding& h, int extras) const {
    if (route.points + extras >= view_.rules().minimum) return 1.0;
    const bool chows_only =
        std::ranges::all_of(h.on_table(), [](const Meld& m) { return m.kind == Meld::chow; });
    // Concealed pungs, pungs of terminals, kongs: two points are rarely far.
    if (route.kind == Route::pungs) return 0.75;
    if (route.kind != Route::chows) return 0.5;
    return chows_only ? 0.7 : 0.4;  // all chows, all simples
  }

  int needed(const Route& route, const Holding& h) const {
    switch (route.kind) {
      case Route::special: return distances(h.standing, melds_of(h))[at(route.shape)];
      case Route::pungs: return needed_pungs(h);
      case Route::flush:
      case Route::half_flush: return needed_flush(route, h);
      case Route::all_types: return needed_types(h);
      case Route::chows: return needed_chows(route, h);
    }
    return kNever;
  }

  int needed_pungs(const Holding& h) const {
    for (const auto& m : h.on_table())
      if (m.kind == Meld::chow) return kNever;
    Counts held{};
    for (std::size_t t = 0; t < kKinds; ++t)
      if (h.standing[t] > 0 && h.standing[t] + unseen_[t] >= 2)
        held[t] = std::min<std::uint8_t>(h.standing[t], 3);
    std::ranges::sort(held, std::greater<>());
    const auto sets = at(4 - melds_of(h));
    int n = std::max(0, 2 - held[sets]);
    for (std::size_t i = 0; i < sets; ++i) n += 3 - held[i];
    return n;
  }

  int needed_flush(const Route& route, const Holding& h) const {
    const auto fits = [&](int t) {
      return suit_of(t) == route.suit || (route.kind == Route::half_flush && !is_number(t));
    };
    for (const auto& m : h.on_table())
      if (!fits(m.tile)) return kNever;
    Counts kept{};
    for (int t = 0; t < kKinds; ++t)
      if (fits(t)) kept[at(t)] = h.standing[at(t)];
    return needed_standard(kept, melds_of(h));
  }

  int needed_types(const Holding& h) const {
    // Characters, bamboos, dots, winds, dragons: a set of each, one of them the pair.
    constexpr int kTypes = 5;

    std::array<bool, kTypes> done{};
    for (const auto& m : h.on_table()) {
      if (done[at(type_of(m.tile))]) return kNever;
      done[at(type_of(m.tile))] = true;
    }
    int sum = 0, saved = -kNever;
    for (int i = 0; i < kTypes; ++i) {
      if (done[at(i)]) continue;
      int set, pair;
      if (i < 3) {
        const auto& d = DistanceTable::get().distance(h.standing, at(i));
        set = d[1];
        pair = d[8];
      } else {
        const auto first = h.standing.begin() + (i == 3 ? kWindEast : kDragonRed);
        const int most = *std::max_element(first, first + (i == 3 ? 4 : 3));
        set = std::max(0, 3 - most);
        pair = std::max(0, 2 - most);
      }
      sum += set;
      saved = std::max(saved, set - pair);
    }
    return sum - saved;
  }

  int needed_chows(const Route& route, const Holding& h) const {
    std::array<bool, 3> done{};
    int free_melds = 1;
    for (const auto& m : h.on_table()) {
      bool used = false;
      for (std::size_t i = 0; i < 3 && !used; ++i)
        if (m.kind == Meld::chow && !done[i] && m.tile == route.chow[i]) used = done[i] = true;
      if (!used && --free_melds < 0) return kNever;
    }
    Counts rest = h.standing;
    int missing = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (done[i]) continue;
      for (int t = route.chow[i] - 1; t <= route.chow[i] + 1; ++t) {
        if (rest[at(t)] > 0) {
          --rest[at(t)];
          continue;
        }
        if (unseen_[at(t)] == 0) return kNever;
        ++missing;
      }
    }
    return missing + needed_standard(rest, 4 - free_melds);
  }

  /// Unseen copies of the tiles that bring a route nearer.
  double helping_copies(const Route& route, const Holding& h) const {
    const int now = needed(route, h);
    Holding with = h;
    int sum = 0;
    for (std::size_t t = 0; t < kKinds; ++t) {
      if (unseen_[t] == 0) continue;
      ++with.standing[t];
      if (needed(route, with) < now) sum += unseen_[t];
      --with.standing[t];
    }
    return sum;
  }

  /// A hand that waits: what its winning tiles are worth by their very fans.
  double waits(const Holding& h) const {
    if (needed_tiles(h.standing, melds_of(h)) != 1) return 0;
    WinContext win;
    win.seat_wind = static_cast<std::uint8_t>(view_.seat());
    win.prevalent_wind = view_.table().wind;
    double sum = 0;
    Counts with = h.standing;
    auto tiles = useful_tiles(h.standing, melds_of(h)).tiles;
    for (; tiles; tiles &= tiles - 1) {
      const auto t = lowest(tiles);
      if (unseen_[t] == 0) continue;
      ++with[t];
      win.win_tile = static_cast<Tile>(t);
      for (const bool self_drawn : {false, true}) {
        win.self_drawn = self_drawn;
        const auto fans = calculate_fans(with, h.on_table(), win);
        if (fans && fans->points >= view_.rules().minimum)
          sum += unseen_[t] * (24.0 + fans->points) * (self_drawn ? 0.3 : 0.7);
      }
      --with[t];
    }
    return 1.5 * per_tile_ * sum / 8.0;
  }

  const View& view_;
  Counts unseen_;
  double per_tile_;
};

/// Worth after the best discard.
Judge::Worth best_discard(const Judge& judge, const Holding& h) {
  Judge::Worth best;
  best.value = -1;
  for (int t = 0; t < kKinds; ++t) {
    if (h.standing[at(t)] == 0) continue;
    const auto w = judge.worth(after(h, Move::play, static_cast<Tile>(t), kHidden));
    if (w.value > best.value) best = w;
  }
  return best;
}

/// What an action must gain on the alternatives: open melds tell, and cannot be taken back.
double price(Move move) {
  if (move == Move::chi) return 1.25;
  if (move == Move::peng) return 1.15;
  return move == Move::gang || move == Move::bugang ? 1.02 : 1.0;
}

}  // namespace

Choice choose_simply(const View& view) {
  ActionList legal;
  view.legal(legal);
  if (legal.empty()) throw InvalidInput("this seat is not asked");
  const auto& table = view.table();
  if (std::ranges::find(legal, kHu) != legal.end()) {
    const auto fans = win_fans(view.rules(), table, view.seat(), view.hand(), view.drawn());
    if (fans && fans->points >= view.rules().minimum) return {kHu, "win", static_cast<double>(fans->total)};
  }
  const Holding now = holding_of(view.hand(), table.melds_of(view.seat()));
  const Judge judge(view);
  Choice best{legal.front(), "nothing", -1};
  for (const auto action : legal) {
    const auto [move, tile] = parts(action);
    if (move == Move::hu) continue;
    const auto h = after(now, move, tile, table.last_tile);
    const bool discards = move == Move::chi || move == Move::peng;
    const auto w = discards ? best_discard(judge, h) : judge.worth(h);
    const double value = w.value / price(move);
    if (value > best.worth) best = {action, w.route, value};
  }
  return best;
}

}  // namespace bothost::mahjong
