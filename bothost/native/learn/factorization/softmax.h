// Scores to probabilities.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bothost::fm {

/// Replaces scores by their softmax; returns the log of the sum of exponentials.
inline double softmax(float* scores, std::size_t n) {
  const float top = *std::max_element(scores, scores + n);
  double sum = 0;
  for (std::size_t q = 0; q < n; ++q) {
    scores[q] = std::exp(scores[q] - top);
    sum += static_cast<double>(scores[q]);
  }
  const auto scale = static_cast<float>(1 / sum);
  for (std::size_t q = 0; q < n; ++q) scores[q] *= scale;
  return std::log(sum) + static_cast<double>(top);
}

}  // namespace bothost::fm
