// Targets: the winning hands that a hand can still become, by the tiles that it lacks of them.
//
// A hand of four sets and a pair is found set by set, fewest missing tiles first, and given up as soon as
// more tiles are missing than may be. Far from winning the hands without a prospect of eight points are by
// far the most: so every target beyond `kAnyHand` missing tiles must follow a pattern (three chows in step, a
// flush, all pungs, ...) that scores by itself or nearly so. The special hands are counted up directly.
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

/// A tile that a target lacks, and the part of the target that it belongs to.
struct Missing {
  Tile tile;
  /// Index of the set; kPairPart; kSinglePart for tiles that no claim can bring before the last one.
  std::uint8_t part;
};
inline constexpr std::uint8_t kPairPart = 4, kSinglePart = 5;

struct Target {
  Shape shape = Shape::standard;
  /// Of standard hands and knitted straights; melds on the table first.
  Reading reading;
  /// Standing tiles, the missing ones among them: 14 less three per meld.
  Counts standing{};
  std::array<Missing, 14> missing{};
  int lacks = 0;
  std::span<const Missing> missing_tiles() const { return {missing.data(), static_cast<std::size_t>(lacks)}; }
};

/// Hands that lack no more tiles than this are targets whatever they score by.
inline constexpr int kAnyHand = 2;

class TargetVisitor {
 public:
  /// `target` is valid during the call.
  virtual void visit(const Target& target) = 0;

 protected:
  ~TargetVisitor() = default;
};

/// Visits the targets of the standing tiles `hand` (at most 14 less three per meld) that lack at most `depth`
/// tiles, all of them among `unseen`. Sets and pair tell targets apart: one hand that can be read in two ways
/// may come twice.
void each_target(const Counts& hand, std::span<const Meld> melds, const Counts& unseen, int depth,
                 TargetVisitor& visitor);

}  // namespace bothost::mahjong
