// A set of kernels of AVX-512, once per translation unit that includes it: see kernels_impl.h. Before, the
// unit defines
//   BOTHOST_KERNELS    the name of the function that returns the set
//   BOTHOST_BFLOAT16   1 where `multiply` takes pairs of bfloat16
//   BOTHOST_TILES      1 where AMX computes it
#include "learn/networks/kernels.h"

#ifdef BOTHOST_COMPILES_AVX512
#include <immintrin.h>
#if BOTHOST_TILES
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace bothost::network {
namespace {

constexpr int kLanes = 16, kTileVecs = 4, kGatherVecs = 16;
#include "learn/networks/kernels_impl.h"
#if BOTHOST_TILES
#include "learn/networks/tiles.h"
#endif

bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         (!BOTHOST_BFLOAT16 || __builtin_cpu_supports("avx512bf16"));
}

int nonzeros(const float* x, int n, std::uint16_t* index, float* value) {
  int found = 0;
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int i = 0; i < n; i += 16) {
    const auto inside = static_cast<__mmask16>(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
    const __m512 some = _mm512_maskz_loadu_ps(inside, x + i);
    const __mmask16 kept = _mm512_mask_cmp_ps_mask(inside, some, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    // To a register and then stored whole: a compressing store takes Zen 4 many times as long.
    _mm512_storeu_ps(value + found, _mm512_maskz_compress_ps(kept, some));
    const __m512i where = _mm512_maskz_compress_epi32(kept, _mm512_add_epi32(first, _mm512_set1_epi32(i)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(index + found),
                        _mm512_maskz_cvtepi32_epi16(0xffff, where));
    found += __builtin_popcount(kept);
  }
  return found;
}

}  // namespace

const Kernels* BOTHOST_KERNELS() {
#if BOTHOST_TILES
  static constexpr Kernels kernels = kernels_of("amx_bf16", nonzeros, multiply_in_tiles);
  static const bool here = supported() && tiles_allowed();
#else
  static constexpr Kernels kernels = kernels_of(BOTHOST_BFLOAT16 ? "avx512_bf16" : "avx512", nonzeros);
  static const bool here = supported();
#endif
  return here ? &kernels : nullptr;
}

}  // namespace bothost::network

#else

namespace bothost::network {
const Kernels* BOTHOST_KERNELS() { return nullptr; }
}  // namespace bothost::network

#endif
