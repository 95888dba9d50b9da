#include "learn/networks/kernels.h"

#ifdef BOTHOST_COMPILES_AVX512
#include <immintrin.h>

namespace bothost::network {
namespace {

#define BOTHOST_BFLOAT16 0
#include "learn/networks/kernels_avx512.h"

bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

const Kernels* avx512() {
  static constexpr Kernels kernels{"avx512", kLanes,   multiply, nonzeros,    gather, fold,     gather_folded,
                                   scatter,  sum_rows, narrow,   log_softmax, draw,   objective};
  static const bool here = supported();
  return here ? &kernels : nullptr;
}

}  // namespace bothost::network

#else

namespace bothost::network {
const Kernels* avx512() { return nullptr; }
}  // namespace bothost::network

#endif
