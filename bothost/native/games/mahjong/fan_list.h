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
  static constexpr FanSet all() { return FanSet(~Bits{0}); }
  constexpr void insert(Fan f) { bits_ |= Bits{1} << static_cast<int>(f); }
  constexpr void insert(const FanSet& o) { bits_ |= o.bits_; }
  constexpr void erase(const FanSet& o) { bits_ &= ~o.bits_; }
  constexpr bool contains(Fan f) const { return (bits_ >> static_cast<int>(f) & 1) != 0; }
  friend constexpr FanSet operator&(FanSet a, FanSet b) { return FanSet(a.bits_ & b.bits_); }
  friend constexpr bool operator==(const FanSet&, const FanSet&) = default;
  /// Points of the fans, each once.
  int points() const;
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t w = 0; w < 2; ++w)
      for (auto bits = word(w); bits; bits &= bits - 1) visit(64 * w + at(std::countr_zero(bits)));
  }

 private:
  __extension__ using Bits = unsigned __int128;
  constexpr explicit FanSet(Bits bits) : bits_(bits) {}
  constexpr std::uint64_t word(std::size_t w) const { return static_cast<std::uint64_t>(bits_ >> 64 * w); }

  Bits bits_ = 0;
};

/// The fans that a result counts.
inline FanSet fans_of(const FanResult& result) {
  FanSet fans;
  for (std::size_t f = 0; f < kFans; ++f)
    if (result.times[f]) fans.insert(static_cast<Fan>(f));
  return fans;
}

/// What a fan implies is not scored beside it (the non-repeat rule), fan by fan as the rule book lists it.
/// Where only some instances are implied (pungs of winds within little four winds) the counting code leaves
/// them out itself.
extern const std::array<FanSet, kFans> kImplied;
/// The fans that imply others.
extern const FanSet kImplying;

/// Stands for "no fan" where fans are compared: it is later in the list than all that can be meant.
inline constexpr Fan kNoFan = Fan::flower_tiles;

/// The fan of two or of three chows, kNoFan where they have none. A chow is suit * 7 + 0-based rank of its
/// lowest tile.
Fan two_chows(int a, int b);
Fan three_chows(int a, int b, int c);
/// The fan of three pungs of number tiles.
Fan three_pungs(int a, int b, int c);

inline int points_of(Fan f) { return kFanInfo[at(f)].points; }

inline int FanSet::points() const {
  // The second word begins with five fans of two points each. The others of it count one point.
  static_assert(static_cast<int>(Fan::tile_hog) == 64 && static_cast<int>(Fan::all_simples) == 68);
  int sum = std::popcount(word(1)) + std::popcount(word(1) & 0b11111);
  for (auto bits = word(0); bits; bits &= bits - 1) sum += kFanInfo[at(std::countr_zero(bits))].points;
  return sum;
}

/// The fans that may count more than once: tile hog to pung of terminals or honours, in the order of the
/// list.
inline constexpr Fan kFirstRepeated = Fan::tile_hog, kLastRepeated = Fan::pung_of_terminals_or_honors;

/// The fans of one reading of a hand, before and after exclusion.
class Tally {
 public:
  Tally() = default;
  explicit Tally(const FanSet& fans) : present_(fans) {}
  void add(Fan f) { present_.insert(f); }
  void add(const FanSet& fans) { present_.insert(fans); }
  /// A fan that may count more than once.
  void add(Fan f, int times) {
    if (times == 0) return;
    present_.insert(f);
    repeats_ += static_cast<std::uint64_t>(times - 1) << shift(f);
  }
  void add(const Tally& other) {
    present_.insert(other.present_);
    repeats_ += other.repeats_;
  }
  bool has(Fan f) const { return present_.contains(f); }
  bool operator==(const Tally&) const = default;

  /// Takes out what others imply. Returns the fans that are left.
  const FanSet& counted() {
    FanSet implied;
    (present_ & kImplying).each([&](std::size_t f) { implied.insert(kImplied[f]); });
    present_.erase(implied);
    return present_;
  }
  /// Of the counted fans.
  int points() const {
    int sum = present_.points();
    if (repeats_) present_.each([&](std::size_t f) { sum += (times(f) - 1) * kFanInfo[f].points; });
    return sum;
  }

  FanResult result(int flowers) {
    counted();
    FanResult r;
    present_.each([&](std::size_t f) { r.times[f] = static_cast<std::uint8_t>(times(f)); });
    r.points = points();
    if (r.points == 0) {
      r.times[at(Fan::chicken_hand)] = 1;
      r.points = points_of(Fan::chicken_hand);
    }
    r.times[at(Fan::flower_tiles)] = static_cast<std::uint8_t>(flowers);
    r.total = r.points + flowers;
    return r;
  }

 private:
  static constexpr int shift(Fan f) { return 4 * (static_cast<int>(f) - static_cast<int>(kFirstRepeated)); }
  int times(std::size_t fan) const {
    const auto f = static_cast<Fan>(fan);
    return f < kFirstRepeated || f > kLastRepeated ? 1 : 1 + static_cast<int>(repeats_ >> shift(f) & 15);
  }

  FanSet present_;
  /// How often each fan counts beyond the first time, four bits each.
  std::uint64_t repeats_ = 0;
};

}  // namespace bothost::mahjong
