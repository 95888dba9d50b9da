#include "mahjong/lookahead.h"

#include <algorithm>
#include <cmath>

namespace bothost::mahjong {
namespace {

/// All others pay a self-drawn win.
double payment(double points, bool self_drawn_only) {
  return self_drawn_only ? 3 * (8 + points) : 24 + 1.5 * points;
}

/// The most valuable of several ways to finish a target.
struct Leaf {
  double chance = 0, worth = 0;
  int points = 0;
};

/// Chances of a target: with all claims; with claims except of the last tile; with a claim of the last tile
/// only; without claims.
struct Chances {
  double claiming, claiming_to_draw, closed, drawn;
};

Chances chances_of(const Target& target, const Arrivals& arrivals) {
  double drawn = 1, claiming = 1, best_last = 1, best_last_claim = 1, best_loss = 0;
  for (std::size_t i = 0; i < target.tiles_needed; ++i) {
    const auto& chance = arrivals[target.missing[i]];
    drawn *= chance.drawn;
    claiming *= chance.claimed;
    best_last = std::max(best_last, chance.win_by_draw);
    best_last_claim = std::max(best_last_claim, chance.win_by_claim);
    best_loss = std::max(best_loss, chance.draw_by_claim);
  }
  return {claiming * best_last_claim, claiming * best_loss, drawn * best_last, drawn};
}

class Evaluation {
 public:
  Evaluation(const Targets& targets, const Arrivals& arrivals, bool fans)
      : targets_(targets), arrivals_(arrivals), fans_(fans) {}

  LookAhead of(int depth) {
    for (const auto& target : targets_.all()) {
      if (target.tiles_needed > depth) continue;
      const Leaf leaf = target.wait >= 0 ? one_tile(target)
                        : target.shape == Shape::standard || target.shape == Shape::knitted_straight
                            ? sets(target)
                            : special(target);
      if (leaf.worth > 0) credit(target, leaf);
    }
    LookAhead out;
    out.targets = targets_.count(depth);
    const auto& standing = targets_.holding().standing;
    for (std::size_t t = 0; t < kKinds; ++t)
      if (standing[t] > 0) out.after[t] = prospect(sums_[t]);
    out.now = prospect(sums_[kKinds]);
    return out;
  }

 private:
  /// Over the targets after a discard.
  struct Sum {
    double worth = 0, chance = 0;
    /// The summed worth of targets that need one tile. They do not share it, so their worths are summed even
    /// where others are combined by their norm.
    double ready = 0;
    double best_worth = 0;
    int best_points = 0;
    const Target* best = nullptr;
    std::array<bool, kShapes> shapes{};
    FanSet all_fans;
  };

  Leaf one_tile(const Target& target) const {
    const auto& wait = targets_.wait(target);
    const auto unseen = targets_.unseen()[wait.tile];
    const double drawn = arrivals_[arrival(own, wait.tile, unseen)].drawn;
    Leaf leaf;
    if (const int points = wait.points[0]) {
      leaf.chance = arrivals_[arrival(any, wait.tile, unseen)].claimed - drawn;
      leaf.worth = leaf.chance * (24.0 + points);
      leaf.points = points;
    }
    if (const int points = wait.points[1]) {
      leaf.chance += drawn;
      leaf.worth += drawn * (3.0 * (8 + points));
      leaf.points = points;
    }
    return leaf;
  }

  /// Several tiles are missing: open, with claims, or closed, where only the last tile may be claimed.
  Leaf sets(const Target& target) const {
    const auto rates = chances_of(target, arrivals_);
    const int least = targets_.minimum(), points = target.points;
    Leaf leaf;
    const auto consider = [&](double chance, int p, bool self_drawn_only) {
      const double worth = chance * payment(p, self_drawn_only);
      if (worth > leaf.worth) leaf = {chance, worth, p};
    };
    if (points >= least)
      consider(rates.claiming, points, false);
    else if (points + 1 >= least)
      consider(rates.claiming_to_draw, points + 1, true);
    if (target.concealed && points < least) {
      if (points + points_of(Fan::concealed_hand) >= least)
        consider(rates.closed, points + points_of(Fan::concealed_hand), false);
      else if (points + points_of(Fan::fully_concealed_hand) >= least)
        consider(rates.drawn, points + points_of(Fan::fully_concealed_hand), true);
    }
    return leaf;
  }

  /// Seven pairs, thirteen orphans, honours and knitted tiles: only the last tile may be claimed.
  Leaf special(const Target& target) const {
    const double chance = chances_of(target, arrivals_).closed;
    return {chance, chance * payment(target.points, false), target.points};
  }

  /// Credits the hand, and every discard that the target does not use.
  void credit(const Target& target, const Leaf& leaf) {
    const bool ready = arrivals_.weighted() && target.tiles_needed == 1;
    // Raised to the order of the norm.
    const double worth = arrivals_.weighted() && !ready ? leaf.worth * std::sqrt(leaf.worth) : leaf.worth;
    FanSet fans = target.fans;
    if (fans_ && target.wait >= 0) fans = both(targets_.wait(target));
    const auto add = [&](Sum& sum) {
      (ready ? sum.ready : sum.worth) += worth;
      sum.chance += leaf.chance;
      if (fans_) {
        sum.shapes[at(target.shape)] = true;
        sum.all_fans.insert(fans);
      }
      if (leaf.worth <= sum.best_worth) return;
      sum.best_worth = leaf.worth;
      sum.best_points = leaf.points;
      sum.best = &target;
    };
    add(sums_[kKinds]);
    for (auto spare = target.spare; spare; spare &= spare - 1) add(sums_[lowest(spare)]);
  }

  static FanSet both(const Wait& wait) {
    FanSet fans = wait.fans[0];
    fans.insert(wait.fans[1]);
    return fans;
  }

  Prospect prospect(const Sum& sum) const {
    Prospect p;
    if (!sum.best) return p;
    p.worth = sum.worth;
    if (arrivals_.weighted()) {
      const double root = std::cbrt(sum.worth + sum.ready * std::sqrt(sum.ready));
      p.worth = root * root;
    }
    p.chance = sum.chance;
    p.best_worth = sum.best_worth;
    p.tiles_needed = sum.best->tiles_needed;
    p.points = sum.best_points;
    p.shape = sum.best->shape;
    p.fans = sum.best->fans;
    if (sum.best->wait >= 0) {
      const auto& wait = targets_.wait(*sum.best);
      p.fans = wait.fans[wait.points[1] > 0];
    }
    p.shapes = sum.shapes;
    p.all_fans = sum.all_fans;
    return p;
  }

  const Targets& targets_;
  const Arrivals& arrivals_;
  const bool fans_;
  /// By the kind that is discarded; the last is without a discard.
  std::array<Sum, kKinds + 1> sums_;
};

Arrivals::Chance chance_of(double drawn, double claimed, double won) {
  return {drawn, claimed, drawn > 0 ? won / drawn : 1, claimed > 0 ? won / claimed : 1,
          claimed > 0 ? drawn / claimed : 0};
}

}  // namespace

Arrivals::Arrivals(const Outlook& outlook, const Counts& unseen)
    : unseen_(unseen), weighted_(outlook.draw_rates.has_value()) {
  int sum = 0;
  for (const int n : unseen) sum += n;
  sum = std::max(1, sum);
  if (weighted_)
    weigh(*outlook.draw_rates, outlook.turns / sum);
  else
    set_equal(outlook.turns, sum);
}

void Arrivals::set_equal(double turns, int sum) {
  std::array<std::array<double, 5>, kSources> chances;
  for (std::size_t s = 0; s < kSources; ++s)
    for (std::size_t u = 0; u < 5; ++u) {
      const double rate = static_cast<double>(u) * (1 + kClaims[s]) / sum;
      chances[s][u] = 1 - std::exp(-turns * rate);
    }
  for (const auto s : {own, chow, any})
    for (int u = 0; u < 5; ++u) {
      const auto chance = chance_of(chances[own][at(u)], chances[s][at(u)], chances[any][at(u)]);
      for (std::size_t t = 0; t < kKinds; ++t) chances_[arrival(s, t, u)] = chance;
    }
}

void Arrivals::weigh(const DrawRates& rates, double turns) {
  for (std::size_t t = 0; t < kKinds; ++t) {
    std::array<std::array<double, 5>, kSources> chances;
    for (const auto s : {own, chow, any}) {
      const auto& by_others = s == chow ? rates.discarded_before : rates.discarded;
      const double missed = std::exp(-turns * (rates.drawn[t] + kClaims[s] * by_others[t]));
      double none = 1;
      for (auto& chance : chances[s]) {
        chance = 1 - none;
        none *= missed;
      }
    }
    for (const auto s : {own, chow, any})
      for (int u = 0; u <= unseen_[t]; ++u)
        chances_[arrival(s, t, u)] = chance_of(chances[own][at(u)], chances[s][at(u)], chances[any][at(u)]);
  }
}

LookAhead look_ahead(const Targets& targets, const Arrivals& arrivals, int depth, bool fans) {
  return Evaluation(targets, arrivals, fans).of(depth);
}

LookAhead look_as_far(Targets& targets, const Arrivals& arrivals, int first, int deepest, int& reached) {
  for (reached = std::max(first, std::min(first + 1, deepest));; reached = std::min(reached + 2, deepest)) {
    targets.find(reached);
    const int nearest = targets.nearest();
    if (nearest <= reached) {
      reached = std::max(first, std::min(std::max(first, nearest) + 1, deepest));
      targets.find(reached);
    } else if (reached < deepest) {
      continue;
    }
    return look_ahead(targets, arrivals, reached);
  }
}

}  // namespace bothost::mahjong
