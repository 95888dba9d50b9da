// The inputs of a first layer that are not zero.
#pragma once
#include <span>
#include <vector>

#include "learn/networks/kernels.h"

namespace bothost::network {

/// Of a parameter of a network.
using Shape = std::vector<std::size_t>;

class Nonzeros {
 public:
  /// Row i has the inputs begin[i] .. begin[i + 1] - 1.
  std::vector<std::int32_t> begin{0};
  std::vector<std::uint16_t> input;
  std::vector<float> value;

  /// Of rows that lie `stride` apart.
  void find(const Kernels&, const float* x, int rows, int columns, std::ptrdiff_t stride);
  /// table[j * width ..] += the sum over rows of their input j times their gradient (rows, width), rows
  /// `stride` apart.
  void scatter(const Kernels&, const float* gradient, std::ptrdiff_t stride, int rows, int columns,
               float* table, int width);

 private:
  /// For the gradients of tables: by input.
  void sort(int rows, int columns);
  std::vector<std::int32_t> begin_of_input_;
  std::vector<std::uint16_t> row_;
  std::vector<float> value_by_input_;
};

/// Throws InvalidInput, which begins with `name`, unless the first of the widths can be that of inputs, and
/// those that follow can be of hidden layers.
void check_widths(std::span<const int> widths, const char* name);

}  // namespace bothost::network
