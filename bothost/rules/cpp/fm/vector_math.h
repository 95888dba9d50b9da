// exp and log in a form that compilers vectorize. Polynomials: Cephes (S. Moshier), expf and logf.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace bothost::fm {

/// exp(x) to about 2e-7 relative.
inline float exp_of(float x) {
  x = std::clamp(x, -87.0f, 88.0f);
  const float n = std::nearbyint(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  const auto bits = static_cast<std::int32_t>(n) + 127;
  return y * std::bit_cast<float>(bits << 23);
}

/// log(x) of a positive normal number, to about 1e-7 absolute or relative, whichever is larger.
inline float log_of(float x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)): sqrt(1/2) is 0x3f3504f3.
  const auto bits = std::bit_cast<std::int32_t>(x) - 0x3f3504f3;
  const auto e = static_cast<float>(bits >> 23);
  const float m = std::bit_cast<float>((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  float y = 7.0376836292e-2f;
  y = y * m - 1.1514610310e-1f;
  y = y * m + 1.1676998740e-1f;
  y = y * m - 1.2420140846e-1f;
  y = y * m + 1.4249322787e-1f;
  y = y * m - 1.6668057665e-1f;
  y = y * m + 2.0000714765e-1f;
  y = y * m - 2.4999993993e-1f;
  y = y * m + 3.3333331174e-1f;
  const float square = m * m;
  y = y * m * square - 2.12194440e-4f * e - 0.5f * square;
  return m + y + 0.693359375f * e;
}

}  // namespace bothost::fm
