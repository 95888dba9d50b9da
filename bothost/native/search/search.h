// Information-set UCT in coroutine form. run() returns when it is done or when leaves wait for the caller's
// evaluator; feed() passes their values. Nothing here calls back, so the caller manages the GIL and threads.
// worker.h holds one iteration.
#pragma once
#include <atomic>
#include <future>
#include <memory>
#include <ranges>
#include <span>
#include <vector>

#include "core/erased.h"
#include "core/registry.h"
#include "search/any_search.h"
#include "search/worker.h"

namespace bothost::search {

template <Game G>
class Search final : public AnySearch {
 public:
  using View = typename G::View;

  /// The view's seat must be asked. Throws InvalidInput otherwise, or when options do not go together.
  Search(const erased::ViewOf<G>& root, const Options& options)
      : game_(root.game().shared_from_this()), options_(options), root_(root.native()) {
    check(root_);
    if (options.points_scale == 0) throw InvalidInput("points_scale must be above 0");
    if (options.leaf == Leaf::evaluator && options.threads != 1)
      throw InvalidInput("threads are for playouts: an evaluated search batches its leaves instead");
    if ((options.playout == Playout::rule || options.others == Others::policy) && !HasPlayoutPolicy<G>)
      throw InvalidInput("this game has no policy of its own to search with");
    if (options.players && !models_players(*options.players))
      throw InvalidInput("the model of players belongs to another game than the search");
    std::uint64_t seed = options.seed;
    for (int i = 0; i < options.threads; ++i)
      workers_.push_back(std::make_unique<Worker<G>>(root_, game_->num_seats(), options_, splitmix64(seed)));
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Iterations count over all threads.
  bool run(const Until& until) override {
    if (!leaves_.empty()) throw InvalidInput("values are awaited: call feed() first");
    return options_.leaf == Leaf::evaluator ? run_evaluated(until) : run_playouts(until);
  }

  void feed(std::span<const float> values) override {
    std::size_t wanted = 0;
    for (const auto& leaf : leaves_) wanted += leaf.asked.size();
    if (values.size() != wanted)
      throw InvalidInput("feed() needs " + std::to_string(wanted) + " values, not " +
                         std::to_string(values.size()));
    iterations_ += workers_.front()->waiting();
    workers_.front()->feed(leaves_, values);
    leaves_.clear();
  }

  void advance(const AnyView& view, std::span<const Action> actions) override {
    const View& root = native(view);
    check(root);
    if (!leaves_.empty()) throw InvalidInput("values are awaited: call feed() first");
    root_ = root;
    for (auto& worker : workers_) {
      for (const Action action : actions)
        if (!worker->tree().advance(action)) break;
      worker->set_root(root);
    }
  }

  void resample_determinizations(std::int64_t deals) override {
    if (deals < 1 || deals > options_.belief) throw InvalidInput("deals must be within 1 and belief");
    for (auto& worker : workers_) worker->resample_determinizations(at(deals), Clock::time_point::max());
  }

  void commit(std::int64_t action) override {
    ActionList legal;
    root_.legal(legal);
    if (!std::ranges::binary_search(legal, action))
      throw InvalidInput("the committed action is not legal at the root");
    for (auto& worker : workers_) worker->commit(static_cast<Action>(action));
  }

  std::vector<RootAction> root_actions() const override {
    ActionList legal;
    root_.legal(legal);
    std::vector<RootAction> out;
    for (const Action action : legal) {
      double visits = 0, total = 0, prior = 0;
      bool has_prior = false;
      for (const auto& worker : workers_)
        for (const Edge& e : worker->tree()[kRoot].edges)
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

  std::uint64_t iterations() const override { return iterations_; }
  /// Deals that were weighted by likelihood at this root; the least over the threads.
  std::size_t deals() const override {
    return std::ranges::min(workers_ | std::views::transform([](const auto& each) { return each->deals(); }));
  }
  /// The exponent of the deals' weights, averaged over the threads.
  double tempering_exponent() const override {
    double sum = 0;
    for (const auto& worker : workers_) sum += worker->tempering_exponent();
    return sum / static_cast<double>(workers_.size());
  }
  std::size_t nodes() const override {
    std::size_t sum = 0;
    for (const auto& worker : workers_) sum += worker->tree().size();
    return sum;
  }

  std::vector<std::pair<std::unique_ptr<AnyView>, ActionList>> leaves() const override {
    const auto game = std::static_pointer_cast<const erased::GameOf<G>>(game_);
    std::vector<std::pair<std::unique_ptr<AnyView>, ActionList>> out;
    for (const auto& leaf : leaves_)
      out.emplace_back(std::make_unique<erased::ViewOf<G>>(game, leaf.view), leaf.asked);
    return out;
  }

 private:
  /// Throws InvalidInput when the view is one of another game.
  const View& native(const AnyView& view) const {
    const auto* own = dynamic_cast<const erased::ViewOf<G>*>(&view);
    if (!own || (&own->game() != game_.get() && own->game().rules() != game_->rules()))
      throw InvalidInput("the view belongs to another game than the search");
    return own->native();
  }

  static bool models_players(const AnyPlayerModel& players) {
    if constexpr (HasLikelihood<G>) return dynamic_cast<const PlayerModelOf<G>*>(&players) != nullptr;
    return false;
  }

  static void check(const View& root) {
    if (!root.asked()) throw InvalidInput("a search starts where its seat is asked");
  }

  bool run_evaluated(const Until& until) {
    Worker<G>& worker = *workers_.front();
    const auto end = limit(until.iterations);
    if (iterations_ < end) worker.resample_determinizations(at(options_.belief), part_of(until.deadline));
    const auto most = at(options_.leaf_batch);
    // A started batch is filled past the deadline: what is searched depends on iterations alone.
    while (iterations_ + worker.waiting() < end && worker.waiting() < most) {
      if (leaves_.empty() && Clock::now() >= until.deadline) break;
      if (worker.descend(leaves_)) ++iterations_;
      if (worker.waits_at_root()) break;
    }
    return leaves_.empty();
  }

  bool run_playouts(const Until& until) {
    const auto end = limit(until.iterations);
    const std::uint64_t wanted = end - iterations_;
    const auto threads = static_cast<std::uint64_t>(workers_.size());
    std::atomic<std::uint64_t> done{0};
    const auto work = [&](std::uint64_t index) {
      // A fixed share each, so that a limit of iterations is deterministic whatever the threads' speed.
      const std::uint64_t share = wanted / threads + (index < wanted % threads ? 1 : 0);
      if (share > 0) workers_[index]->resample_determinizations(at(options_.belief), part_of(until.deadline));
      std::uint64_t count = 0;
      for (; count < share && Clock::now() < until.deadline; ++count) workers_[index]->playout();
      done += count;
    };
    std::vector<std::future<void>> others;
    for (std::uint64_t i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, work, i));
    work(0);
    for (auto& other : others) other.get();
    iterations_ += done;
    return true;
  }

  /// The end of sampling deals: a third of the time.
  static Clock::time_point part_of(Clock::time_point deadline) {
    if (deadline == Clock::time_point::max()) return deadline;
    const auto now = Clock::now();
    return now + (deadline - now) / 3;
  }

  std::uint64_t limit(std::uint64_t more) const {
    const auto most = std::numeric_limits<std::uint64_t>::max();
    return more > most - iterations_ ? most : iterations_ + more;
  }

  std::shared_ptr<const AnyGame> game_;
  Options options_;
  View root_;
  std::vector<std::unique_ptr<Worker<G>>> workers_;
  std::vector<PendingLeaf<G>> leaves_;
  std::uint64_t iterations_ = 0;
};

/// The registry's entry of a game: its factory, its presets and its search.
template <Game G>
constexpr GameEntry entry_of() {
  return {G::kName, &make_game<G>, G::kPresets,
          [](const AnyView& root, const Options& options) -> std::unique_ptr<AnySearch> {
            return std::make_unique<Search<G>>(dynamic_cast<const erased::ViewOf<G>&>(root), options);
          }};
}

}  // namespace bothost::search
