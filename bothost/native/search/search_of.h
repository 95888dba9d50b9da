// From a `Game` (compile time) to AnySearch (run time).
#pragma once
#include "core/erased.h"
#include "search/any_search.h"
#include "search/search.h"

namespace bothost::search {

template <Game G>
class SearchOf final : public AnySearch {
 public:
  SearchOf(const erased::ViewOf<G>& root, const Options& options)
      : game_(root.game().shared_from_this()), search_(root.native(), game_->num_seats(), options) {}

  bool run(const Until& until) override { return search_.run(until); }
  void feed(std::span<const float> values) override { search_.feed(values); }

  void advance(const AnyView& root, std::span<const Action> actions) override {
    search_.advance(native(root), actions);
  }

  void commit(Action action) override { search_.commit(action); }
  void resample_determinizations(int deals) override { search_.resample_determinizations(deals); }

  std::vector<RootAction> root_actions() const override { return search_.root_actions(); }
  std::uint64_t iterations() const override { return search_.iterations(); }
  std::size_t nodes() const override { return search_.nodes(); }
  std::size_t deals() const override { return search_.deals(); }
  double tempering_exponent() const override { return search_.tempering_exponent(); }

  std::size_t num_leaves() const override { return search_.leaves().size(); }
  std::unique_ptr<AnyView> leaf(std::size_t index) const override {
    return std::make_unique<erased::ViewOf<G>>(std::static_pointer_cast<const erased::GameOf<G>>(game_),
                                               search_.leaves().at(index).view);
  }
  const ActionList& leaf_legal(std::size_t index) const override { return search_.leaves().at(index).asked; }

 private:
  /// Throws InvalidInput when the view is one of another game.
  const typename G::View& native(const AnyView& view) const {
    const auto* own = dynamic_cast<const erased::ViewOf<G>*>(&view);
    if (!own || (&own->game() != game_.get() && own->game().rules() != game_->rules()))
      throw InvalidInput("the view belongs to another game than the search");
    return own->native();
  }

  std::shared_ptr<const AnyGame> game_;
  Search<G> search_;
};

/// A search from a view of game `G`.
template <Game G>
std::unique_ptr<AnySearch> make_search(const AnyView& root, const Options& options) {
  return std::make_unique<SearchOf<G>>(dynamic_cast<const erased::ViewOf<G>&>(root), options);
}

}  // namespace bothost::search
