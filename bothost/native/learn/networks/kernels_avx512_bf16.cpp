#include "learn/networks/kernels.h"

#ifdef BOTHOST_COMPILES_AVX512
#include <immintrin.h>

namespace bothost::network {
namespace {

#define BOTHOST_BFLOAT16 1
#include "learn/networks/kernels_avx512.h"

}  // namespace

const Kernels* avx512_bf16() {
  static constexpr Kernels kernels = kernels_of("avx512_bf16", nonzeros);
  static const bool here = supported() && __builtin_cpu_supports("avx512bf16");
  return here ? &kernels : nullptr;
}

}  // namespace bothost::network

#else

namespace bothost::network {
const Kernels* avx512_bf16() { return nullptr; }
}  // namespace bothost::network

#endif
