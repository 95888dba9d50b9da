#define BOTHOST_KERNELS avx512
#define BOTHOST_BFLOAT16 0
#define BOTHOST_TILES 0
#include "learn/networks/kernels_avx512.h"
