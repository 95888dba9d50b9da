// What luck gave each seat in a hand: the corrections of AIVAT.
//
// A draw is worth V(the tile that came) less the mean of V over all tiles that could have come. All orders of
// the undrawn wall are equally likely. So each of these differences is zero on average, whatever V is, and a
// score less their sum has the mean of the score. The better V is, the less it varies. Source: Burch, Schmid,
// Moravčík, Morrill and Bowling, "AIVAT: A New Variance Reduction Technique for Agent Evaluation in Imperfect
// Information Games", AAAI 2018.
//
// V(tile) knows all hands. Rule players play until the hand ends or a seat has to draw. An end is worth
// the scores; otherwise a small network values the four hands.
#pragma once
#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "mahjong/outlook.h"
#include "mahjong/shape.h"
#include "mahjong/state.h"

namespace bothost::mahjong {

using Lanes = float __attribute__((vector_size(32)));

inline constexpr std::size_t kSeatInputs = 17;
/// Inputs of the network, by seat.
using SeatInputs = BySeat<std::array<float, kSeatInputs>>;

/// Values a table where the next seat has yet to draw: two hidden layers (rectified), the same for each
/// seat's view of the table, less the mean over the seats.
class LuckNetwork {
 public:
  static constexpr std::size_t kFirst = 128, kSecond = 64;
  static constexpr std::size_t kInputs = kSeats * kSeatInputs + kSeats + 1;
  static constexpr std::size_t kWeights = (kInputs + 1) * kFirst + (kFirst + 1) * kSecond + kSecond + 1;
  /// Layer by layer: the weights of each input, then the biases. Inputs: those of the own seat, of the seats
  /// after it, the own place behind the drawer (one-hot), tiles in the wall / 84. Output in points of score.
  explicit LuckNetwork(std::span<const float> weights);
  BySeat<double> operator()(const SeatInputs& inputs, Seat drawer, int wall) const;

 private:
  std::vector<float> weights_;
};

/// A table where a seat has to draw, with everything that luck depends on. What it draws is not looked at.
class BeforeDraw {
 public:
  /// `state`: just after the draw.
  explicit BeforeDraw(const State& state);
  SeatInputs inputs() { return inputs_of(*state_, hands_); }
  Seat drawer() const { return drawer_; }
  /// Copies of each kind that may come, and their sum.
  const Counts& wall() const { return wall_; }
  int wall_tiles() const { return wall_tiles_; }
  /// V before the tile is known: what the network makes of the hands as they are.
  BySeat<double> value(const LuckNetwork& network) { return network(inputs(), drawer_, wall_tiles_); }
  /// V of a tile that may come.
  BySeat<double> value(Tile tile, const LuckNetwork& network);

 private:
  /// How soon a hand may win.
  struct Reach {
    /// Chances of a win within 1, 2, 4, 8 and 16 turns, summed over targets; for three of these, times the
    /// payment.
    Lanes chances{};
    /// Kinds that win when drawn, and from a discard.
    TileMask drawn_wins = 0, claimed_wins = 0;
    int nearest = 9;
  };
  Reach reach_of(int seat, const Holding& holding) const;
  SeatInputs inputs_of(const State& state, const BySeat<Holding>& hands);

  const State* state_;
  Seat drawer_;
  Counts wall_{};
  int wall_tiles_ = 0;
  BySeat<Holding> hands_;
  BySeat<Counts> unseen_{};
  /// Of the hands met so far, by their seats.
  std::map<std::pair<int, Holding>, Reach> reaches_;
};

/// Plays the hand of `state` again and calls `drawn(state)` after each draw. Throws InvalidInput for rules
/// with flowers, and when the state was sampled from a snapshot.
template <class Drawn>
void replay_draws(const State& state, Drawn&& drawn) {
  if (state.rules().flowers) throw InvalidInput("the luck of hands with flowers is not known");
  State replay(state.rules(), state.table().wind, state.dealt_wall());
  drawn(std::as_const(replay));
  for (const auto& [seat, action] : state.actions()) {
    const int before = replay.log().size;
    replay.apply_legal(seat, action, NoEvents{});
    if (replay.has_drawn() && replay.log().size > before) drawn(std::as_const(replay));
  }
}

/// What luck has given each seat so far, in points of score. The deal is not counted.
BySeat<double> luck_of(const State& state, const LuckNetwork& network);

// Branches of a hand: the scores when a seat takes one action or another and rule players play on.
//
// All branches of a position share its wall, so some of their luck is the same. A branch may also end after a
// few draws. Then the network, which sees all hands, values it: less luck, but the network's errors. Source:
// "vine" sampling of Schulman, Levine, Moritz, Jordan, Abbeel, "Trust Region Policy Optimization",
// arXiv:1502.05477 (2015).

/// Points of the seats after each of `actions` of `seat` when rule players play on. Branches end before the
/// last of so many `draws` is seen, where `critic` values the hands; 0: at the end of the hand. Throws
/// IllegalAction if an action is not legal, InvalidInput if draws are counted in a game with flowers.
std::vector<BySeat<double>> branch(const State& state, Seat seat, std::span<const Action> actions,
                                   Appraisal appraisal, int draws, const LuckNetwork& critic);

}  // namespace bothost::mahjong
