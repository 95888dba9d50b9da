// Included by one translation unit per instruction set, within a namespace without a name, after it has
// defined
//   kLanes                   floats in a vector
//   kTileVecs, kGatherVecs   vectors of sums that stay in registers, in a tile's row and in a sum of rows
//   BOTHOST_BFLOAT16         1 where `multiply` takes pairs of bfloat16
// No includes here: see kernels.h.

using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));
using Int = std::int32_t __attribute__((vector_size(kLanes * sizeof(float))));
/// In memory: anywhere, and of any type.
using Float = float __attribute__((may_alias));
using Unaligned = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
using Halves = std::uint16_t __attribute__((vector_size(kLanes * sizeof(std::uint16_t))));

inline Vec load(const void* at) { return *static_cast<const Unaligned*>(at); }
inline void store(void* at, Vec v) { *static_cast<Unaligned*>(at) = v; }
/// Minus 0, which leaves every x as it is: 0 + x would be an addition, as it makes 0 of -0.
inline Vec all(float x) { return x - Vec{}; }

#if BOTHOST_BFLOAT16
struct Multiply {
  using Sum = __m512;  // with Vec here, the compiler would keep the sums in memory
  using Operand = __m512bh;
  static Operand left(const std::uint32_t* at) { return (__m512bh)_mm512_set1_epi32(static_cast<int>(*at)); }
  static Operand right(const std::uint32_t* at) { return (__m512bh)_mm512_loadu_si512(at); }
  static Sum add(Sum sum, Operand l, Operand r) { return _mm512_dpbf16_ps(sum, l, r); }
};
#else
struct Multiply {
  using Sum = Vec;
  using Operand = Vec;
  static Operand left(const std::uint32_t* at) { return all(*reinterpret_cast<const Float*>(at)); }
  static Operand right(const std::uint32_t* at) { return load(at); }
  static Sum add(Sum sum, Operand l, Operand r) { return sum + l * r; }
};
#endif

/// A tile of C that stays in registers.
template <int kRows, int kVecs>
void tile(const Product& p, int row, int column) {
  typename Multiply::Sum sums[kRows][kVecs];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVecs; ++j) {
      const float* from = p.bias  ? p.bias + column + j * kLanes
                          : p.add ? p.c + (row + i) * p.c_row + column + j * kLanes
                                  : nullptr;
      sums[i][j] = typename Multiply::Sum(from ? load(from) : Vec{});
    }
  const std::uint32_t* a = p.a + row * p.a_row;
  const std::uint32_t* b = p.b + column;
  for (int k = 0; k < p.terms; ++k, a += p.a_term, b += p.b_term) {
    typename Multiply::Operand right[kVecs];
    for (int j = 0; j < kVecs; ++j) right[j] = Multiply::right(b + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const auto left = Multiply::left(a + i * p.a_row);
      for (int j = 0; j < kVecs; ++j) sums[i][j] = Multiply::add(sums[i][j], left, right[j]);
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVecs; ++j) {
      const std::ptrdiff_t at = (row + i) * p.c_row + column + j * kLanes;
      Vec sum = Vec(sums[i][j]);
      if (p.rectify) sum = sum > 0.0f ? sum : Vec{};
      if (p.gate) sum = load(p.gate + at) > 0.0f ? sum : Vec{};
      store(p.c + at, sum);
    }
}

template <int kVecs>
void rows_of_tiles(const Product& p, int column) {
  int row = 0;
  for (; row + 6 <= p.rows; row += 6) tile<6, kVecs>(p, row, column);
  switch (p.rows - row) {
    case 1: return tile<1, kVecs>(p, row, column);
    case 2: return tile<2, kVecs>(p, row, column);
    case 3: return tile<3, kVecs>(p, row, column);
    case 4: return tile<4, kVecs>(p, row, column);
    case 5: return tile<5, kVecs>(p, row, column);
    default: return;
  }
}

/// Terms at a time: what all rows need of B stays in the first-level cache.
constexpr int kTermBlock = 64;

template <int kVecs>
void column_of_tiles(const Product& whole, int column) {
  Product part = whole;
  for (int begin = 0; begin < whole.terms; begin += kTermBlock) {
    const bool last = whole.terms - begin <= kTermBlock;
    part.terms = last ? whole.terms - begin : kTermBlock;
    part.rectify = last && whole.rectify;
    part.gate = last ? whole.gate : nullptr;
    rows_of_tiles<kVecs>(part, column);
    part.a += kTermBlock * whole.a_term;
    part.b += kTermBlock * whole.b_term;
    part.bias = nullptr;
    part.add = true;
  }
}

void multiply(const Product& p) {
  int column = 0;
  for (; column + kTileVecs * kLanes <= p.columns; column += kTileVecs * kLanes)
    column_of_tiles<kTileVecs>(p, column);
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes) column_of_tiles<2>(p, column);
  for (; column + kLanes <= p.columns; column += kLanes) column_of_tiles<1>(p, column);
}

/// out += (or =) sum of value[k] * table[index[k]], kVecs vectors at a time.
template <int kVecs>
void weighted_sum(const std::uint16_t* index, const float* value, int n, const float* table,
                  std::ptrdiff_t stride, const float* begin, float* out, bool rectify) {
  Vec sums[kVecs];
  for (int j = 0; j < kVecs; ++j) sums[j] = load(begin + j * kLanes);
  for (int k = 0; k < n; ++k) {
    const float* row = table + index[k] * stride;
    const Vec weight = all(value[k]);
    for (int j = 0; j < kVecs; ++j) sums[j] += weight * load(row + j * kLanes);
  }
  for (int j = 0; j < kVecs; ++j)
    store(out + j * kLanes, rectify ? (sums[j] > 0.0f ? sums[j] : Vec{}) : sums[j]);
}

template <int kVecs>
void weighted_sums(const std::uint16_t* index, const float* value, int n, const float* table,
                   std::ptrdiff_t stride, const float* begin, float* out, int columns, bool rectify) {
  int column = 0;
  for (; column + kVecs * kLanes <= columns; column += kVecs * kLanes)
    weighted_sum<kVecs>(index, value, n, table + column, stride, begin + column, out + column, rectify);
  for (; column + kLanes <= columns; column += kLanes)
    weighted_sum<1>(index, value, n, table + column, stride, begin + column, out + column, rectify);
}

void gather(const std::uint16_t* index, const float* value, int n, const float* weights,
            std::ptrdiff_t stride, const float* bias, float* out, int columns) {
  weighted_sums<kGatherVecs>(index, value, n, weights, stride, bias, out, columns, true);
}

/// bfloat16 in the low halves, rounded to nearest, ties to even.
inline Int rounded(Vec x) {
  Int bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16 & 0xffff;
}

void fold(const float* row, int columns, std::uint32_t* out) {
  for (int column = 0; column < columns; column += 2 * kLanes, out += kLanes) {
    const Int pair = rounded(load(row + column)) | rounded(load(row + column + kLanes)) << 16;
    __builtin_memcpy(out, &pair, sizeof pair);
  }
}

template <int kFolded>
void folded_sum(const std::uint16_t* index, const float* value, int n, const std::uint32_t* table,
                std::ptrdiff_t stride, const float* bias, float* out) {
  Vec low[kFolded], high[kFolded];
  for (int j = 0; j < kFolded; ++j) {
    low[j] = load(bias + 2 * j * kLanes);
    high[j] = load(bias + (2 * j + 1) * kLanes);
  }
  for (int k = 0; k < n; ++k) {
    const std::uint32_t* row = table + index[k] * stride;
    const Vec weight = all(value[k]);
    for (int j = 0; j < kFolded; ++j) {
      Int folded;
      __builtin_memcpy(&folded, row + j * kLanes, sizeof folded);
      low[j] += weight * Vec(folded << 16);
      high[j] += weight * Vec(folded & static_cast<std::int32_t>(0xffff0000u));
    }
  }
  for (int j = 0; j < kFolded; ++j) {
    store(out + 2 * j * kLanes, low[j] > 0.0f ? low[j] : Vec{});
    store(out + (2 * j + 1) * kLanes, high[j] > 0.0f ? high[j] : Vec{});
  }
}

void gather_folded(const std::uint16_t* index, const float* value, int n, const std::uint32_t* weights,
                   std::ptrdiff_t stride, const float* bias, float* out, int columns) {
  constexpr int kFolded = kGatherVecs / 2;
  int column = 0;
  for (; column + 2 * kFolded * kLanes <= columns; column += 2 * kFolded * kLanes)
    folded_sum<kFolded>(index, value, n, weights + column / 2, stride, bias + column, out + column);
  for (; column < columns; column += 2 * kLanes)
    folded_sum<1>(index, value, n, weights + column / 2, stride, bias + column, out + column);
}

void scatter(const std::uint16_t* index, const float* value, int n, const float* rows, std::ptrdiff_t stride,
             float* out, int columns) {
  weighted_sums<kTileVecs>(index, value, n, rows, stride, out, out, columns, false);
}

void sum_rows(const float* rows, std::ptrdiff_t stride, int n, float* out, int columns) {
  for (int column = 0; column < columns; column += kLanes) {
    Vec sum = load(out + column);
    for (int i = 0; i < n; ++i) sum += load(rows + i * stride + column);
    store(out + column, sum);
  }
}

void narrow(const float* rows, std::ptrdiff_t stride, int n, int columns, std::uint16_t* narrowed,
            std::uint32_t* pairs, std::ptrdiff_t out_stride) {
  for (int i = 0; i < n; i += 2) {
    const bool alone = i + 1 == n;
    for (int column = 0; column < columns; column += kLanes) {
      const Int even = rounded(load(rows + i * stride + column));
      const Int odd = alone ? Int{} : rounded(load(rows + (i + 1) * stride + column));
      const Int pair = even | odd << 16;
      __builtin_memcpy(pairs + i / 2 * out_stride + column, &pair, sizeof pair);
      const Halves low = __builtin_convertvector(even, Halves), high = __builtin_convertvector(odd, Halves);
      __builtin_memcpy(narrowed + i * out_stride + column, &low, sizeof low);
      if (!alone) __builtin_memcpy(narrowed + (i + 1) * out_stride + column, &high, sizeof high);
    }
  }
}

/// e^x for x <= 0 within 2 units of the last place; 0 below -87.
/// Source of the reduction and the polynomial: S. Moshier, Cephes, expf.
Vec exponential(Vec x) {
  const Vec low = all(-87.0f);
  const Int tiny = x < low;
  x = tiny ? low : x;
  const Vec scaled =
      x * 1.44269504088896341f - 0.5f;  // truncation towards 0 of a negative number rounds to nearest
  const Int n = __builtin_convertvector(scaled, Int);
  const Vec whole = __builtin_convertvector(n, Vec);
  x = x - whole * 0.693359375f + whole * 2.12194440e-4f;
  Vec y = x * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * x + 8.3334519073e-3f;
  y = y * x + 4.1665795894e-2f;
  y = y * x + 1.6666665459e-1f;
  y = y * x + 5.0000001201e-1f;
  y = y * x * x + x + 1.0f;
  const Int power = (n + 127) << 23;
  Vec factor;
  __builtin_memcpy(&factor, &power, sizeof factor);
  return tiny ? Vec{} : y * factor;
}

float total(Vec v) {
  float sum = 0.0f;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

constexpr float kIllegal = -1e9f;

void log_softmax(const float* logits, const bool* legal, int actions, float* log_probs) {
  float top = kIllegal;
  for (int i = 0; i < actions; ++i) {
    log_probs[i] = legal[i] ? logits[i] : kIllegal;
    top = log_probs[i] > top ? log_probs[i] : top;
  }
  const int padded = (actions + kLanes - 1) / kLanes * kLanes;
  for (int i = actions; i < padded; ++i) log_probs[i] = kIllegal;
  Vec sums{};
  for (int i = 0; i < padded; i += kLanes) sums += exponential(load(log_probs + i) - top);
  const float shift = top + __builtin_logf(total(sums));
  for (int i = 0; i < padded; i += kLanes) store(log_probs + i, load(log_probs + i) - shift);
}

int draw(const float* logits, const bool* legal, int actions, float uniform, float* log_probs) {
  float reached[kMostActions + kLanes];
  log_softmax(logits, legal, actions, log_probs);
  for (int i = 0; i < actions; i += kLanes) store(reached + i, exponential(load(log_probs + i)));
  for (int i = 1; i < actions; ++i) reached[i] += reached[i - 1];
  const float passed = uniform * reached[actions - 1];
  for (int i = 0; i < actions; ++i)
    if (reached[i] > passed && legal[i]) return i;
  for (int i = actions - 1; i > 0; --i)  // numbers so near 1 that rounding reaches it
    if (legal[i]) return i;
  return 0;
}

Terms objective(float* outputs, int actions, const Sample& sample, const Objective& o, float weight) {
  float log_probs[kMostActions + kLanes], probs[kMostActions + kLanes];
  log_softmax(outputs, sample.legal, actions, log_probs);
  Vec sums{};
  for (int i = 0; i < actions; i += kLanes) {
    const Vec p = exponential(load(log_probs + i));
    store(probs + i, p);
    sums -= p * load(log_probs + i);
  }
  const float entropy = total(sums);

  const float log_ratio = log_probs[sample.action] - sample.log_prob;
  const float ratio = __builtin_expf(log_ratio);
  const float low = 1.0f - o.clip, high = 1.0f + o.clip;
  const float bounded = ratio < low ? low : ratio > high ? high : ratio;
  const float plain = ratio * sample.advantage, clipped = bounded * sample.advantage;
  const float kl = ratio - 1.0f - log_ratio;
  // of the log-probability of the action: the clipped branch of the minimum is constant
  const float slope = (plain <= clipped ? -plain : 0.0f) + o.kl_coef * (ratio - 1.0f);
  for (int i = 0; i < actions; ++i)
    outputs[i] = weight * probs[i] * (o.entropy_coef * (log_probs[i] + entropy) - slope);
  outputs[sample.action] += weight * slope;

  const float error = outputs[actions] - sample.target;
  outputs[actions] = weight * o.value_coef * error;
  const float moved = ratio - 1.0f;
  return {plain < clipped ? -plain : -clipped, 0.5f * error * error, entropy, kl,
          moved > o.clip || -moved > o.clip ? 1.0f : 0.0f};
}

constexpr Kernels kernels_of(const char* name, decltype(Kernels::nonzeros) nonzeros,
                             decltype(Kernels::multiply) product = multiply) {
  return {name,    product,  nonzeros, gather,      fold, gather_folded,
          scatter, sum_rows, narrow,   log_softmax, draw, objective};
}
