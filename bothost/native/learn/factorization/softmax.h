// Scores to probabilities, and what they lose.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "learn/factorization/samples.h"

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

/// The place of a sample's label among its legal classes.
inline std::size_t chosen(const Samples& samples, std::size_t s) {
  const auto legal = samples.legal[s];
  return at(std::ranges::lower_bound(legal, samples.labels[s]) - legal.begin());
}

/// Scores of a sample's legal classes to probabilities; returns its cross-entropy, 0 without labels.
inline double normalize(const Samples& samples, std::size_t s, float* scores) {
  if (samples.legal[s].empty()) return 0;
  const float score = samples.labels.empty() ? 0 : scores[chosen(samples, s)];
  const double log_sum = softmax(scores, samples.legal[s].size());
  return samples.labels.empty() ? 0 : log_sum - static_cast<double>(score);
}

/// Scores of a labelled sample to the gradient of its cross-entropy by them; returns that.
inline double differentiate(const Samples& samples, std::size_t s, float* scores) {
  const double loss = normalize(samples, s, scores);
  scores[chosen(samples, s)] -= 1;
  return loss;
}

inline float dot(const float* a, const float* b, std::size_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t f = 0; f < n; ++f) sum += a[f] * b[f];
  return sum;
}

}  // namespace bothost::fm
