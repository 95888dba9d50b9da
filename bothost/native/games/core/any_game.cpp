#include "core/any_game.h"

namespace bothost {

const char* name_of(Block::Of of) {
  return of == Block::Of::view ? "view" : of == Block::Of::action ? "action" : "oracle";
}

int AnyGame::block_index(std::string_view name, Block::Of of) const {
  std::string known;
  for (std::size_t i = 0; i < blocks().size(); ++i) {
    const Block& block = blocks()[i];
    if (block.name == name) {
      if (block.of == of) return static_cast<int>(i);
      throw InvalidInput("block \"" + block.name + "\" is of kind " + name_of(block.of) + ", not " +
                         name_of(of));
    }
    if (block.of == of) known += (known.empty() ? "" : ", ") + block.name;
  }
  throw InvalidInput(std::string(this->name()) + " has no " + name_of(of) + " block \"" + std::string(name) +
                     "\"; it has: " + (known.empty() ? "none" : known));
}

Seat AnyGame::checked_seat(std::int64_t seat) const {
  if (seat < 0 || seat >= num_seats())
    throw InvalidInput("seat " + std::to_string(seat) + " is not within 0 .. " +
                       std::to_string(num_seats() - 1));
  return static_cast<Seat>(seat);
}

Action AnyGame::checked_action(std::int64_t action) const {
  if (action < 0 || action >= num_actions())
    throw IllegalAction("action " + std::to_string(action) + " is not within 0 .. " +
                        std::to_string(num_actions() - 1));
  return static_cast<Action>(action);
}

}  // namespace bothost
