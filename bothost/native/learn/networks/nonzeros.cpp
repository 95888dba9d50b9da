#include "learn/networks/nonzeros.h"

#include <string>

#include "core/types.h"
#include "learn/networks/layout.h"

namespace bothost::network {

void Nonzeros::find(const Kernels& kernels, const float* x, int rows, int columns, std::ptrdiff_t stride) {
  begin.resize(at(rows) + 1);
  begin[0] = 0;
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    const auto start = begin[at(i)];
    if (const auto room = at(start + columns + kWidest); input.size() < room) {
      input.resize(2 * room);
      value.resize(2 * room);
    }
    begin[at(i) + 1] =
        start + kernels.nonzeros(x + i * stride, columns, input.data() + start, value.data() + start);
  }
}

void Nonzeros::sort(int rows, int columns) {
  const auto found = at(begin[at(rows)]);
  row_.resize(found);
  value_by_input_.resize(found);
  begin_of_input_.assign(at(columns) + 2, 0);
  // Counting sort: begin_of_input_[j + 1] moves from the beginning of j's entries to their end.
  for (std::size_t k = 0; k < found; ++k) ++begin_of_input_[input[k] + 2u];
  for (std::size_t j = 2; j < begin_of_input_.size(); ++j) begin_of_input_[j] += begin_of_input_[j - 1];
  for (std::size_t i = 0; i < at(rows); ++i)
    for (auto k = at(begin[i]); k < at(begin[i + 1]); ++k) {
      const auto to = at(begin_of_input_[input[k] + 1u]++);
      row_[to] = static_cast<std::uint16_t>(i);
      value_by_input_[to] = value[k];
    }
}

void Nonzeros::scatter(const Kernels& kernels, const float* gradient, std::ptrdiff_t stride, int rows,
                       int columns, float* table, int width) {
  sort(rows, columns);
  for (std::size_t j = 0; j < at(columns); ++j) {
    const auto start = begin_of_input_[j];
    if (const int count = begin_of_input_[j + 1] - start; count > 0)
      kernels.scatter(row_.data() + start, value_by_input_.data() + start, count, gradient, stride,
                      table + j * at(width), width);
  }
}

void check_widths(std::span<const int> widths, const char* name) {
  const auto refuse = [name](const char* what, int most) {
    throw InvalidInput(std::string(name) + ": " + what + std::to_string(most));
  };
  if (widths.size() < 2) throw InvalidInput(std::string(name) + ": inputs and at least one hidden layer");
  if (widths[0] < 1 || widths[0] > kMostInputs) refuse("inputs must be within 1 and ", kMostInputs);
  for (const int width : widths.subspan(1))
    if (width < 1 || width % kWidest != 0 || width > kMostHidden)
      refuse("widths of hidden layers must be multiples of 16, at most ", kMostHidden);
}

}  // namespace bothost::network
