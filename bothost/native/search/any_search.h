// The run-time interface of a search, which bindings/ shows to Python. search.h makes it from any `Game`.
#pragma once
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/any_game.h"
#include "search/options.h"

namespace bothost::search {

/// Not synchronised: one thread at a time may use a search. It has threads of its own while it runs.
class AnySearch {
 public:
  virtual ~AnySearch() = default;

  /// Runs until done (true) or until leaves wait for feed() (false).
  virtual bool run(const Until& until) = 0;
  /// Values of every action that a leaf asks about, leaf after leaf, as utilities of the seat that acts
  /// there.
  virtual void feed(std::span<const float> values) = 0;
  /// Moves the root along these actions to the view `root`, and keeps the part of the tree below it.
  virtual void advance(const AnyView& root, std::span<const Action> actions) = 0;
  /// The root's seat has played this action: search only below it until advance().
  virtual void commit(std::int64_t action) = 0;
  /// Samples and resamples this many deals now, without a deadline. A replay uses it to repeat a search that
  /// had time for only so many.
  virtual void resample_determinizations(std::int64_t deals) = 0;

  /// Every legal action of the root, in ascending order, with visits and values summed over the threads.
  virtual std::vector<RootAction> root_actions() const = 0;
  virtual std::uint64_t iterations() const = 0;
  virtual std::size_t nodes() const = 0;
  virtual std::size_t deals() const = 0;
  virtual double tempering_exponent() const = 0;

  /// The leaves that wait, each with the actions that it asks about.
  virtual std::vector<std::pair<std::unique_ptr<AnyView>, ActionList>> leaves() const = 0;
};

}  // namespace bothost::search
