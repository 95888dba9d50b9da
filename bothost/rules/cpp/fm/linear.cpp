#include "fm/linear.h"

#include <algorithm>
#include <vector>

#include "fm/softmax.h"

namespace bothost::fm {
namespace {

/// Classes whose weights are turned into columns together: one cache line of a row.
constexpr std::size_t kTogether = 16;

/// One class after the other, over the samples that it is legal in: the weights of a class, as a column, stay
/// in the nearest cache, where those of a sample's features and classes lie all over the model.
class Pass {
 public:
  Pass(const Samples& samples, std::size_t num_features, std::size_t classes)
      : s_(samples), features_(num_features), classes_(classes), columns_(kTogether * num_features) {
    first_.assign(classes + 1, 0);
    for (const auto r : s_.legal.items) ++first_[static_cast<std::size_t>(r) + 1];
    for (std::size_t r = 0; r < classes; ++r) first_[r + 1] += first_[r];
    places_.resize(s_.legal.items.size());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t s = 0; s < s_.size(); ++s)
      for (auto at = static_cast<std::size_t>(s_.legal.offsets[s]); const auto r : s_.legal[s])
        places_[next[static_cast<std::size_t>(r)]++] = {s, at++};
  }

  /// Scores of every sample's legal classes, laid out as they are.
  void scores(std::span<const float> weights, std::span<const float> bias, std::vector<float>& out) {
    for (std::size_t begin = 0; begin < classes_; begin += kTogether) {
      const std::size_t end = std::min(begin + kTogether, classes_);
      for (std::size_t i = 0; i < features_; ++i)
        for (std::size_t r = begin; r < end; ++r) column(r - begin)[i] = weights[i * classes_ + r];
      for (std::size_t r = begin; r < end; ++r) {
        const float* const w = column(r - begin);
        for (const Place place : of(r)) {
          const auto row = s_.features[place.sample];
          const std::int32_t* const set = row.data();
          const std::size_t n = row.size();
          float score = 0;
#pragma omp simd reduction(+ : score)
          for (std::size_t m = 0; m < n; ++m) score += w[set[m]];
          out[place.at] = bias[r] + score;
        }
      }
    }
  }

  /// The gradient of the loss by the model, from that by the scores.
  void gradient(const std::vector<float>& by_scores, const LinearView& out) {
    for (std::size_t begin = 0; begin < classes_; begin += kTogether) {
      const std::size_t end = std::min(begin + kTogether, classes_);
      std::fill(columns_.begin(), columns_.end(), 0.0f);
      for (std::size_t r = begin; r < end; ++r) {
        float* const g = column(r - begin);
        float total = 0;
        for (const Place place : of(r)) {
          const float by_score = by_scores[place.at];
          total += by_score;
          for (const auto i : s_.features[place.sample]) g[i] += by_score;
        }
        out.bias[r] = total;
      }
      for (std::size_t i = 0; i < features_; ++i)
        for (std::size_t r = begin; r < end; ++r) out.weights[i * classes_ + r] = column(r - begin)[i];
    }
  }

 private:
  /// Where a class is legal: the sample, and the place of its score among all.
  struct Place {
    std::size_t sample, at;
  };

  float* column(std::size_t n) { return &columns_[n * features_]; }
  std::span<const Place> of(std::size_t r) const {
    return std::span(places_).subspan(first_[r], first_[r + 1] - first_[r]);
  }

  const Samples& s_;
  const std::size_t features_, classes_;
  std::vector<float> columns_;
  std::vector<std::size_t> first_;
  std::vector<Place> places_;
};

}  // namespace

double linear_loss(std::span<const float> weights, std::span<const float> bias, const Samples& samples,
                   const LinearView& gradient) {
  const std::size_t classes = bias.size(), features = weights.size() / classes;
  Pass pass(samples, features, classes);
  std::vector<float> scores(samples.legal.items.size());
  pass.scores(weights, bias, scores);
  double loss = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto legal = samples.legal[s];
    float* const own = scores.data() + samples.legal.offsets[s];
    const auto chosen = std::lower_bound(legal.begin(), legal.end(), samples.labels[s]) - legal.begin();
    const float score = own[chosen];
    loss += softmax(own, legal.size()) - static_cast<double>(score);
    own[chosen] -= 1;
  }
  pass.gradient(scores, gradient);
  return loss;
}

}  // namespace bothost::fm
