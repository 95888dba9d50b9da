// Information-set UCT with one tree, in coroutine form: run() goes on until it is done or leaves wait for the
// caller's evaluator, feed() brings their values. Nothing here calls back, so the GIL and the threads are the
// caller's affair.
//
// Every iteration samples a full state that the root view allows (a determinization), walks down by UCT among
// the actions that are legal in it, and values the leaf. Statistics are shared by all determinizations: an
// edge's exploration term counts only the iterations in which its action was available.
//
// Whose value is it? An edge holds utilities of the seat that acts at its node, never of the root's. A
// playout yields a utility per seat; an evaluator's value is that of the seat that acts at the leaf, with
// which its own side shares it and of which other sides get the opposite. Seats of one side (the two
// peasants) thus climb the same hill.
#pragma once
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "core/game.h"
#include "search/options.h"
#include "search/tree.h"

namespace bothost::search {

/// A position that waits for the evaluator: values are wanted for every action of `legal`, for the seat of
/// `view`.
template <class G>
struct PendingLeaf {
  typename G::View view;
  ActionList legal;
};

/// The side that a seat is on, where a game has sides; else every seat is its own.
template <class G>
int side_of(const typename G::State& state, Seat seat) {
  if constexpr (requires { G::side(state, seat); })
    return G::side(state, seat);
  else
    return seat;
}

template <Game G>
class Worker {
 public:
  using State = typename G::State;
  using View = typename G::View;

  Worker(const View& root, int num_seats, const Options& options, std::uint64_t seed)
      : root_(root), num_seats_(num_seats), options_(options), rng_(seed) {}

  Tree& tree() { return tree_; }
  const Tree& tree() const { return tree_; }
  void set_root(const View& root) { root_ = root; }

  /// One iteration with a playout.
  void playout() {
    State state = root_.sample(rng_);
    path_.clear();
    NodeId node = tree_.root();
    while (!state.terminal()) {
      const Seat seat = actor(state);
      legal_.clear();
      state.legal(seat, legal_);
      if (!matches(node, seat)) break;
      const auto choice = choose(node);
      path_.push_back({node, tree_[node].edges[choice].action, seat});
      const bool fresh = tree_[node].edges[choice].visits == 0;
      state.apply(seat, path_.back().action, NoEvents{});
      if (tree_[node].edges[choice].child == kNoNode) {
        if (tree_.size() >= options_.max_nodes) break;
        const NodeId child = tree_.add();
        tree_[node].edges[choice].child = child;
      }
      node = tree_[node].edges[choice].child;
      if (fresh) break;
    }
    finish_randomly(state);
    backup(utilities(state));
  }

  enum class Descent { backed_up, leaf, collision };

  /// One iteration down to a terminal state (backed up at once), or to a leaf that is handed out.
  Descent descend(std::vector<PendingLeaf<G>>& out) {
    State state = root_.sample(rng_);
    path_.clear();
    NodeId node = tree_.root();
    while (!state.terminal()) {
      const Seat seat = actor(state);
      legal_.clear();
      state.legal(seat, legal_);
      const bool same = matches(node, seat);
      if (!same || wants_values(node)) {
        for (const auto& awaiting : awaiting_)
          if (awaiting.node == node) return Descent::collision;
        for (const auto& step : path_) ++edge(step).pending;
        awaiting_.push_back({node, same, path_, sides(state), side_of<G>(state, seat)});
        out.push_back({state.view(seat), legal_});
        return Descent::leaf;
      }
      const auto choice = choose(node);
      path_.push_back({node, tree_[node].edges[choice].action, seat});
      state.apply(seat, path_.back().action, NoEvents{});
      if (tree_[node].edges[choice].child == kNoNode) {
        const NodeId child = tree_.add();
        tree_[node].edges[choice].child = child;
      }
      node = tree_[node].edges[choice].child;
    }
    backup(utilities(state));
    return Descent::backed_up;
  }

  /// Values for the leaves handed out since the last feed, in their order, each aligned with its legal
  /// actions.
  void feed(const std::vector<PendingLeaf<G>>& leaves, std::span<const float> values) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const auto& awaiting = awaiting_[i];
      const auto own = values.subspan(at, leaves[i].legal.size());
      at += own.size();
      double best = -1.0;
      for (const float value : own) best = std::max(best, clamped(value));
      if (awaiting.same) set_priors(awaiting.node, leaves[i].legal, own);
      path_ = awaiting.path;
      for (const auto& step : path_) --edge(step).pending;
      std::vector<double> utilities(awaiting.sides.size());
      for (std::size_t seat = 0; seat < utilities.size(); ++seat)
        utilities[seat] = awaiting.sides[seat] == awaiting.side ? best : -best;
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
    NodeId node;
    bool same;
    std::vector<Step> path;
    std::vector<int> sides;
    int side;
  };

  static Seat actor(const State& state) { return static_cast<Seat>(std::countr_zero(state.to_act())); }
  static double clamped(float value) {
    return std::isfinite(value) ? std::clamp<double>(value, -1.0, 1.0) : 0.0;
  }

  Edge& edge(const Step& step) {
    auto& edges = tree_[step.node].edges;
    return *std::lower_bound(edges.begin(), edges.end(), step.action,
                             [](const Edge& e, Action wanted) { return e.action < wanted; });
  }

  std::vector<int> sides(const State& state) const {
    std::vector<int> out(static_cast<std::size_t>(num_seats_));
    for (int seat = 0; seat < num_seats_; ++seat)
      out[static_cast<std::size_t>(seat)] = side_of<G>(state, static_cast<Seat>(seat));
    return out;
  }

  /// Find or make the edges of legal_ at the node. False when other determinizations had another seat act
  /// here (claims): the statistics are not ours then, and the iteration ends above the node.
  bool matches(NodeId node, Seat seat) {
    auto& here = tree_[node];
    if (here.seat == kNobody) here.seat = seat;
    if (here.seat != seat) return false;
    here.match(legal_, indices_);
    for (const auto i : indices_) ++here.edges[i].available;
    return true;
  }

  bool wants_values(NodeId node) const {
    for (const auto i : indices_)
      if (!tree_[node].edges[i].has_prior) return true;
    return false;
  }

  std::uint32_t choose(NodeId node) {
    const auto& edges = tree_[node].edges;
    std::uint32_t untried = 0, choice = indices_.front();
    double best = -std::numeric_limits<double>::infinity();
    for (const auto i : indices_) {
      const Edge& e = edges[i];
      const double n = e.visits + e.pending + (e.has_prior ? options_.prior_visits : 0.0);
      if (n <= 0.0) {  // reservoir sampling: each untried action is equally likely
        if (rng_.below(++untried) == 0) choice = i;
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

  void finish_randomly(State& state) {
    while (!state.terminal()) {
      const Seat seat = actor(state);
      if constexpr (requires { state.apply_legal(seat, state.random_legal(rng_), NoEvents{}); }) {
        state.apply_legal(seat, state.random_legal(rng_), NoEvents{});
      } else {
        legal_.clear();
        state.legal(seat, legal_);
        state.apply(seat, legal_[rng_.below(static_cast<std::uint32_t>(legal_.size()))], NoEvents{});
      }
    }
  }

  std::vector<double> utilities(const State& state) const {
    std::vector<double> out(static_cast<std::size_t>(num_seats_));
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
      e.total += utilities[static_cast<std::size_t>(step.seat)];
      ++tree_[step.node].visits;
    }
  }

  /// An action's prior is the mean over the determinizations that were evaluated with it.
  void set_priors(NodeId node, const ActionList& legal, std::span<const float> values) {
    tree_[node].match(legal, indices_);
    for (std::size_t k = 0; k < indices_.size(); ++k) {
      Edge& e = tree_[node].edges[indices_[k]];
      ++e.evaluations;
      e.prior += static_cast<float>((clamped(values[k]) - e.prior) / e.evaluations);
      e.has_prior = true;
    }
  }

  View root_;
  int num_seats_;
  const Options& options_;
  Rng rng_;
  Tree tree_;
  std::vector<Step> path_;
  std::vector<Awaiting> awaiting_;
  ActionList legal_;
  std::vector<std::uint32_t> indices_;
};

template <Game G>
class Search {
 public:
  using View = typename G::View;

  /// The view's seat must be asked. Throws InvalidInput otherwise, or when an option is out of range.
  Search(const View& root, int num_seats, const Options& options) : options_(options), root_(root) {
    check(root);
    if (!(options.exploration >= 0) || !(options.points_scale > 0) || !(options.prior_visits >= 0) ||
        options.leaf_batch < 1 || options.leaf_batch > 4096 || options.threads < 1 || options.threads > 256 ||
        options.max_nodes < 1)
      throw InvalidInput("a search option is out of range");
    if (options.leaf == Leaf::evaluator && options.threads != 1)
      throw InvalidInput("threads are for playouts: an evaluated search batches its leaves instead");
    std::uint64_t seed = options.seed;
    for (int i = 0; i < options.threads; ++i)
      workers_.push_back(std::make_unique<Worker<G>>(root, num_seats, options_, splitmix64(seed)));
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Go on until done (true) or until leaves() wait for feed() (false). Iterations count over all threads.
  bool run(const Until& until) {
    if (!leaves_.empty()) throw InvalidInput("values are awaited: call feed() first");
    return options_.leaf == Leaf::evaluator ? run_evaluated(until) : run_playouts(until);
  }

  const std::vector<PendingLeaf<G>>& leaves() const { return leaves_; }

  /// Values of every legal action of every leaf, in order, as utilities of the seat that acts there.
  void feed(std::span<const float> values) {
    std::size_t wanted = 0;
    for (const auto& leaf : leaves_) wanted += leaf.legal.size();
    if (values.size() != wanted)
      throw InvalidInput("feed() needs " + std::to_string(wanted) + " values, not " +
                         std::to_string(values.size()));
    workers_.front()->feed(leaves_, values);
    iterations_ += leaves_.size();
    leaves_.clear();
  }

  /// The hand went on by these actions, and `root` is where it stands now: keep the part of the tree that is
  /// still true.
  void advance(const View& root, std::span<const Action> actions) {
    check(root);
    if (!leaves_.empty()) throw InvalidInput("values are awaited: call feed() first");
    root_ = root;
    for (auto& worker : workers_) {
      for (const Action action : actions)
        if (!worker->tree().advance(action)) break;
      worker->set_root(root);
    }
  }

  /// Every legal action of the root, in ascending order, with visits and values added up over the threads.
  std::vector<RootAction> root_actions() const {
    ActionList legal;
    root_.legal(legal);
    std::vector<RootAction> out;
    for (const Action action : legal) {
      double visits = 0, total = 0, prior = 0;
      bool has_prior = false;
      for (const auto& worker : workers_)
        for (const Edge& e : worker->tree()[worker->tree().root()].edges)
          if (e.action == action) {
            visits += e.visits;
            total += e.total;
            if (e.has_prior) {
              has_prior = true;
              prior = e.prior;
            }
          }
      const double weight = has_prior ? options_.prior_visits : 0.0;
      const double n = visits + weight;
      const double value = n > 0 ? (total + weight * prior) / n : (has_prior ? prior : 0.0);
      out.push_back({action, static_cast<std::uint64_t>(visits), value});
    }
    return out;
  }

  std::uint64_t iterations() const { return iterations_; }
  std::size_t nodes() const {
    std::size_t sum = 0;
    for (const auto& worker : workers_) sum += worker->tree().size();
    return sum;
  }

 private:
  static void check(const View& root) {
    if (!root.asked()) throw InvalidInput("a search starts where its seat is asked");
  }

  bool run_evaluated(const Until& until) {
    Worker<G>& worker = *workers_.front();
    const auto end = limit(until.iterations);
    while (iterations_ + leaves_.size() < end && Clock::now() < until.deadline) {
      const auto descent = worker.descend(leaves_);
      if (descent == Worker<G>::Descent::backed_up) ++iterations_;
      if (descent == Worker<G>::Descent::collision ||
          leaves_.size() >= static_cast<std::size_t>(options_.leaf_batch))
        break;
    }
    return leaves_.empty();
  }

  bool run_playouts(const Until& until) {
    const auto end = limit(until.iterations);
    const std::uint64_t wanted = end - iterations_;
    const auto threads = static_cast<std::uint64_t>(workers_.size());
    std::atomic<std::uint64_t> done{0};
    const auto work = [&](std::uint64_t index) {
      // A fixed share each, so that an iteration limit is deterministic whatever the threads' speed.
      const std::uint64_t share = wanted / threads + (index < wanted % threads ? 1 : 0);
      std::uint64_t count = 0;
      for (; count < share && Clock::now() < until.deadline; ++count) workers_[index]->playout();
      done += count;
    };
    std::vector<std::jthread> others;
    for (std::uint64_t i = 1; i < threads; ++i) others.emplace_back(work, i);
    work(0);
    others.clear();
    iterations_ += done;
    return true;
  }

  std::uint64_t limit(std::uint64_t more) const {
    const auto most = std::numeric_limits<std::uint64_t>::max();
    return more > most - iterations_ ? most : iterations_ + more;
  }

  Options options_;
  View root_;
  std::vector<std::unique_ptr<Worker<G>>> workers_;
  std::vector<PendingLeaf<G>> leaves_;
  std::uint64_t iterations_ = 0;
};

}  // namespace bothost::search
