#include "learn/factorization/linear.h"

#include <algorithm>
#include <vector>

#include "learn/factorization/softmax.h"

namespace bothost::fm {
namespace {

/// Classes whose weights are turned into columns together: one cache line of a row.
constexpr std::size_t kTogether = 16;

/// One class after the other, over the samples that it is legal in: the weights of a class, as a column, stay
/// in the nearest cache, where those of a sample's features and classes lie all over the model.
class Pass {
 public:
  Pass(const Samples& samples, const Rows& alternatives, const LinearModel& model)
      : s_(samples),
        alternatives_(alternatives),
        classes_(model.bias.size()),
        features_(model.weights.size() / classes_),
        own_(model.alternatives.size() / classes_),
        columns_(kTogether * (features_ + own_)),
        places_(samples, classes_) {}

  /// Scores of every sample's legal classes, laid out as they are.
  void scores(const LinearModel& model, float* out) {
    for (std::size_t begin = 0; begin < classes_; begin += kTogether) {
      const std::size_t end = std::min(begin + kTogether, classes_);
      for (std::size_t i = 0; i < features_ + own_; ++i) {
        const float* const row =
            i < features_ ? &model.weights[i * classes_] : &model.alternatives[(i - features_) * classes_];
        for (std::size_t r = begin; r < end; ++r) column(r - begin)[i] = row[r];
      }
      for (std::size_t r = begin; r < end; ++r) {
        const float* const w = column(r - begin);
        for (const auto [sample, at] : places_[r]) {
          const float score = sum(w, s_.features[sample]);
          out[at] = model.bias[r] + (own_ ? score + sum(w + features_, alternatives_[at]) : score);
        }
      }
    }
  }

  /// The gradient of the loss by the model, from that by the scores.
  void gradient(const std::vector<float>& by_scores, const LinearView& out) {
    for (std::size_t begin = 0; begin < classes_; begin += kTogether) {
      const std::size_t end = std::min(begin + kTogether, classes_);
      std::ranges::fill(columns_, 0.0f);
      for (std::size_t r = begin; r < end; ++r) {
        float* const g = column(r - begin);
        float total = 0;
        for (const auto [sample, place] : places_[r]) {
          const float by_score = by_scores[place];
          total += by_score;
          for (const auto i : s_.features[sample]) g[i] += by_score;
          if (own_)
            for (const auto i : alternatives_[place]) g[features_ + at(i)] += by_score;
        }
        out.bias[r] = total;
      }
      for (std::size_t i = 0; i < features_ + own_; ++i) {
        float* const row =
            i < features_ ? &out.weights[i * classes_] : &out.alternatives[(i - features_) * classes_];
        for (std::size_t r = begin; r < end; ++r) row[r] = column(r - begin)[i];
      }
    }
  }

 private:
  static float sum(const float* weights, std::span<const std::int32_t> row) {
    const std::int32_t* const set = row.data();
    const std::size_t n = row.size();
    float out = 0;
#pragma omp simd reduction(+ : out)
    for (std::size_t m = 0; m < n; ++m) out += weights[set[m]];
    return out;
  }

  /// Of a class: its weights of the features, then of its own.
  float* column(std::size_t n) { return &columns_[n * (features_ + own_)]; }

  const Samples& s_;
  const Rows& alternatives_;
  const std::size_t classes_, features_, own_;
  std::vector<float> columns_;
  const Places places_;
};

}  // namespace

double linear_loss(const LinearModel& model, const Samples& samples, const Rows& alternatives,
                   const LinearView& gradient) {
  Pass pass(samples, alternatives, model);
  std::vector<float> scores(samples.legal.items.size());
  pass.scores(model, scores.data());
  double loss = 0;
  for (std::size_t s = 0; s < samples.size(); ++s)
    loss += differentiate(samples, s, scores.data() + samples.legal.offsets[s]);
  pass.gradient(scores, gradient);
  return loss;
}

void linear_probabilities(const LinearModel& model, const Samples& samples, const Rows& alternatives,
                          float* out) {
  Pass(samples, alternatives, model).scores(model, out);
  for (std::size_t s = 0; s < samples.size(); ++s)
    if (const auto legal = samples.legal[s]; !legal.empty())
      softmax(out + samples.legal.offsets[s], legal.size());
}

}  // namespace bothost::fm
