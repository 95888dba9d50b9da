#include "core/registry.h"

#include "core/erased.h"
#include "doudizhu/doudizhu.h"
#include "mahjong/mahjong.h"
#include "othello/othello.h"
#include "pairing/pairing.h"
#include "search/search_of.h"
#include "testing/claims.h"

namespace bothost {

namespace {

template <Game G>
constexpr GameEntry entry(bool testing = false) {
  return {G::kName, &make_game<G>, &G::presets, &search::make_search<G>, testing};
}

// clang-format off
constexpr GameEntry kGames[] = {
    entry<Doudizhu>(),
    entry<Othello>(),
    entry<Pairing>(),
    entry<Mahjong>(),
    entry<Claims>(/*testing=*/true),
};
// clang-format on

}  // namespace

std::span<const GameEntry> registered_games() { return kGames; }

}  // namespace bothost
