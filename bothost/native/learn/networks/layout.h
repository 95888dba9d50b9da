// How the networks here lay out matrices in memory.
#pragma once
#include <algorithm>
#include <cstddef>

namespace bothost::network {

/// Widths are padded to this, so that every instruction set has whole vectors.
constexpr int kWidest = 16;
constexpr int kMostInputs = 65535 - kWidest;
constexpr int kMostHidden = 8192;

/// Rows lie this far apart: were it a power of two, the rows of a product's operand would share few cache
/// sets.
constexpr std::ptrdiff_t stride_of(int width) { return (width + kWidest - 1) / kWidest * kWidest + kWidest; }

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

}  // namespace bothost::network
