#include "core/registry.h"

#include <algorithm>

#include "doudizhu/doudizhu.h"
#include "mahjong/mahjong.h"
#include "othello/othello.h"
#include "pairing/pairing.h"
#include "search/search.h"

namespace bothost {

namespace {

std::deque<GameEntry>& entries() {
  static std::deque<GameEntry> all{
      search::entry_of<Doudizhu>(),
      search::entry_of<Othello>(),
      search::entry_of<Pairing>(),
      search::entry_of<Mahjong>(),
  };
  return all;
}

const GameEntry* find(std::string_view name) {
  const auto& all = entries();
  const auto found = std::ranges::find(all, name, &GameEntry::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

const std::deque<GameEntry>& registered_games() { return entries(); }

const GameEntry& find_game(std::string_view name) {
  if (const GameEntry* entry = find(name)) return *entry;
  throw InvalidInput("no native game is called \"" + std::string(name) + "\"");
}

void register_game(const GameEntry& entry) {
  if (!find(entry.name)) entries().push_back(entry);
}

}  // namespace bothost
