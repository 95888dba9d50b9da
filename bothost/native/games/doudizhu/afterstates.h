// Features of the hand that an abstract move leaves. They describe a move, not the position. fm-clone chooses
// among abstract moves by them.
#pragma once
#include <span>
#include <vector>

#include "doudizhu/encode.h"

namespace bothost::doudizhu {

/// The hand that the features of the block `move_types` describe. Throws InvalidInput unless it has 1 .. 20
/// cards.
Cards hand_of(std::span<const std::int32_t> features);

/// Appends the features, ascending, of an abstract move in a position with these features (of `move_types`,
/// of a hand that is `hand`): the abstract moves that the rest can make, cards left 0 .. 20, plays left 0 ..
/// 15, highest of its kind.
void mark_afterstate(std::span<const std::int32_t> features, Cards hand, int abstract,
                     std::vector<std::int32_t>& out);

}  // namespace bothost::doudizhu
