#include "learn/networks/kernels.h"

#ifdef BOTHOST_COMPILES_AVX512
#include <immintrin.h>

namespace bothost::network {
namespace {

#define BOTHOST_BFLOAT16 0
#include "learn/networks/kernels_avx512.h"

}  // namespace

const Kernels* avx512() {
  static constexpr Kernels kernels = kernels_of("avx512", nonzeros);
  static const bool here = supported();
  return here ? &kernels : nullptr;
}

}  // namespace bothost::network

#else

namespace bothost::network {
const Kernels* avx512() { return nullptr; }
}  // namespace bothost::network

#endif
