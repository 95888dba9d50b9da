// The registry's entry of a `Game`: its factory, its presets and its search.
#pragma once
#include "core/registry.h"
#include "search/search.h"

namespace bothost::search {

template <Game G>
constexpr GameEntry entry_of() {
  return {G::kName, &make_game<G>, &G::presets,
          [](const AnyView& root, const Options& options) -> std::unique_ptr<AnySearch> {
            return std::make_unique<Search<G>>(dynamic_cast<const erased::ViewOf<G>&>(root), options);
          }};
}

}  // namespace bothost::search
