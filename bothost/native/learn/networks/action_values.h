// A network of values Q(s, a): a trunk that is computed once a position, and a small head once a move.
//
// Both take inputs that are mostly zeros, as encodings of cards are: their first layers are tables, of which
// the rows of the inputs that are not zero are added up. The first hidden layer of the head is
//   relu(W trunk(s) + b + sum of the rows of the move's inputs),
// where all but the rows is shared by the moves of a position. One thread; bothost.training.action_values is
// the readable account of the same mathematics, and the tests hold the two together.
#pragma once
#include <span>
#include <vector>

#include "learn/networks/layout.h"
#include "learn/networks/nonzeros.h"

namespace bothost::network {

/// Positions and their moves, those of position i at offsets[i] .. offsets[i + 1].
struct Candidates {
  const float* positions;  // (n, inputs)
  std::size_t n;
  const float* moves;           // (offsets[n], features)
  const std::int64_t* offsets;  // (n + 1), ascending from 0
};

class ActionValues {
 public:
  /// `trunk`: inputs of positions and widths of hidden layers; `head`: inputs of moves and widths of hidden
  /// layers. Hidden widths are multiples of 16. Throws InvalidInput on others.
  ActionValues(std::vector<int> trunk, std::vector<int> head, const Kernels& kernels);

  [[nodiscard]] const char* kernels() const { return kernels_.name; }
  [[nodiscard]] int inputs() const { return trunk_widths_.front(); }
  [[nodiscard]] int features() const { return head_widths_.front(); }
  /// Width of the last hidden layer.
  [[nodiscard]] int representation() const { return head_widths_.back(); }
  /// Shapes of the parameters, in the order of `load` and `backward`: the trunk's table (inputs, width) and
  /// bias, weight (out, in) and bias of its other layers; weight and bias that join the trunk to the head;
  /// the head's table (features, width); weight and bias of its other layers; weight (1, in) and bias (1) of
  /// the value.
  [[nodiscard]] const std::vector<Shape>& shapes() const { return shapes_; }

  /// Take these parameters from now on.
  void load(std::span<const float* const> parameters);
  /// values (offsets[n]) of all moves
  void evaluate(const Candidates&, float* values);
  /// As evaluate, keeping what `backward` needs; `representations` (offsets[n], representation()).
  void forward(const Candidates&, float* values, float* representations);
  /// Add the gradients of a function of what the last `forward` returned, given its gradients there.
  void backward(const float* values, const float* representations, std::span<float* const> into);

  /// Most moves of a `forward`.
  static constexpr std::int64_t kMostMoves = 65535;

 private:
  struct Table {
    int width;
    std::vector<float> rows;  // [inputs][width]
  };

  struct Dense {
    int in, out;
    std::vector<float> forward;   // [in][stride_of(out)]
    std::vector<float> backward;  // [out][stride_of(in)]
    std::vector<float> bias;
  };

  /// Outputs of one layer, and their gradients, row by row with stride_of(width).
  struct Activations {
    int width;
    std::vector<float> out, gradient;
    void resize(std::size_t rows, bool gradients);
    float* row(std::int64_t i) { return out.data() + i * stride(); }
    [[nodiscard]] std::ptrdiff_t stride() const { return stride_of(width); }
  };

  void compute(const float* positions, int n, const float* moves, const std::int64_t* offsets, float* values);
  void multiply(const Dense&, const Activations& from, Activations& to, int rows, bool rectify) const;
  /// Gradients of the layer's inputs, 0 where those were rectified, and of its parameters, which are the last
  /// before `next`; that moves in front of them.
  void back(const Dense&, Activations& from, const Activations& to, int rows,
            std::span<float* const>::iterator& next);

  std::vector<int> trunk_widths_, head_widths_;
  std::vector<Shape> shapes_;
  const Kernels& kernels_;
  Table trunk_table_, head_table_;
  std::vector<float> trunk_bias_, value_weight_;
  float value_bias_ = 0;
  std::vector<Dense> trunk_, head_;
  Dense join_;
  // of the last compute
  int positions_ = 0, moves_ = 0;
  std::vector<std::int64_t> offsets_;
  Nonzeros position_inputs_, move_inputs_;
  std::vector<Activations> trunk_out_, head_out_;
  Activations joined_;
};

}  // namespace bothost::network
