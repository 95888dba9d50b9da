// Every native game, by name. A new game is a folder with a struct that satisfies `Game`, and one line in
// registry.cpp.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/any_game.h"

namespace bothost {

namespace search {
class AnySearch;
struct Options;
}  // namespace search

struct GameEntry {
  std::string_view name;
  std::shared_ptr<AnyGame> (*make)(const Json& options);
  const std::vector<std::string>& (*presets)();
  /// A search from a view of this game.
  std::unique_ptr<search::AnySearch> (*search)(const AnyView& root, const search::Options& options);
  /// Exists to test the contract, not to be played.
  bool testing;
};

std::span<const GameEntry> registered_games();

}  // namespace bothost
