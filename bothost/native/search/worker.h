// One tree, grown by one thread.
//
// Every iteration takes a full state that fits the root view (a determinization), descends by UCT among its
// legal actions, and values the leaf. All determinizations share statistics. An edge's exploration term
// counts only the iterations in which its action was legal.
//
// Whose value is it? An edge holds utilities of the seat that acts at its node, never of the root's seat. A
// playout yields a utility per seat. An evaluator's value is that of the seat that acts at the leaf: its own
// side shares it, other sides get the opposite. Seats of one side (the two peasants) thus maximize the same
// value.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/game.h"
#include "search/options.h"
#include "search/policy.h"
#include "search/resampling.h"
#include "search/tree.h"

namespace bothost::search {

/// A position that waits for the evaluator's values of every action of `asked`, for the seat of `view`.
template <class G>
struct PendingLeaf {
  typename G::View view;
  ActionList asked;
  /// Legal actions that the game's policy prefers less; see Options::leaf_moves.
  ActionList left_out;
  /// The node of the values; kNoNode if they value the leaf alone.
  NodeId node;
};

template <Game G>
class Worker {
 public:
  using State = typename G::State;
  using View = typename G::View;

  Worker(const View& root, int num_seats, const Options& options, std::uint64_t seed)
      : root_(root), num_seats_(num_seats), options_(options), rng_(seed), deals_seed_(rng_.next()) {
    root_.legal(root_legal_);
  }

  Tree& tree() { return tree_; }
  const Tree& tree() const { return tree_; }
  void set_root(const View& root) {
    root_ = root;
    determinizations_.clear();
    exponent_ = 0.0;
    // If several seats are asked at once, another of them may act here in the tree.
    if (const Seat seat = tree_[kRoot].seat; seat != kNobody && seat != root.seat()) tree_.clear();
    root_legal_.clear();
    root_.legal(root_legal_);
    committed_ = kNoAction;
  }
  /// Every further iteration starts with this action of the root.
  void commit(Action action) { committed_ = action; }

  /// Samples `wanted` deals, weights them by likelihood and resamples them, once for each root. It stops
  /// early at `until`, with at least one deal. Sampling importance resampling (Rubin, 1987).
  void resample_determinizations([[maybe_unused]] std::size_t wanted,
                                 [[maybe_unused]] Clock::time_point until) {
    if constexpr (HasLikelihood<G>) {
      if (options_.belief == 0 || !determinizations_.empty()) return;
      std::vector<State> deals;
      std::vector<decltype(G::explain(root_, std::declval<State>(), players()))> explanations;
      do {
        Rng rng = Rng::stream(deals_seed_, deals.size());
        deals.push_back(root_.sample(rng));
        explanations.push_back(G::explain(root_, deals.back(), players()));
      } while (deals.size() < wanted && Clock::now() < until);
      const auto logs_at = [&](double exponent) {
        std::vector<double> logs;
        for (const auto& explanation : explanations) logs.push_back(explanation.log_likelihood(exponent));
        return logs;
      };
      exponent_ = search::tempering_exponent(logs_at, deals.size());
      for (const std::size_t i : systematic(weights_of(logs_at(exponent_)), rng_.uniform()))
        determinizations_.push_back({deals[i], explanations[i].draw(rng_, exponent_)});
      rng_.shuffle(determinizations_.begin(), determinizations_.end());
    }
  }
  std::size_t deals() const { return determinizations_.size(); }
  /// The exponent of the deals' weights; 0 before resampling.
  double tempering_exponent() const { return exponent_; }

  /// One iteration with a playout. The n-th visit of every root action sees the same n-th deal, so that the
  /// luck of the deal cancels between actions.
  void playout() {
    path_.clear();
    NodeId node = kRoot;
    legal_ = root_legal_;
    matches(node, root_.seat());
    if (options_.widening > 0) prefer(node, [&] { return deal(0).state; });
    const std::uint32_t first = root_edge();
    auto [state, types] = deal(tree_[node].edges[first].visits);
    types_ = types;
    bool open = follow(state, node, root_.seat(), first);
    while (open && node != kNoNode && !state.terminal()) {
      const Seat seat = actor(state);
      legal_.clear();
      state.legal(seat, legal_);
      if (!matches(node, seat)) break;
      open = follow(state, node, seat, select(node, state, seat));
    }
    finish(state);
    backup(utilities(state));
  }

  /// One iteration. It ends at a terminal state, which is backed up at once (true), or at a leaf that waits
  /// for the evaluator (false). Seats that play by policy get no nodes.
  bool descend(std::vector<PendingLeaf<G>>& out) {
    path_.clear();
    NodeId node = kRoot;
    Seat seat = root_.seat();
    legal_ = root_legal_;
    matches(node, seat);
    if (asks(node, seat)) {
      Determinization first = deal(0);
      types_ = first.types;
      hand_out(out, node, true, std::move(first.state), seat);
      return false;
    }
    std::uint32_t choice = root_edge();
    const Edge& first = tree_[node].edges[choice];
    auto [state, types] = deal(first.visits + first.pending);
    types_ = types;
    while (true) {
      follow(state, node, seat, choice);
      if (state.terminal()) break;
      seat = actor(state);
      legal_.clear();
      state.legal(seat, legal_);
      const bool same = node != kNoNode && matches(node, seat);
      if (!same || asks(node, seat)) {
        hand_out(out, node, same, std::move(state), seat);
        return false;
      }
      choice = legal_.size() == 1 ? indices_.front() : select(node, state, seat);
    }
    backup(utilities(state));
    return true;
  }
  /// Iterations that wait for values. Several may wait for one leaf.
  std::size_t waiting() const { return awaiting_.size(); }
  /// Whether the root's own values are missing. Without them no action can be chosen.
  bool waits_at_root() const { return !awaiting_.empty() && awaiting_.front().path.empty(); }

  /// Values for the leaves since the last feed, in their order, each aligned with its asked actions.
  void feed(const std::vector<PendingLeaf<G>>& leaves, std::span<const float> values) {
    std::vector<double> bests;
    std::size_t at = 0;
    for (const auto& leaf : leaves) {
      const auto own = values.subspan(at, leaf.asked.size());
      at += own.size();
      bests.push_back(-1.0);
      for (const float value : own) bests.back() = std::max(bests.back(), clamped(value));
      if (leaf.node == kNoNode) continue;
      set_priors(leaf.node, leaf.asked, own);
      if (!leaf.left_out.empty()) {
        const std::vector<float> worst(leaf.left_out.size(), *std::ranges::min_element(own));
        set_priors(leaf.node, leaf.left_out, worst);
      }
    }
    for (const auto& awaiting : awaiting_) {
      const double best = bests[awaiting.leaf];
      path_ = awaiting.path;
      for (const auto& step : path_) --edge(step).pending;
      std::vector<double> utilities(awaiting.sides.size());
      for (std::size_t seat = 0; seat < utilities.size(); ++seat) {
        const double value = awaiting.sides[seat] == awaiting.side ? best : -best;
        utilities[seat] = value + options_.mixing * (awaiting.played[seat] - value);
      }
      backup(utilities);
    }
    awaiting_.clear();
  }

 private:
  struct Step {
    NodeId node;
    Action action;
    Seat seat;
  };
  struct Awaiting {
    std::size_t leaf;
    std::vector<Step> path;
    std::vector<int> sides;
    int side;
    /// Utilities of a playout, if one is mixed in.
    std::vector<double> played;
  };

  static Seat actor(const State& state) { return static_cast<Seat>(std::countr_zero(state.to_act())); }
  static double clamped(float value) {
    return std::isfinite(value) ? std::clamp<double>(value, -1.0, 1.0) : 0.0;
  }

  /// Whether this matched node needs the evaluator's values of its legal actions.
  bool asks(NodeId node, Seat seat) const {
    if (legal_.size() <= 1 || (options_.others == Others::policy && seat != root_.seat())) return false;
    const auto& edges = tree_[node].edges;
    return std::ranges::any_of(indices_, [&](std::uint32_t i) { return !edges[i].has_prior; });
  }

  /// Makes this iteration wait for the values of a leaf. At its own nodes a seat sees the same in any deal.
  void hand_out(std::vector<PendingLeaf<G>>& out, NodeId node, bool same, State state, Seat seat) {
    for (const auto& step : path_) ++edge(step).pending;
    std::size_t leaf = out.size();
    if (same && seat == root_.seat())
      leaf = at(std::ranges::find(out, node, &PendingLeaf<G>::node) - out.begin());
    if (leaf == out.size()) {
      out.push_back({path_.empty() ? root_ : state.view(seat), legal_, {}, same ? node : kNoNode});
      if (!path_.empty()) leave_out(out.back(), state, seat);
    }
    const auto at_leaf = sides(state);
    const int side = side_of<G>(state, seat);
    std::vector<double> played(at_leaf.size());
    if (options_.mixing > 0) {
      finish(state);
      played = utilities(state);
    }
    awaiting_.push_back({leaf, path_, at_leaf, side, std::move(played)});
  }

  /// Keeps only the actions of a leaf that the game's policy prefers; see Options::leaf_moves.
  void leave_out([[maybe_unused]] PendingLeaf<G>& leaf, [[maybe_unused]] const State& state,
                 [[maybe_unused]] Seat seat) {
    if constexpr (HasPreferences<G>) {
      const auto most = at(options_.leaf_moves);
      if (most == 0 || leaf.asked.size() <= most) return;
      preferences_.resize(leaf.asked.size());
      G::preferences(state, seat, leaf.asked, preferences_);
      auto ranked = preferences_;
      std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(most) - 1, ranked.end(),
                       std::greater<>());
      const float least = ranked[most - 1];
      ActionList kept;
      for (std::size_t i = 0; i < leaf.asked.size(); ++i)
        (preferences_[i] >= least && kept.size() < most ? kept : leaf.left_out).push_back(leaf.asked[i]);
      leaf.asked = std::move(kept);
    }
  }

  /// Index of the edge along which the descent continues. The node's edges must be matched.
  std::uint32_t select(NodeId node, const State& state, Seat seat) {
    if constexpr (HasPlayoutPolicy<G>) {
      if (options_.others == Others::policy && seat != root_.seat()) {
        const Action action = by_policy(state, seat);
        const auto place = std::ranges::lower_bound(legal_, action) - legal_.begin();
        return indices_[at(place)];
      }
    }
    if (options_.widening > 0) prefer(node, [&]() -> const State& { return state; });
    return choose(node);
  }

  /// A deal, and the players' types in it.
  struct Determinization {
    State state;
    typename TypesOf<G>::type types;
  };

  Determinization deal(std::uint64_t index) {
    if (HasLikelihood<G> && options_.belief > 0) return determinizations_[index % determinizations_.size()];
    Rng rng = Rng::stream(deals_seed_, index);
    return {root_.sample(rng), {}};
  }

  Action by_policy(const State& state, Seat seat)
    requires HasPlayoutPolicy<G>
  {
    if constexpr (HasLikelihood<G>)
      if (seat != root_.seat())
        return G::playout_action(state, seat, types_, players(), rng_, options_.playout_noise);
    return G::playout_action(state, seat, rng_, options_.playout_noise);
  }

  /// The options' model of players; null for none. Its game was checked.
  const auto* players() const
    requires HasLikelihood<G>
  {
    const auto* own = static_cast<const PlayerModelOf<G>*>(options_.players.get());
    return own ? &own->model : nullptr;
  }

  /// The edge of the matched root with which an iteration starts.
  std::uint32_t root_edge() {
    if (committed_ == kNoAction) return choose(kRoot);
    Node& root = tree_[kRoot];
    return static_cast<std::uint32_t>(root.edge(committed_) - root.edges.begin());
  }

  /// Follows an edge. `node` becomes its child, or kNoNode if the tree is full. Returns whether the edge was
  /// visited before.
  bool follow(State& state, NodeId& node, Seat seat, std::uint32_t choice) {
    const Edge taken = tree_[node].edges[choice];
    path_.push_back({node, taken.action, seat});
    apply_checked(state, seat, taken.action, NoEvents{});
    NodeId child = taken.child;
    if (child == kNoNode && tree_.size() < options_.max_nodes) {
      child = tree_.add();
      tree_[node].edges[choice].child = child;
    }
    node = child;
    return taken.visits != 0;
  }

  Edge& edge(const Step& step) { return *tree_[step.node].edge(step.action); }

  std::vector<int> sides(const State& state) const {
    std::vector<int> out(at(num_seats_));
    for (int seat = 0; seat < num_seats_; ++seat) out[at(seat)] = side_of<G>(state, static_cast<Seat>(seat));
    return out;
  }

  /// Matches the node: finds or makes the edges of legal_. Returns false if another seat acts here in other
  /// determinizations (claims). The statistics are that seat's, so the iteration ends above the node.
  bool matches(NodeId node, Seat seat) {
    auto& here = tree_[node];
    if (here.seat == kNobody) here.seat = seat;
    if (here.seat != seat) return false;
    here.match(legal_, indices_);
    for (const auto i : indices_) ++here.edges[i].available;
    return true;
  }

  /// Asks the game's policy about those actions of indices_ that have no preference yet.
  template <class StateOf>
  void prefer([[maybe_unused]] NodeId node, [[maybe_unused]] StateOf&& state_of) {
    if constexpr (HasPreferences<G>) {
      auto& edges = tree_[node].edges;
      const auto known = [&](std::uint32_t i) { return edges[i].preference != Edge::kUnknown; };
      if (std::ranges::all_of(indices_, known)) return;
      preferences_.resize(legal_.size());
      G::preferences(state_of(), tree_[node].seat, legal_, preferences_);
      for (std::size_t k = 0; k < indices_.size(); ++k)
        if (!known(indices_[k])) edges[indices_[k]].preference = std::max(preferences_[k], -1e30f);
    }
  }

  /// Keeps in indices_ the actions that the node's visits allow, the most preferred first.
  void widen(NodeId node) {
    const auto& here = tree_[node];
    const double wide = std::ceil(options_.widening * std::sqrt(here.visits + 1.0));
    const auto by_preference = [&](std::uint32_t a, std::uint32_t b) {
      const float x = here.edges[a].preference, y = here.edges[b].preference;
      return x != y ? x > y : a < b;
    };
    const auto keep = std::min(indices_.size(), static_cast<std::size_t>(std::clamp(wide, 1.0, 1e9)));
    std::partial_sort(indices_.begin(), indices_.begin() + static_cast<std::ptrdiff_t>(keep), indices_.end(),
                      by_preference);
    indices_.resize(keep);
  }

  std::uint32_t choose(NodeId node) {
    const bool liked = HasPreferences<G> && options_.widening > 0;
    if (liked) widen(node);
    const auto& edges = tree_[node].edges;
    std::uint32_t untried = 0, choice = indices_.front();
    double best = -std::numeric_limits<double>::infinity();
    for (const auto i : indices_) {
      const Edge& e = edges[i];
      const double n = e.visits + e.pending + (e.has_prior ? options_.prior_visits : 0.0);
      if (n <= 0.0) {
        ++untried;
        // The most preferred comes first. Without preferences reservoir sampling makes each equally likely.
        if (liked ? untried == 1 : rng_.below(untried) == 0) choice = i;
        continue;
      }
      if (untried != 0) continue;
      const double score =
          e.mean(options_.prior_visits) + options_.exploration * std::sqrt(std::log(e.available + 1.0) / n);
      if (score > best) {
        best = score;
        choice = i;
      }
    }
    return choice;
  }

  void finish(State& state) {
    while (!state.terminal()) {
      const Seat seat = actor(state);
      if constexpr (HasPlayoutPolicy<G>) {
        if (options_.playout == Playout::rule) {
          state.apply_legal(seat, by_policy(state, seat), NoEvents{});
          continue;
        }
      }
      if constexpr (requires { state.random_legal(rng_); }) {
        state.apply_legal(seat, state.random_legal(rng_), NoEvents{});
      } else {
        legal_.clear();
        state.legal(seat, legal_);
        state.apply_legal(seat, legal_[rng_.below(static_cast<std::uint32_t>(legal_.size()))], NoEvents{});
      }
    }
  }

  std::vector<double> utilities(const State& state) const {
    std::vector<double> out(at(num_seats_));
    state.returns(out.data());
    for (double& value : out)
      value = options_.utility == Utility::sign ? static_cast<double>((value > 0) - (value < 0))
                                                : std::clamp(value / options_.points_scale, -1.0, 1.0);
    return out;
  }

  void backup(const std::vector<double>& utilities) {
    for (const auto& step : path_) {
      Edge& e = edge(step);
      ++e.visits;
      e.total += utilities[at(step.seat)];
      ++tree_[step.node].visits;
    }
  }

  /// An action's prior is the mean over the determinizations that were evaluated. It orders widening.
  void set_priors(NodeId node, const ActionList& legal, std::span<const float> values) {
    tree_[node].match(legal, indices_);
    for (std::size_t k = 0; k < indices_.size(); ++k) {
      Edge& e = tree_[node].edges[indices_[k]];
      ++e.evaluations;
      e.prior += static_cast<float>((clamped(values[k]) - e.prior) / e.evaluations);
      e.has_prior = true;
      e.preference = e.prior;
    }
  }

  View root_;
  int num_seats_;
  const Options& options_;

  Rng rng_;
  /// Deal n is stream n of this family.
  std::uint64_t deals_seed_;
  /// Deals drawn by their likelihood, in random order.
  std::vector<Determinization> determinizations_;
  double exponent_ = 0.0;
  /// The types in this iteration's deal.
  typename TypesOf<G>::type types_{};
  ActionList root_legal_;
  Action committed_ = kNoAction;
  std::vector<float> preferences_;
  Tree tree_;
  std::vector<Step> path_;
  std::vector<Awaiting> awaiting_;
  ActionList legal_;
  std::vector<std::uint32_t> indices_;
};

}  // namespace bothost::search
