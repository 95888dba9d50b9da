// The phase machine at compile time, on a machine of another game: a turn of draughts-like moves where one
// may first trade up to once, and a move is a square from and a square to. If this file compiles, it passed.
#include "core/phase_machine.h"

namespace bothost {
namespace {

enum class Pick : std::uint8_t { none, own_square, free_square, good };
enum class Effect : std::uint8_t { trade, move, resign };
enum : Phase { kHub, kTrade, kMove };
enum : Conditions { kHasGoods = 1, kCanMove = 2, kStuck = 4 };

using Row = PhaseRow<Pick, Effect, 2>;
constexpr std::array<std::string_view, 3> kNames{"hub", "trade", "move"};
constexpr std::array<Row, 3> kRows{{
    {kTrade, kHasGoods, 1, {Pick::good}, Effect::trade, kHub},
    {kMove, kCanMove, 2, {Pick::own_square, Pick::free_square}, Effect::move, kTurnOver},
    {kMove, kStuck, 1, {Pick::own_square}, Effect::resign, kTurnOver},
}};
constexpr PhaseMachine<Row> kMachine{"toy", kNames, kRows};

static_assert(kMachine.sound());
static_assert(kMachine.is_hub(kHub) && !kMachine.is_hub(kMove));
static_assert(kMachine.open(kCanMove) == 1U << kMove);
static_assert(kMachine.open(kCanMove | kHasGoods) == (1U << kMove | 1U << kTrade));
static_assert(kMachine.open(0) == 0);
static_assert(kMachine.row(kMove, kCanMove)->effect == Effect::move);
static_assert(kMachine.row(kMove, kStuck | kHasGoods)->effect == Effect::resign);
static_assert(kMachine.row(kTrade, kStuck) == nullptr);
static_assert(kMachine.row_of(Effect::trade, kHasGoods)->next == kHub);

// tables that make no sense are found out
constexpr std::array<Row, 1> kFromHub{{{kHub, 0, 1, {Pick::good}, Effect::trade, kTurnOver}}};
constexpr std::array<Row, 1> kNowhere{{{kTrade, 0, 1, {Pick::good}, Effect::trade, 9}}};
constexpr std::array<Row, 1> kTooMany{{{kTrade, 0, 3, {Pick::good}, Effect::trade, kHub}}};
static_assert(!PhaseMachine<Row>{"", kNames, kFromHub}.sound());
static_assert(!PhaseMachine<Row>{"", kNames, kNowhere}.sound());
static_assert(!PhaseMachine<Row>{"", kNames, kTooMany}.sound());

constexpr auto walk() {
  PhaseCursor<int, 2> cursor;
  cursor.enter(kMove);
  cursor.select(12);
  cursor.select(16);
  return cursor;
}
static_assert(walk().phase == kMove && walk().count == 2 && walk().items[1] == 16);

}  // namespace
}  // namespace bothost
