#include "learn/factorization/pair_terms.h"

#include <array>
#include <bit>

namespace bothost::fm {
namespace {

/// Rows, and vectors of columns, whose sums stay in registers.
constexpr std::size_t kHeight = 4, kWidth = 2;
static_assert(kRows % kHeight == 0 && kColumns % (kWidth * kLanes) == 0 && kBlockShift >= kLanes);

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t IntVec __attribute__((vector_size(4 * kLanes)));

Vec load(const float* from) {
  Vec out;
  __builtin_memcpy(&out, from, sizeof out);
  return out;
}

void store(float* to, Vec values) { __builtin_memcpy(to, &values, sizeof values); }

/// For each set of lanes, and each lane, how many lanes of the set come before it.
constexpr auto kBefore = [] {
  std::array<std::array<std::uint8_t, kLanes>, std::size_t{1} << kLanes> out{};
  for (std::size_t set = 0; set < out.size(); ++set)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      out[set][lane] = static_cast<std::uint8_t>(std::popcount(set & ((std::size_t{1} << lane) - 1)));
  return out;
}();

/// The next numbers, one in each lane of a set.
Vec expand(const float* from, std::uint32_t set) {
  typedef std::uint8_t Bytes __attribute__((vector_size(kLanes)));
  Bytes before;
  __builtin_memcpy(&before, kBefore[set].data(), sizeof before);
  return __builtin_shuffle(load(from), __builtin_convertvector(before, IntVec));
}

/// Adds the values of a set of lanes.
void add(float* sums, std::uint32_t set, Vec values) {
  IntVec bits;
  for (std::size_t lane = 0; lane < kLanes; ++lane) bits[lane] = 1 << lane;
  const IntVec inside = (static_cast<std::int32_t>(set) & bits) != 0;
  store(sums, load(sums) + (Vec)((IntVec)values & inside));
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
      store(out + 2 * at, value);
      store(out + 2 * at + kLanes, value * load(of.factors[row + n] + at));
    }
}

/// A block of a sample's features.
struct Block {
  /// Its first rank.
  std::size_t start;
  /// Those that are set.
  std::uint32_t set;
};

Block block(const PairTerms& s, std::uint32_t n) {
  const BlockBits bits = s.blocks[n];
  const std::uint32_t set = bits & ((1u << kBlockShift) - 1);
  return {(bits >> kBlockShift) * kLanes, n + 1 < s.count ? set : s.last};
}

/// Some blocks at once: their sums do not wait for one another.
template <std::uint32_t kCount>
void add_blocks(const PairTerms& s, std::uint32_t n) {
  Block b[kCount];
  Vec sums[kCount] = {};
  for (std::uint32_t m = 0; m < kCount; ++m) b[m] = block(s, n + m);
  for (std::uint32_t q = 0; q < s.num_legal; ++q)
    for (std::uint32_t m = 0; m < kCount; ++m) sums[m] += s.probabilities[q] * load(s.rows[q] + b[m].start);
  for (std::uint32_t m = 0; m < kCount; ++m)
    add(s.pair + b[m].start, b[m].set, log_of(sums[m] / load(s.rows[s.label] + b[m].start)));
}

}  // namespace

void exponentials(const Products& of) {
  for (std::size_t row = 0; row < kRows; row += kHeight)
    for (std::size_t start = 0; start < of.until; start += kWidth * kLanes) tile(of, row, start);
}

void add_pair(const PairTerms& s) {
  std::uint32_t n = 0;
  for (; n + 1 < s.count; n += 2) add_blocks<2>(s, n);
  if (n < s.count) add_blocks<1>(s, n);
}

void add_nested(const PairTerms& s) {
  const float* kept = s.kept;
  for (std::uint32_t n = 0; n < s.count; ++n) {
    const Block b = block(s, n);
    Vec none{}, first{}, second{};
    for (std::uint32_t q = 0; q < s.num_legal; ++q) {
      const float* const cells = s.rows[q] + 2 * b.start;
      const Vec x = load(cells);
      none += s.probabilities[q] * x;
      first += s.scaled[q] * x;
      second += s.probabilities[q] * load(cells + kLanes);
    }
    const Vec label = load(s.rows[s.label] + 2 * b.start);
    // The loss without w_i alone is counted for every sample that sets i: exchange it here.
    add(s.pair + b.start, b.set, log_of(none / label));
    add(s.first + b.start, b.set, log_of(first / (label * s.kept_of_i)));
    add(s.second + b.start, b.set, log_of(second / (label * expand(kept, b.set))));
    kept += std::popcount(b.set);
  }
}

}  // namespace bothost::fm
