#include "learn/networks/kernels.h"

#ifdef BOTHOST_COMPILES_AVX512
#include <immintrin.h>

namespace bothost::network {
namespace {

#define BOTHOST_BFLOAT16 1
#include "learn/networks/kernels_avx512.h"

bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16");
}

}  // namespace

const Kernels* avx512_bf16() {
  static constexpr Kernels kernels{"avx512_bf16", kLanes,        multiply, nonzeros, gather,
                                   fold,          gather_folded, scatter,  sum_rows, narrow,
                                   log_softmax,   draw,          objective};
  static const bool here = supported();
  return here ? &kernels : nullptr;
}

}  // namespace bothost::network

#else

namespace bothost::network {
const Kernels* avx512_bf16() { return nullptr; }
}  // namespace bothost::network

#endif
