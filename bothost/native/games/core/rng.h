// A small, fast, seedable generator whose streams are part of the replay contract.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace bothost {

/// SplitMix64, by which seeds are spread (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
inline std::uint64_t splitmix64(std::uint64_t& s) {
  std::uint64_t z = (s += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// xoshiro256++ 1.0 (Blackman and Vigna, 2019). Equal seeds give equal streams on every machine.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) {
    for (auto& word : s_) word = splitmix64(seed);
  }

  /// Stream `index` of the family `seed`: unrelated to those of other indices and of neighbouring seeds.
  static Rng stream(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t family = splitmix64(seed);
    family ^= splitmix64(index);
    return Rng(family);
  }

  std::uint64_t next() {
    const std::uint64_t result = rotl(s_[0] + s_[3], 23) + s_[0];
    const std::uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = rotl(s_[3], 45);
    return result;
  }

  /// Uniform in [0, n), n >= 1, without modulo bias (Lemire, 2019).
  std::uint32_t below(std::uint32_t n) {
    std::uint64_t m = static_cast<std::uint64_t>(static_cast<std::uint32_t>(next() >> 32)) * n;
    if (auto low = static_cast<std::uint32_t>(m); low < n) {
      const std::uint32_t threshold = static_cast<std::uint32_t>(-n) % n;
      while (low < threshold) {
        m = static_cast<std::uint64_t>(static_cast<std::uint32_t>(next() >> 32)) * n;
        low = static_cast<std::uint32_t>(m);
      }
    }
    return static_cast<std::uint32_t>(m >> 32);
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Two numbers of a standard normal distribution (Box and Muller, 1958).
  std::pair<double, double> normals() {
    const auto above_0 = [this] { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; };
    const double radius = std::sqrt(-2 * std::log(above_0())), angle = 2 * std::numbers::pi * above_0();
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

  /// Fisher-Yates shuffle of [first, last).
  template <class It>
  void shuffle(It first, It last) {
    for (auto n = static_cast<std::uint32_t>(last - first); n > 1; --n)
      std::swap(first[n - 1], first[below(n)]);
  }

 private:
  static std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t s_[4];
};

}  // namespace bothost
