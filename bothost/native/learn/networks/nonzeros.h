// The inputs of a first layer that are not zero.
#pragma once
#include <vector>

#include "learn/networks/kernels.h"

namespace bothost::network {

/// Inputs that are not zero, by row and, for the gradients of tables, by input.
struct Nonzeros {
  std::vector<std::int32_t> begin, begin_of_input;
  std::vector<std::uint16_t> input, row;
  std::vector<float> value, value_by_input;

  /// Of rows that lie `stride` apart.
  void find(const Kernels&, const float* x, int rows, int columns, std::ptrdiff_t stride);
  void sort(int rows, int columns);
};

/// Throws InvalidInput, which begins with `name`, unless the first of the widths can be that of inputs, and
/// those that follow can be of hidden layers.
void check_widths(std::span<const int> widths, const char* name);

}  // namespace bothost::network
