// Targets: the winning hands that a hand can still become, and the tiles that each of them needs.
//
// Four sets and a pair are found set by set, fewest missing tiles first. A branch ends once too many tiles
// are missing. Far from winning, most hands cannot reach eight points. So a target with more than `kAnyHand`
// missing tiles must follow a pattern (three chows in step, a flush, all pungs, ...) that scores by itself or
// nearly so. The special hands are enumerated directly.
#pragma once
#include <array>
#include <span>

#include "mahjong/reading.h"
#include "mahjong/shape.h"

namespace bothost::mahjong {

/// In the order of Distances.
enum class Shape : std::uint8_t {
  standard,
  seven_pairs,
  thirteen_orphans,
  knitted_straight,
  honours_and_knitted
};
inline constexpr std::size_t kShapes = 5;

/// A tile that a target needs, and the part of the target that it belongs to.
struct Missing {
  Tile tile;
  /// Index of the set, kPairPart, or kSinglePart: a tile that a claim can bring only if it is the last one.
  std::uint8_t part;
};
inline constexpr std::uint8_t kPairPart = 4, kSinglePart = 5;

struct Target {
  Shape shape = Shape::standard;
  /// For standard hands and knitted straights; melds on the table first.
  Reading reading;
  /// Standing tiles, including the missing ones: 14 less three per meld.
  Counts standing{};
  std::array<Missing, 14> missing{};
  int tiles_needed = 0;
  std::span<const Missing> missing_tiles() const {
    return {missing.data(), static_cast<std::size_t>(tiles_needed)};
  }
};

/// Hands that need at most this many tiles are targets whatever pattern they follow.
inline constexpr int kAnyHand = 2;

class TargetVisitor {
 public:
  /// `target` is valid during the call.
  virtual void visit(const Target& target) = 0;

 protected:
  ~TargetVisitor() = default;
};

/// Visits the targets of the standing tiles `hand` (at most 14 less three per meld) that need at most `depth`
/// tiles, all of them among `unseen`. Targets differ by their sets and pair: a hand with two readings may be
/// visited twice.
void each_target(const Counts& hand, std::span<const Meld> melds, const Counts& unseen, int depth,
                 TargetVisitor& visitor);

}  // namespace bothost::mahjong
