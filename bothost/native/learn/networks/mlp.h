// A small fully connected network with rectified hidden layers whose outputs are the logits of a masked
// policy and a value: forward passes, draws, and the gradients of PPO's objective, on one thread.
//
// The inputs are taken to be mostly zeros, as encodings of cards are: the first layer adds up the rows of the
// inputs that are not. bothost.training.ppo is the readable account of the same mathematics, and the tests
// hold the two together.
#pragma once
#include <span>
#include <vector>

#include "learn/networks/layout.h"
#include "learn/networks/nonzeros.h"

namespace bothost::network {

/// Sizes of a scorer: an addition to the logits of actions, each from features of its own: out ·
/// rectified(weight · features + context), where the context are further outputs of the network. All actions
/// share the parameters. Without features there is none.
struct ScorerSizes {
  int features = 0;
  int hidden = 0;
};

struct Minibatch {
  std::size_t samples;
  const float* observations;  // (samples, row)
  const bool* masks;          // (samples, actions): legal ones
  const std::int64_t* actions;
  const float* log_probs;
  const float* advantages;
  const float* returns;
};

class Mlp {
 public:
  /// `widths`: inputs, those of the hidden layers (multiples of 16), actions + 1 + hidden width of the scorer
  /// (a multiple of 16). Throws InvalidInput on others. With `bf16` weights of layers are rounded to
  /// bfloat16, and so are the inputs of all layers but the first; sums are of float32.
  Mlp(std::vector<int> widths, bool bf16, const Kernels& kernels, ScorerSizes scorer = {});

  [[nodiscard]] int inputs() const { return widths_.front(); }
  [[nodiscard]] int actions() const { return widths_.back() - 1 - scorer_.hidden; }
  /// Length of an observation: the inputs of the first layer, and the features of each action.
  [[nodiscard]] int row() const { return inputs() + actions() * scorer_.features; }
  [[nodiscard]] const char* kernels() const { return kernels_.name; }
  /// Shapes of the parameters, in the order of `load` and `gradients`: weight (outputs, inputs) and bias
  /// (outputs) of each layer, as torch has them; weight (hidden, features) and out (hidden) of the scorer.
  [[nodiscard]] const std::vector<Shape>& shapes() const { return shapes_; }

  /// Take these parameters from now on.
  void load(std::span<const float* const> parameters);
  /// outputs (n, actions + 1) of observations (n, row)
  void forward(const float* observations, std::size_t n, float* outputs);
  /// Draw an action for each row; `uniform` (n) are numbers in [0, 1).
  void act(const float* observations, const bool* masks, const float* uniform, std::size_t n,
           std::int64_t* actions, float* log_probs, float* values);
  /// Add the gradients of the minibatch's objective to `into`; returns its terms, means over the samples.
  Terms gradients(const Minibatch&, const Objective&, std::span<float* const> into);

 private:
  /// What one layer after the first keeps: its weights as the products need them, and its inputs of a chunk.
  struct Dense {
    int in, out;
    std::ptrdiff_t in_stride() const { return stride_of(in); }
    std::ptrdiff_t out_stride() const { return stride_of(out); }
    std::vector<float> forward;   // [in][padded], float32 only
    std::vector<float> backward;  // [out][in], float32 only
    std::vector<float> bias;      // [padded]
    std::vector<std::uint16_t> narrow;
    std::vector<std::uint32_t> forward_pairs;   // [in / 2][padded]
    std::vector<std::uint32_t> backward_pairs;  // [out / 2][in]
    std::vector<float> inputs;                  // [kChunk][in]
    std::vector<std::uint16_t> narrow_inputs;
    std::vector<std::uint32_t> input_pairs;
    std::vector<float> outputs;  // [kChunk][padded]; on the way back, their gradients
    std::vector<std::uint16_t> narrow_outputs;
    std::vector<std::uint32_t> output_pairs;
  };

  void load_dense(Dense& layer, const float* weight, const float* bias);
  /// Fills the layers' inputs and the last one's outputs, for n <= kChunk samples.
  void forward_chunk(const float* observations, int n);
  void backward_chunk(int n, std::span<float* const> into);
  /// Adds the scorer to the logits of legal actions (all of them if null), which keeps its hidden units.
  void score(const float* observation, const bool* legal, float* outputs);
  /// The gradients of the scorer, and those of the context in place of it, from those of the logits.
  void score_backward(const float* observation, const bool* legal, float* outputs, float* into_out);
  float* outputs_of(int sample) { return dense_.back().outputs.data() + sample * dense_.back().out_stride(); }

  std::vector<int> widths_;
  std::vector<Shape> shapes_;
  bool bf16_;
  const Kernels& kernels_;
  ScorerSizes scorer_;
  std::vector<float> scorer_weight_, scorer_gradient_;  // [features][hidden]
  std::vector<float> scorer_out_;
  std::vector<float> units_;  // of the scorer, of one sample: [actions][hidden]
  int first_stride_ = 0;      // of first_: the first hidden width, or 16 more
  std::vector<float> first_;  // [inputs][first hidden width]
  std::vector<std::uint32_t> first_folded_;
  std::vector<float> first_bias_;
  std::vector<float> first_gradient_;   // [inputs][first hidden width]
  std::vector<float> hidden_gradient_;  // of the first hidden layer's sums, [kChunk][its width and more]
  std::vector<Dense> dense_;
  Nonzeros nonzeros_;  // inputs of a chunk
};

}  // namespace bothost::network
