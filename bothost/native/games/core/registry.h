// Every native game, by name. A new game is a folder with a struct that satisfies `Game`, and one line in
// registry.cpp. Another extension module may add games while it is imported.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <string_view>

#include "core/any_game.h"

namespace bothost {

namespace search {
class AnySearch;
struct Options;
}  // namespace search

struct GameEntry {
  std::string_view name;
  std::shared_ptr<AnyGame> (*make)(const Json& options);
  std::span<const std::string_view> presets;
  /// A search from a view of this game.
  std::unique_ptr<search::AnySearch> (*search)(const AnyView& root, const search::Options& options);
  /// Exists to test the contract, not to be played.
  bool testing = false;
};

/// All games. Not synchronised: the GIL protects it.
const std::deque<GameEntry>& registered_games();

/// The game of that name. Throws InvalidInput for an unknown name.
const GameEntry& find_game(std::string_view name);

/// Adds a game. A second game of the same name is ignored. The entry's name must live as long as the process.
void register_game(const GameEntry& entry);

}  // namespace bothost
