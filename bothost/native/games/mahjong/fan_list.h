// The list of fans as the calculation needs it: what excludes what, fans of chows, and the sum of one
// reading.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>

#include "mahjong/fan.h"

namespace bothost::mahjong {

/// A set of fans.
class FanSet {
 public:
  constexpr FanSet() = default;
  constexpr FanSet(std::initializer_list<Fan> fans) {
    for (const auto f : fans) insert(f);
  }
  constexpr void insert(Fan f) { word_[at(f) / 64] |= std::uint64_t{1} << at(f) % 64; }
  constexpr bool contains(Fan f) const { return word_[at(f) / 64] >> at(f) % 64 & 1; }
  constexpr void insert(const FanSet& o) { word_[0] |= o.word_[0], word_[1] |= o.word_[1]; }
  constexpr void erase(const FanSet& o) { word_[0] &= ~o.word_[0], word_[1] &= ~o.word_[1]; }
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t w = 0; w < 2; ++w)
      for (auto bits = word_[w]; bits; bits &= bits - 1)
        visit(64 * w + static_cast<std::size_t>(std::countr_zero(bits)));
  }

 private:
  static constexpr std::size_t at(Fan f) { return static_cast<std::size_t>(f); }
  std::uint64_t word_[2] = {};
};

/// What a fan implies is not scored beside it (the non-repeat rule), fan by fan as the rule book lists it.
/// Where only some instances are implied (pungs of winds within little four winds) the counting code leaves
/// them out itself.
extern const std::array<FanSet, kFans> kImplied;

/// Stands for "no fan" where fans are compared: it is later in the list than all that can be meant.
inline constexpr Fan kNoFan = Fan::flower_tiles;

/// The fan of two or of three chows, kNoFan where they have none. A chow is suit * 7 + 0-based rank of its
/// lowest tile.
Fan two_chows(int a, int b);
Fan three_chows(int a, int b, int c);
/// The fan of three pungs of number tiles.
Fan three_pungs(int a, int b, int c);

inline int points_of(Fan f) { return kFanInfo[static_cast<std::size_t>(f)].points; }

/// The fans of one reading of a hand, before and after exclusion.
class Tally {
 public:
  void add(Fan f, int times = 1) {
    if (times == 0) return;
    present_.insert(f);
    times_[static_cast<std::size_t>(f)] =
        static_cast<std::uint8_t>(times_[static_cast<std::size_t>(f)] + times);
  }
  bool has(Fan f) const { return present_.contains(f); }

  /// The fans that are left when what others imply is taken out.
  const FanSet& counted() {
    FanSet implied;
    present_.each([&](std::size_t f) { implied.insert(kImplied[f]); });
    present_.erase(implied);
    return present_;
  }
  int points() const {
    int sum = 0;
    present_.each([&](std::size_t f) { sum += times_[f] * kFanInfo[f].points; });
    return sum;
  }

  FanResult result(int flowers) {
    counted();
    FanResult r;
    present_.each([&](std::size_t f) {
      r.times[f] = times_[f];
      r.points += times_[f] * kFanInfo[f].points;
    });
    if (r.points == 0) {
      r.times[static_cast<std::size_t>(Fan::chicken_hand)] = 1;
      r.points = points_of(Fan::chicken_hand);
    }
    r.times[static_cast<std::size_t>(Fan::flower_tiles)] = static_cast<std::uint8_t>(flowers);
    r.total = r.points + flowers;
    return r;
  }

 private:
  FanSet present_;
  std::array<std::uint8_t, kFans> times_{};
};

}  // namespace bothost::mahjong
