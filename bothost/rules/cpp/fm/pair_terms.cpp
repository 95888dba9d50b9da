#include "fm/pair_terms.h"

namespace bothost::fm {
namespace {

#ifdef __AVX2__
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
/// Rows, and vectors of columns, whose sums stay in registers.
constexpr std::size_t kHeight = 4, kWidth = 2;
static_assert(kRows % kHeight == 0 && kColumns % (kWidth * kLanes) == 0 && kPadding >= kLanes);

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t IntVec __attribute__((vector_size(4 * kLanes)));

Vec load(const float* from) {
  Vec out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}

void store(float* to, Vec values) { __builtin_memcpy(to, &values, sizeof values); }

Vec gather(const float* from, const std::uint16_t* index) {
  Vec out;
  for (std::size_t lane = 0; lane < kLanes; ++lane) out[lane] = from[index[lane]];
  return out;
}

void gather_two(const float* from, const std::uint16_t* index, Vec& even, Vec& odd) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const float* const cell = from + 2 * static_cast<std::size_t>(index[lane]);
    even[lane] = cell[0], odd[lane] = cell[1];
  }
}

/// exp(x) to about 2e-7 relative. Polynomial: Cephes (S. Moshier), expf.
Vec exp_of(Vec x) {
  x = x < -87.0f ? Vec{} - 87.0f : x > 88.0f ? Vec{} + 88.0f : x;
  // Adding and taking away 1.5 * 2^23 rounds to the nearest whole number.
  const Vec n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const Vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec y = Vec{} + 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  return y * (Vec)((__builtin_convertvector(n, IntVec) + 127) << 23);
}

/// log(x) of positive normal numbers, to about 1e-7 absolute or relative, whichever is larger. Polynomial:
/// Cephes, logf.
Vec log_of(Vec x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)): sqrt(1/2) is 0x3f3504f3.
  const IntVec bits = (IntVec)x - 0x3f3504f3;
  const Vec e = __builtin_convertvector(bits >> 23, Vec);
  const Vec m = (Vec)((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  Vec y = Vec{} + 7.0376836292e-2f;
  y = y * m - 1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m - 1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m - 1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m - 2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  const Vec square = m * m;
  y = y * m * square - 2.12194440e-4f * e - 0.5f * square;
  return m + y + 0.693359375f * e;
}

/// Products of kHeight rows with kWidth vectors of columns, their exponentials, and where they go.
void tile(const Products& of, std::size_t row, std::size_t start) {
  Vec sums[kHeight][kWidth] = {};
  for (std::size_t f = 0; f < of.terms; ++f) {
    Vec column[kWidth];
    for (std::size_t w = 0; w < kWidth; ++w)
      column[w] = load(of.columns + f * of.stride + start + w * kLanes);
    for (std::size_t n = 0; n < kHeight; ++n)
      for (std::size_t w = 0; w < kWidth; ++w) sums[n][w] += of.rows[row + n][f] * column[w];
  }
  for (std::size_t n = 0; n < kHeight; ++n)
    for (std::size_t w = 0; w < kWidth; ++w) {
      const std::size_t at = start + w * kLanes;
      const Vec value = exp_of(-sums[n][w]);
      float* const out = of.out[row + n];
      if (!of.factors[row + n]) {
        store(out + at, value);
        continue;
      }
      const Vec other = value * load(of.factors[row + n] + at);
      float both[2 * kLanes];
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        both[2 * lane] = value[lane], both[2 * lane + 1] = other[lane];
      __builtin_memcpy(out + 2 * at, both, sizeof both);
    }
}

/// Adds values to the sums of the first `inside` features.
void accumulate(float* sums, const std::uint16_t* features, std::uint32_t inside, Vec values) {
  for (std::uint32_t lane = 0; lane < inside; ++lane) sums[features[lane]] += values[lane];
}

std::uint32_t inside(const PairTerms& s, std::uint32_t start) {
  return s.count - start < kLanes ? s.count - start : static_cast<std::uint32_t>(kLanes);
}

}  // namespace

void exponentials(const Products& of) {
  for (std::size_t row = 0; row < kRows; row += kHeight)
    for (std::size_t start = 0; start < of.until; start += kWidth * kLanes) tile(of, row, start);
}

void add_pair(const PairTerms& s) {
  for (std::uint32_t start = 0; start < s.count; start += kLanes) {
    const std::uint16_t* const features = s.features + start;
    Vec sum{}, label{};
    for (std::uint32_t q = 0; q < s.num_legal; ++q) {
      const Vec x = gather(s.cells + static_cast<std::size_t>(s.legal[q]) * s.row, features);
      sum += s.probabilities[q] * x;
      if (q == s.label) label = x;
    }
    accumulate(s.pair, features, inside(s, start), log_of(sum / label));
  }
}

void add_nested(const PairTerms& s) {
  for (std::uint32_t start = 0; start < s.count; start += kLanes) {
    const std::uint16_t* const features = s.features + start;
    Vec none{}, first{}, second{}, label{};
    for (std::uint32_t q = 0; q < s.num_legal; ++q) {
      Vec x, y;
      gather_two(s.cells + static_cast<std::size_t>(s.legal[q]) * s.row, features, x, y);
      none += s.probabilities[q] * x;
      first += s.scaled[q] * x;
      second += s.probabilities[q] * y;
      if (q == s.label) label = x;
    }
    const std::uint32_t n = inside(s, start);
    // The loss without w_i alone is counted for every sample that sets i: exchange it here.
    accumulate(s.pair, features, n, log_of(none / label));
    accumulate(s.first, features, n, log_of(first / (label * s.kept_of_i)));
    accumulate(s.second, features, n, log_of(second / (label * load(s.kept + start))));
  }
}

}  // namespace bothost::fm
