// The inner loops of a small fully connected network, once per instruction set.
//
// Each set is a translation unit of its own, compiled with its own flags, that includes kernels_impl.h:
// nothing there may be an inline function of a header that other units use too, or the linker could keep the
// copy that older processors cannot run.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bothost::network {

/// Samples computed at a time: their activations stay in a core's second-level cache.
constexpr int kChunk = 96;

/// C (rows, columns) = A · B, and what is done to C on the way. 32-bit elements: a float, or in the bfloat16
/// kernel two consecutive terms of the sum, the first in the low half.
struct Product {
  int rows = 0, columns = 0, terms = 0;  // columns: a multiple of the lanes of a vector
  const std::uint32_t* a = nullptr;
  std::ptrdiff_t a_row = 0, a_term = 0;  // a[row * a_row + term * a_term]
  const std::uint32_t* b = nullptr;
  std::ptrdiff_t b_term = 0;  // b[term * b_term + column]
  float* c = nullptr;
  std::ptrdiff_t c_row = 0;  // c[row * c_row + column]
  /// Sums begin with these (columns), or with C itself where `add`, or with 0.
  const float* bias = nullptr;
  bool add = false;
  /// Negative sums become 0.
  bool rectify = false;
  /// Sums become 0 where this, laid out as C, is not positive: the gradient of rectify.
  const float* gate = nullptr;
};

/// Weights of the objective's terms.
struct Objective {
  float clip, value_coef, entropy_coef, kl_coef;
};

/// One sample's part of the objective; the same terms as bothost.training.ppo.Losses, not divided by
/// anything.
struct Terms {
  float policy, value, entropy, approx_kl, clipped;
};

/// Sample i of a minibatch, as its objective needs it.
struct Sample {
  const bool* legal;
  int action;
  float log_prob, advantage, target;
};

/// More actions than this are not computed here.
constexpr int kMostActions = 4096;

struct Kernels {
  const char* name;
  void (*multiply)(const Product&);
  /// Append the nonzero ones of x (n) and their indices; returns how many. Both may be written to up to n +
  /// lanes.
  int (*nonzeros)(const float* x, int n, std::uint16_t* index, float* value);
  /// out (columns) = rectified(bias + sum of value[k] * weights[index[k] * stride])
  void (*gather)(const std::uint16_t* index, const float* value, int n, const float* weights,
                 std::ptrdiff_t stride, const float* bias, float* out, int columns);
  /// Round a row of weights (columns, a multiple of 2 * lanes) to bfloat16 and fold it: in each run of 2 *
  /// lanes, the first half in the low halves of lanes words, the second in their high halves.
  void (*fold)(const float* row, int columns, std::uint32_t* out);
  /// gather from folded rows, `stride` words apart
  void (*gather_folded)(const std::uint16_t* index, const float* value, int n, const std::uint32_t* weights,
                        std::ptrdiff_t stride, const float* bias, float* out, int columns);
  /// out (columns) += sum of value[k] * rows[index[k] * stride]
  void (*scatter)(const std::uint16_t* index, const float* value, int n, const float* rows,
                  std::ptrdiff_t stride, float* out, int columns);
  /// out (columns) += sum of rows
  void (*sum_rows)(const float* rows, std::ptrdiff_t stride, int n, float* out, int columns);
  /// Rows rounded to bfloat16, twice: as they are, and as pairs of rows, element by element (the even row in
  /// the low half). An odd last row is paired with zeros.
  void (*narrow)(const float* rows, std::ptrdiff_t stride, int n, int columns, std::uint16_t* narrowed,
                 std::uint32_t* pairs, std::ptrdiff_t out_stride);
  /// Log-probabilities (padded to lanes) of the softmax over the legal of `actions` logits; very negative
  /// elsewhere.
  void (*log_softmax)(const float* logits, const bool* legal, int actions, float* log_probs);
  /// log_softmax, and the action at which the distribution function passes `uniform`, a number in [0, 1).
  int (*draw)(const float* logits, const bool* legal, int actions, float uniform, float* log_probs);
  /// The objective of one sample; its gradient, times `weight`, replaces the logits and the value after them.
  Terms (*objective)(float* outputs, int actions, const Sample&, const Objective&, float weight);
};

/// What every processor runs that the core is built for.
const Kernels& baseline();
/// Null where the compiler or the processor lacks the instructions.
const Kernels* avx512();
/// As avx512(), and `multiply` takes pairs of bfloat16; null likewise.
const Kernels* avx512_bf16();
/// As avx512_bf16(), and AMX computes `multiply`; null also where the system refuses it.
const Kernels* amx_bf16();

}  // namespace bothost::network
