// A model of how a player moves, learned from the moves of a strong one.
//
// The logit of a move is u · relu(b + Σ P[i] + Σ M[j]) + Σ v[j]. i are the cells that are 1 in the first
// three card vectors of the block `compact` and in `situation`; j those of `move_analysis`, without the rule
// player's choice.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "doudizhu/encode.h"
#include "doudizhu/policy.h"

namespace bothost::doudizhu {

class PlayerModel {
 public:
  static constexpr int kHidden = 32;
  static constexpr int kPosition = 3 * kCardVector + kSituation, kMove = kMoveAnalysis - 1;
  using Row = std::array<float, kHidden>;

  struct Parameters {
    std::array<Row, kPosition> position;  // P
    Row bias;                             // b
    std::array<Row, kMove> move;          // M
    Row output;                           // u
    std::array<float, kMove> linear;      // v
  };

  explicit PlayerModel(std::unique_ptr<const Parameters> parameters) : p_(std::move(parameters)) {}

  /// Probabilities of the legal plays `moves`, of which the rule player likes each so much (see
  /// `preferences`).
  void probabilities(const Sight& sight, std::span<const Action> moves, std::span<const float> likes,
                     std::span<float> out) const;

 private:
  /// What the position adds to every move, with the whole hand in place of what a move leaves of it.
  struct Sums {
    Row hidden;
    float linear = 0;
  };
  Sums position_sums(const Sight& sight) const;

  std::unique_ptr<const Parameters> p_;
};

}  // namespace bothost::doudizhu
