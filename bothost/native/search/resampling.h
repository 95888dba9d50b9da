// Resampling of weighted samples.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bothost::search {

/// Weights of mean 1 from their logs. At least one log must be finite.
inline std::vector<double> weights_of(std::vector<double> logs) {
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (double& log : logs) sum += log = std::exp(log - most);
  for (double& weight : logs) weight *= static_cast<double>(logs.size()) / sum;
  return logs;
}

/// Effective sample size of weights of mean 1 (Kish, 1965).
inline double effective_size(const std::vector<double>& weights) {
  double squares = 0;
  for (const double weight : weights) squares += weight * weight;
  const auto n = static_cast<double>(weights.size());
  return n * n / squares;
}

/// The largest exponent within (0, 1] at which the effective size of n samples is about 1.4 √n. Few samples
/// cannot support sharp weights; many can. `logs_at(exponent)` returns the logs of the weights, whose spread
/// grows with the exponent. Source: tempering, as in Jasra et al., "Inference for Lévy-driven stochastic
/// volatility models via adaptive sequential Monte Carlo" (2011).
template <class LogsAt>
double tempering_exponent(LogsAt&& logs_at, std::size_t n) {
  constexpr double kKept = 1.4;
  constexpr int kHalvings = 8;
  const double wanted = kKept * std::sqrt(static_cast<double>(n));
  const auto bears = [&](double exponent) { return effective_size(weights_of(logs_at(exponent))) >= wanted; };
  if (bears(1.0)) return 1.0;
  double low = 0.01, high = 1.0;  // above 0: a weight of 0 has no power 0
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (bears(middle) ? low : high) = middle;
  }
  return low;
}

/// Systematic resampling (Kitagawa, 1996): as many ascending indices as there are weights of mean 1. Index i
/// occurs weights[i] times, rounded up or down. `at` in [0, 1) is the random offset.
inline std::vector<std::size_t> systematic(const std::vector<double>& weights, double at) {
  std::vector<std::size_t> out;
  out.reserve(weights.size());
  double reached = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    reached += weights[i];
    for (; at < reached && out.size() < weights.size(); at += 1.0) out.push_back(i);
  }
  out.resize(weights.size(), weights.size() - 1);  // rounding may have left the last ones out
  return out;
}

}  // namespace bothost::search
