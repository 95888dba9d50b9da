// How the networks here lay out matrices in memory.
#pragma once
#include <algorithm>
#include <cstddef>

#include "learn/networks/kernels.h"

namespace bothost::network {

/// Widths are padded to this, so that every instruction set has whole vectors.
constexpr int kWidest = 16;
constexpr int kMostInputs = 65535 - kWidest;
constexpr int kMostHidden = 8192;

/// A width in whole vectors.
constexpr int padded(int width) { return (width + kWidest - 1) / kWidest * kWidest; }

/// Rows lie this far apart: were it a power of two, the rows of a product's operand would share few cache
/// sets.
constexpr std::ptrdiff_t stride_of(int width) { return padded(width) + kWidest; }

constexpr std::size_t size_of(std::ptrdiff_t rows, std::ptrdiff_t stride) {
  return static_cast<std::size_t>(rows * stride);
}

/// out[j * out_stride + i] (+)= in[i * in_stride + j], in blocks that fit a vector's width.
template <bool kAdd = false, class T>
void transpose(const T* in, std::ptrdiff_t in_stride, int rows, int columns, T* out,
               std::ptrdiff_t out_stride) {
  constexpr int kBlock = 16;
  for (int i0 = 0; i0 < rows; i0 += kBlock)
    for (int j0 = 0; j0 < columns; j0 += kBlock)
      for (int j = j0; j < std::min(columns, j0 + kBlock); ++j)
        for (int i = i0; i < std::min(rows, i0 + kBlock); ++i) {
          if constexpr (kAdd)
            out[j * out_stride + i] += in[i * in_stride + j];
          else
            out[j * out_stride + i] = in[i * in_stride + j];
        }
}

/// A layer's weight (out, in) as the forward and input products read it.
inline void load_weight(const float* weight, int in, int out, float* forward, float* backward) {
  transpose(weight, in, out, in, forward, stride_of(out));
  for (int row = 0; row < out; ++row) std::copy_n(weight + row * in, in, backward + row * stride_of(in));
}

// Products of a layer whose inputs (rows, in) and outputs (rows, out) lie stride_of(in) and stride_of(out)
// apart. `multiply` adds where the operands lie; where the product goes, the caller.

inline void multiply(const Kernels& kernels, Product product, const void* a, const void* b) {
  product.a = static_cast<const std::uint32_t*>(a);
  product.b = static_cast<const std::uint32_t*>(b);
  kernels.multiply(product);
}

/// The outputs: inputs times the weight as [in][out].
inline Product forward_product(int rows, int in, int out) {
  return {.rows = rows,
          .columns = padded(out),
          .terms = in,
          .a_row = stride_of(in),
          .a_term = 1,
          .b_term = stride_of(out),
          .c_row = stride_of(out)};
}
/// The gradient of the weight (out, in), which is added to: that of the outputs times the inputs.
inline Product weight_product(int rows, int in, int out) {
  return {.rows = out,
          .columns = in,
          .terms = rows,
          .a_row = 1,
          .a_term = stride_of(out),
          .b_term = stride_of(in),
          .c_row = in,
          .add = true};
}
/// The gradient of the inputs: that of the outputs times the weight as [out][in].
inline Product input_product(int rows, int in, int out) {
  return {.rows = rows,
          .columns = in,
          .terms = out,
          .a_row = stride_of(out),
          .a_term = 1,
          .b_term = stride_of(in),
          .c_row = stride_of(in)};
}

}  // namespace bothost::network
