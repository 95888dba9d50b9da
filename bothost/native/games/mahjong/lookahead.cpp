#include "mahjong/lookahead.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace bothost::mahjong {
namespace {

/// Where a missing tile may come from: the wall only; also the previous seat, for a chow; also all others,
/// for a pung or to win.
enum Source : std::size_t { own, chow, any };
/// Discards of others that can be claimed, for each own draw. They are rarer than draws: others want the tile
/// too, and see what we claim.
constexpr std::array<double, 3> kClaims = {0.0, 0.4, 1.5};

/// All others pay a self-drawn win.
double payment(double points, bool self_drawn_only) {
  return self_drawn_only ? 3 * (8 + points) : 24 + 1.5 * points;
}

class Evaluation final : public TargetVisitor {
 public:
  Evaluation(const Holding& holding, const Outlook& outlook, bool fans, LookAhead& out)
      : holding_(holding), outlook_(outlook), fans_(fans), out_(out) {
    set_chances();
    win_.seat_wind = outlook.seat_wind;
    win_.prevalent_wind = outlook.prevalent_wind;
  }

  /// Call after all targets are visited: combines the credited worths.
  void pool() {
    if (!outlook_.draw_rates) return;
    const auto norm = [](Prospect& p, double ready) {
      const double root = std::cbrt(p.worth + powered(ready));
      p.worth = root * root;
    };
    norm(out_.now, ready_now_);
    for (std::size_t t = 0; t < kKinds; ++t) norm(out_.after[t], ready_after_[t]);
  }

  void visit(const Target& target) override {
    if (target.tiles_needed == 0) return;
    ++out_.targets;
    switch (target.shape) {
      case Shape::standard:
      case Shape::knitted_straight:
        target.tiles_needed == 1 ? last_tile(target) : sets(target);
        return;
      default:
        special(target);
    }
  }

 private:
  /// A worth raised to the order of the norm.
  static double powered(double worth) { return worth * std::sqrt(worth); }

  void set_chances() {
    int sum = 0;
    for (const int n : outlook_.unseen) sum += n;
    const double turns = outlook_.turns / std::max(1, sum);
    for (std::size_t s = 0; s < chance_.size(); ++s) {
      auto& chances = chance_[s];
      if (!outlook_.draw_rates) {
        for (std::size_t u = 0; u < chances[0].size(); ++u) {
          const double rate = static_cast<double>(u) * (1 + kClaims[s]) / std::max(1, sum);
          chances[0][u] = 1 - std::exp(-outlook_.turns * rate);
        }
        std::fill(chances.begin() + 1, chances.end(), chances[0]);
        continue;
      }
      const auto& by_others =
          s == chow ? outlook_.draw_rates->discarded_before : outlook_.draw_rates->discarded;
      for (std::size_t t = 0; t < kKinds; ++t) {
        const double missed = std::exp(-turns * (outlook_.draw_rates->drawn[t] + kClaims[s] * by_others[t]));
        double none = 1;
        for (auto& chance : chances[t]) {
          chance = 1 - none;
          none *= missed;
        }
      }
    }
  }

  /// The most valuable of several ways to finish a target.
  struct Leaf {
    double chance = 0, worth = 0;
    int points = 0;
    FanSet fans;
    /// By a draw or from a discard.
    FanSet any_fans;
  };

  /// One tile wins: its exact fans by the best reading, drawn and from a discard.
  void last_tile(const Target& target) {
    const Tile tile = target.missing[0].tile;
    std::size_t spare = 0;
    while (spare < kKinds && holding_.standing[spare] <= target.standing[spare]) ++spare;
    if (std::exchange(met_[tile][spare], true)) return;  // another reading of the same hand
    Leaf leaf;
    const double drawn = chance_[own][tile][outlook_.unseen[tile]];
    for (const bool self_drawn : {false, true}) {
      win_.win_tile = tile;
      win_.self_drawn = self_drawn;
      const auto fans = calculate_fans(target.standing, holding_.on_table(), win_);
      if (!fans || fans->points < outlook_.minimum) continue;
      const double chance = self_drawn ? drawn : chance_[any][tile][outlook_.unseen[tile]] - drawn;
      leaf.chance += chance;
      leaf.worth += chance * (self_drawn ? 3.0 * (8 + fans->points) : 24.0 + fans->points);
      leaf.points = fans->points;
      leaf.fans = FanSet();
      for (std::size_t f = 0; f < kFans; ++f)
        if (fans->times[f]) leaf.fans.insert(static_cast<Fan>(f));
      leaf.any_fans.insert(leaf.fans);
    }
    credit(target, leaf);
  }

  /// Several tiles are missing: open, with claims, or closed, where only the last tile may be claimed.
  void sets(const Target& target) {
    const auto& last = target.missing[static_cast<std::size_t>(target.tiles_needed - 1)];
    Reading reading = target.reading;
    // The fan calculation does not count a pung as concealed if a discard completes it.
    if (last.part < kPairPart) reading.sets[last.part].concealed = true;
    win_.win_tile = last.tile;
    win_.self_drawn = false;
    auto [fans, points] = reading_fans(reading, target.standing, holding_.on_table(), win_, false);
    const bool concealed = fans.contains(Fan::concealed_hand);
    if (concealed) points -= points_of(Fan::concealed_hand);
    Leaf leaf;
    const auto rates = chances(target);
    const auto consider = [&, &fans = fans](double chance, int p, bool self_drawn_only) {
      const double worth = chance * payment(p, self_drawn_only);
      if (worth > leaf.worth) leaf = {chance, worth, p, fans, fans};
    };
    const int least = outlook_.minimum;
    if (points >= least)
      consider(rates.claiming, points, false);
    else if (points + 1 >= least)
      consider(rates.claiming_to_draw, points + 1, true);
    if (concealed && points < least) {
      if (points + points_of(Fan::concealed_hand) >= least)
        consider(rates.closed, points + points_of(Fan::concealed_hand), false);
      else if (points + points_of(Fan::fully_concealed_hand) >= least)
        consider(rates.drawn, points + points_of(Fan::fully_concealed_hand), true);
    }
    credit(target, leaf);
  }

  struct Chances {
    /// With all claims; with claims except of the last tile; with a claim of the last tile only; without
    /// claims.
    double claiming, claiming_to_draw, closed, drawn;
  };

  Chances chances(const Target& target) const {
    std::array<std::uint8_t, kKinds> coming{};  // copies already counted
    std::array<int, 6> of_part{};
    for (const auto& m : target.missing_tiles()) ++of_part[m.part];
    double drawn = 1, claiming = 1, best_last = 1, best_last_claim = 1, best_loss = 0;
    std::array<int, 6> seen{};
    for (const auto& [tile, part] : target.missing_tiles()) {
      const int left = outlook_.unseen[tile] - coming[tile]++;
      const auto u = static_cast<std::size_t>(std::max(left, 0));
      const double mine = chance_[own][tile][u], anybody = chance_[any][tile][u];
      Source source = own;
      if (part < kPairPart && ++seen[part] == of_part[part] && target.shape == Shape::standard)
        source = target.reading.sets[part].kind == Meld::chow ? chow : any;
      const double claimed = chance_[source][tile][u];
      drawn *= mine;
      claiming *= claimed;
      best_last = std::max(best_last, mine > 0 ? anybody / mine : 1);
      best_last_claim = std::max(best_last_claim, claimed > 0 ? anybody / claimed : 1);
      best_loss = std::max(best_loss, claimed > 0 ? mine / claimed : 0);
    }
    return {claiming * best_last_claim, claiming * best_loss, drawn * best_last, drawn};
  }

  /// Seven pairs, thirteen orphans, honours and knitted tiles: only the last tile may be claimed.
  void special(const Target& target) {
    Leaf leaf;
    const auto rates = chances(target);
    leaf.points = target.shape == Shape::seven_pairs        ? points_of(Fan::seven_pairs)
                  : target.shape == Shape::thirteen_orphans ? points_of(Fan::thirteen_orphans)
                                                            : points_of(Fan::lesser_honors_and_knitted_tiles);
    leaf.fans.insert(target.shape == Shape::seven_pairs        ? Fan::seven_pairs
                     : target.shape == Shape::thirteen_orphans ? Fan::thirteen_orphans
                                                               : Fan::lesser_honors_and_knitted_tiles);
    if (leaf.points < outlook_.minimum) return;
    leaf.any_fans = leaf.fans;
    leaf.chance = rates.closed;
    leaf.worth = leaf.chance * payment(leaf.points, false);
    credit(target, leaf);
  }

  /// Credits the hand, and every discard that the target does not use.
  void credit(const Target& target, const Leaf& leaf) {
    if (leaf.worth <= 0) return;
    add(out_.now, ready_now_, target, leaf);
    for (std::size_t t = 0; t < kKinds; ++t)
      if (holding_.standing[t] > target.standing[t]) add(out_.after[t], ready_after_[t], target, leaf);
  }

  /// `ready`: the summed worth of targets that need one tile. They do not share it, so their worths are
  /// summed even where others are combined by their norm.
  void add(Prospect& p, double& ready, const Target& target, const Leaf& leaf) const {
    if (!outlook_.draw_rates)
      p.worth += leaf.worth;
    else if (target.tiles_needed == 1)
      ready += leaf.worth;
    else
      p.worth += powered(leaf.worth);
    p.chance += leaf.chance;
    p.shapes[static_cast<std::size_t>(target.shape)] = true;
    if (fans_) p.all_fans.insert(leaf.any_fans);
    if (leaf.worth <= p.best_worth) return;
    p.best_worth = leaf.worth;
    p.tiles_needed = target.tiles_needed;
    p.points = leaf.points;
    p.shape = target.shape;
    p.fans = leaf.fans;
  }

  const Holding& holding_;
  const Outlook& outlook_;
  bool fans_;
  LookAhead& out_;
  /// By source, kind and unseen copies.
  std::array<std::array<std::array<double, 5>, kKinds>, 3> chance_{};
  double ready_now_ = 0;
  std::array<double, kKinds> ready_after_{};
  WinContext win_;
  /// Wins found, by the last tile and the spare tile; the last index means no spare tile.
  std::array<std::array<bool, kKinds + 1>, kKinds> met_{};
};

}  // namespace

LookAhead look_ahead(const Holding& holding, const Outlook& outlook, int depth, bool fans) {
  LookAhead out;
  Counts held = holding.standing;
  for (const auto& m : holding.on_table()) {
    if (m.kind == Meld::chow)
      for (int t = m.tile - 1; t <= m.tile + 1; ++t) ++held[static_cast<std::size_t>(t)];
    else
      held[m.tile] = static_cast<std::uint8_t>(held[m.tile] + (m.kind == Meld::kong ? 4 : 3));
  }
  // A view of false events may hold a fifth copy or wait for one. It has no targets.
  if (*std::max_element(held.begin(), held.end()) > 4) return out;
  Outlook possible = outlook;
  for (std::size_t t = 0; t < kKinds; ++t)
    possible.unseen[t] = std::min<std::uint8_t>(possible.unseen[t], static_cast<std::uint8_t>(4 - held[t]));
  Evaluation evaluation(holding, possible, fans, out);
  each_target(holding.standing, holding.on_table(), possible.unseen, depth, evaluation);
  evaluation.pool();
  return out;
}

LookAhead look_as_far(const Holding& holding, const Outlook& outlook, int first, int deepest, int* reached) {
  for (int depth = first;; ++depth) {
    auto out = look_ahead(holding, outlook, depth);
    const bool found = out.now.worth > 0;
    if (!found && depth < deepest) continue;
    if (found && depth < deepest) out = look_ahead(holding, outlook, ++depth);
    if (reached) *reached = depth;
    return out;
  }
}

}  // namespace bothost::mahjong
