// A factorization machine that is shared by all actions (a conditional one): it scores each candidate of a
// sample from the features of the position P, those of the candidate C, and the row of the player, if known.
//
//   y = sum_{j in C} w_j + sum over pairs with a candidate's feature of <v_i, v_j>
//       + sum_h c_h max(0, d_h + sum_i u_ih)          i over P, C and the player
//
// The first two are Rendle's machine (2010), less what is the same for all candidates. The rectified factors
// are read in the same way, by their sums over the features, but are not limited to pairs. Sums over the
// position are calculated once for all candidates.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "learn/factorization/samples.h"

namespace bothost::fm {

struct ConditionalShape {
  int positions, choices, players, quadratic, rectified;
  /// Candidates' features from this one on have a weight only, no factors.
  int embedded;
  std::size_t width() const { return at(quadratic + rectified); }
  std::size_t rows() const { return at(positions + choices + players); }
};

/// Decisions whose candidates have features of their own.
struct ChoiceSamples {
  /// Features of the position, legal classes, and which of them was chosen.
  Samples samples;
  /// Features of each legal class, a row for each of samples.legal.items.
  Rows choices;
  /// Who decides, -1: unknown. Empty: all are unknown.
  std::span<const std::int32_t> players;

  std::size_t size() const { return samples.size(); }
  /// Throws InvalidInput unless everything holds for a machine of this shape.
  void check(const ConditionalShape& shape, int num_classes) const;
};

struct ConditionalSteps {
  /// AdaGrad (Duchi et al. 2011), an accumulator for each number.
  float rate;
  /// L2 per use of a row, towards the anchor.
  float decay;
  /// Samples of a step.
  int batch;
  /// Whether only the rows of players move.
  bool players_only;
};

class ConditionalMachine {
 public:
  /// Factors are drawn from a normal distribution of this deviation. Rows of players begin at 0.
  ConditionalMachine(const ConditionalShape& shape, std::uint64_t seed, float deviation);

  const ConditionalShape& shape() const { return shape_; }

  /// Returns the mean cross-entropy, each batch's before its own step.
  double train(const ChoiceSamples& samples, std::span<const std::int64_t> order,
               const ConditionalSteps& steps);
  /// Probability of each legal class, laid out as samples.legal.items.
  double probabilities(const ChoiceSamples& samples, float* out) const;
  /// Decay pulls towards the parameters as they are now; the accumulators begin anew.
  void anchor();

  /// weights (choices), factors (positions + choices + players, quadratic + rectified), bias and readout
  /// (rectified), and AdaGrad's accumulators.
  std::vector<float> weights, factors, bias, readout;
  std::vector<float> weight_squares, factor_squares, bias_squares, readout_squares;

  const float* row(std::size_t index) const { return &factors[index * shape_.width()]; }

 private:
  struct Scratch;
  void forward(const ChoiceSamples& samples, std::size_t s, Scratch& scratch) const;
  void backward(const ChoiceSamples& samples, std::size_t s, bool players_only, Scratch& scratch) const;
  void step(const ConditionalSteps& steps, Scratch& scratch);

  ConditionalShape shape_;
  std::vector<float> anchor_weights_, anchor_factors_;
};

/// Conjunctions as further features of candidates. Features are numbered positions first, then candidates'
/// own
/// (`choices` of them), then one for each pair; both parts of a pair come before it, at least one is of
/// candidates. Returns the rows with those that hold, counted from the first candidate's feature.
OwnedRows extend_choices(int positions, int choices, std::span<const std::int32_t> pairs,
                         const ChoiceSamples& samples);

struct ConditionalPairs {
  double base = 0;
  /// Pairs first < second, numbered as in extend_choices; second is of candidates.
  std::vector<std::int32_t> first, second;
  /// Of each pair the smallest mean cross-entropy of the ablated models: without <i, j>; without <i, j> and
  /// w_j; for two features of candidates also without <i, j> and w_i.
  std::vector<double> smallest;
};

/// Exact for all pairs that hold together in some candidate.
ConditionalPairs conditional_pair_losses(const ConditionalMachine& machine, const ChoiceSamples& samples);

}  // namespace bothost::fm
