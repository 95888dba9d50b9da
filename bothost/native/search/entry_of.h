// The registry's entry of a `Game`: its factory, its presets and its search.
#pragma once
#include "core/erased.h"
#include "core/registry.h"
#include "search/search_of.h"

namespace bothost::search {

template <Game G>
constexpr GameEntry entry_of() {
  return {G::kName, &make_game<G>, &G::presets, &make_search<G>};
}

}  // namespace bothost::search
