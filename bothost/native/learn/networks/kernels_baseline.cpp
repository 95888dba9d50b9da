#include "learn/networks/kernels.h"

namespace bothost::network {
namespace {

#ifdef __AVX2__
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kTileVecs = 2, kGatherVecs = 8;
#define BOTHOST_BFLOAT16 0
#include "learn/networks/kernels_impl.h"

int nonzeros(const float* x, int n, std::uint16_t* index, float* value) {
  int found = 0;
  for (int i = 0; i < n; ++i) {
    index[found] = static_cast<std::uint16_t>(i);
    value[found] = x[i];
    found += x[i] != 0.0f;
  }
  return found;
}

}  // namespace

const Kernels& baseline() {
  static constexpr Kernels kernels = kernels_of("baseline", nonzeros);
  return kernels;
}

}  // namespace bothost::network
