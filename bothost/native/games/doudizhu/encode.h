// Encoder blocks of Dou Dizhu. Their layouts are in the `doc` of each block.
#pragma once
#include <span>
#include <vector>

#include "core/game.h"
#include "doudizhu/view.h"

namespace bothost::doudizhu {

/// 13 x 4 thermometer (cell 4r + i is 1 where more than i cards of rank r are held), small joker, big joker.
inline constexpr int kCardVector = 54;
void put_vector(Cards cards, float* out);

const std::vector<Block>& encoder_blocks();
void encode(const View& view, int block, float* out);
void encode_actions(const View& view, int block, std::span<const Action> actions, float* out);
void encode_oracle(const State& state, Seat seat, int block, float* out);

// Features that people attend to: abstract moves (kickers abstracted, 3334 = 333*), moves that could still be
// played against the seat, and plays that the neighbours passed on. For factorization machines. `out` is
// zero.

inline constexpr int kMoveTypes = kAbstractActions - 1;
/// Smallest solo let pass, the same with one card left, smallest pair with two, smallest trio with three.
inline constexpr int kLetPass = 2 * kRanks + 2 * 13;
inline constexpr int kMoveTypeFeatures =
    kMoveTypes + kAbstractActions + 2 + kMoveTypes + 2 * 20 + 3 + 2 * kLetPass;

/// Writes kMoveTypeFeatures numbers, 0 or 1. The layout is in the doc of the block `move_types`.
void move_type_features(const View& view, float* out);

// Features of the hand that an abstract move leaves. They describe a move, not the position. fm-clone chooses
// among abstract moves by them.

/// The hand that the features of the block `move_types` describe. Throws InvalidInput unless it has 1 .. 20
/// cards.
Cards hand_of(std::span<const std::int32_t> features);

/// Appends the features, ascending, of an abstract move in a position with these features (of `move_types`,
/// of a hand that is `hand`): the abstract moves that the rest can make, cards left 0 .. 20, plays left 0 ..
/// 15, highest of its kind.
void mark_afterstate(std::span<const std::int32_t> features, Cards hand, int abstract,
                     std::vector<std::int32_t>& out);

/// What the features of the block `move_types` tell of a position, as the rule player needs it: the seat is
/// 0. They do not tell the rules, nor the kickers of the play to beat.
struct Told {
  Public table;
  Cards hand, unseen;

  /// Throws InvalidInput where they tell no such position.
  static Told of(std::span<const std::int32_t> features);
};

/// Appends how much the rule player likes each of these abstract moves, in points, by its `preferences` and
/// the default rules. Moves that the hand cannot make by these get its least.
void judge(const Told& told, std::span<const std::int32_t> abstract, std::vector<float>& out);

/// For next and previous: smallest solo, pair and three that it let an enemy play.
inline constexpr int kPassed = 2 * (kRanks + 2 * 13);
/// Writes kPassed numbers, 0 or 1. The layout is in the doc of the block `passed`.
void passed(const View& view, float* out);

/// Cells of the block `situation`.
inline constexpr int kSituation = 3 * 3 + 4 * 6;

/// Features of the rest after a move and of the rule player's preference for it, for networks that value
/// moves: cards of the rest (54), its fewest plays 0 .. 9 and more (11), its cards (21), kind (18), rank
/// (15), length (12), whether it stands, how far the rule player likes another move better (8), whether it
/// wins for certain, whether it is the rule player's choice.
inline constexpr int kMoveAnalysis = 54 + 11 + 21 + 18 + 15 + 12 + 1 + 8 + 1 + 1;

}  // namespace bothost::doudizhu
