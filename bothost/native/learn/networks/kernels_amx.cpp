#define BOTHOST_KERNELS amx_bf16
#define BOTHOST_BFLOAT16 1
#define BOTHOST_TILES 1
#ifndef BOTHOST_COMPILES_AMX
#undef BOTHOST_COMPILES_AVX512
#endif
#include "learn/networks/kernels_avx512.h"
