#include "fm/linear.h"

#include <algorithm>
#include <vector>

#include "fm/softmax.h"

namespace bothost::fm {

double linear_loss(std::span<const float> weights, std::span<const float> bias, const Samples& samples,
                   const LinearView& gradient) {
  const std::size_t classes = bias.size();
  std::fill(gradient.weights.begin(), gradient.weights.end(), 0.0f);
  std::fill(gradient.bias.begin(), gradient.bias.end(), 0.0f);
  std::vector<float> scores(classes);
  double loss = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto features = samples.features[s], legal = samples.legal[s];
    const std::size_t n = legal.size();
    for (std::size_t q = 0; q < n; ++q) scores[q] = bias[static_cast<std::size_t>(legal[q])];
    for (const auto i : features) {
      const float* const w = &weights[static_cast<std::size_t>(i) * classes];
      for (std::size_t q = 0; q < n; ++q) scores[q] += w[legal[q]];
    }
    const auto chosen = static_cast<std::size_t>(
        std::lower_bound(legal.begin(), legal.end(), samples.labels[s]) - legal.begin());
    const float score = scores[chosen];
    loss += softmax(scores.data(), n) - static_cast<double>(score);
    scores[chosen] -= 1;
    for (std::size_t q = 0; q < n; ++q) gradient.bias[static_cast<std::size_t>(legal[q])] += scores[q];
    for (const auto i : features) {
      float* const g = &gradient.weights[static_cast<std::size_t>(i) * classes];
      for (std::size_t q = 0; q < n; ++q) g[legal[q]] += scores[q];
    }
  }
  return loss;
}

}  // namespace bothost::fm
