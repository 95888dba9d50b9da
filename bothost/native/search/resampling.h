// Drawing from weighted samples.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bothost::search {

/// Weights of mean 1 from their logs, of which one is finite.
inline std::vector<double> weights_of(std::vector<double> logs) {
  const double most = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (double& log : logs) sum += log = std::exp(log - most);
  for (double& weight : logs) weight *= static_cast<double>(logs.size()) / sum;
  return logs;
}

/// How many equal samples are worth as much as those of these weights, which have mean 1 (Kish, 1965).
inline double effective_size(const std::vector<double>& weights) {
  double squares = 0;
  for (const double weight : weights) squares += weight * weight;
  const auto n = static_cast<double>(weights.size());
  return n * n / squares;
}

/// The largest trust within (0, 1] at which some 1.4 √n of n samples are effective: few samples do not bear
/// sharp weights, of many the best are enough. `logs_at(trust)` are the logs of the weights, and their spread
/// grows with trust (tempering, as in Jasra et al., "Inference for Lévy-driven stochastic volatility models
/// via adaptive sequential Monte Carlo", 2011).
template <class LogsAt>
double bearable_trust(LogsAt&& logs_at, std::size_t n) {
  constexpr double kKept = 1.4;
  constexpr int kHalvings = 8;
  const double wanted = kKept * std::sqrt(static_cast<double>(n));
  const auto bears = [&](double trust) { return effective_size(weights_of(logs_at(trust))) >= wanted; };
  if (bears(1.0)) return 1.0;
  double low = 0.01, high = 1.0;  // above 0: a weight of 0 has no power 0
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (bears(middle) ? low : high) = middle;
  }
  return low;
}

/// As many indices as there are weights, each as often as its weight, which has mean 1, rounded up or down:
/// systematic resampling (Kitagawa, 1996), from `at` in [0, 1) on. Ascending.
inline std::vector<std::size_t> systematic(const std::vector<double>& weights, double at) {
  std::vector<std::size_t> out;
  out.reserve(weights.size());
  double reached = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    reached += weights[i];
    for (; at < reached && out.size() < weights.size(); at += 1.0) out.push_back(i);
  }
  out.resize(weights.size(), weights.size() - 1);  // what rounding has left
  return out;
}

}  // namespace bothost::search
