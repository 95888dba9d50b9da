#define BOTHOST_KERNELS avx512_bf16
#define BOTHOST_BFLOAT16 1
#define BOTHOST_TILES 0
#include "learn/networks/kernels_avx512.h"
