#include "mahjong/patterns.h"

#include <algorithm>
#include <stdexcept>

#include "mahjong/shape.h"

namespace bothost::mahjong {
namespace {

std::size_t chow(int suit, int low) { return at(suit * 7 + low); }
std::size_t pung(int suit, int rank) { return at(21 + 9 * suit + rank); }

}  // namespace

const Patterns& Patterns::get() {
  static const Patterns patterns;
  return patterns;
}

template <class Allows, class AllowsPair>
void Patterns::add(int free, Allows allows, AllowsPair allows_pair) {
  if (size_ == PatternSet::kMost) throw std::logic_error("more patterns than a PatternSet holds");
  start_.free[at(free)].insert(size_);
  for (std::size_t s = 0; s < kSets; ++s)
    if (allows(s)) {
      in_[s].insert(size_);
      sets_[size_] |= std::uint64_t{1} << s;
    }
  for (int t = 0; t < kKinds; ++t)
    if (allows_pair(t)) pairs_[size_] |= std::uint64_t{1} << t;
  if (std::popcount(pairs_[size_]) == kKinds) any_pair_.insert(size_);
  ++size_;
}

void Patterns::add_core(std::initializer_list<std::size_t> core, int free) {
  add(
      free, [&](std::size_t s) { return std::ranges::find(core, s) != core.end(); },
      [](int) { return true; });
}

Patterns::Patterns() {
  for (std::size_t s = 0; s < kSets; ++s) type_[s] = static_cast<std::uint8_t>(1U << type_of(set_at(s).tile));
  const auto every = [](auto) { return true; };
  add(0, every, every);  // kAny
  add(0, every, every);  // kAllTypes; `nearest` sees to the types
  add_kinds();
  add_chows();
  add_pungs();
  PatternSet all;
  all.word = ~all.word;
  not_any_ = not_all_types_ = all;
  not_any_.erase(kAny);
  any_pair_.erase(kAny);
  not_all_types_.erase(kAllTypes);
  cores_ = not_any_ & not_all_types_;
  for (std::size_t types = 0; types < sets_of_types_.size(); ++types)
    for (std::size_t s = 0; s < kSets; ++s)
      if (types & type_[s]) sets_of_types_[types] |= std::uint64_t{1} << s;
}

void Patterns::add_chows() {
  for (int low = 0; low < 7; ++low) add_core({chow(0, low), chow(1, low), chow(2, low)}, 1);
  for (const auto& o : kSuitOrders) {
    add_core({chow(o[0], 0), chow(o[1], 3), chow(o[2], 6)}, 1);
    for (int low = 0; low < 5; ++low)
      add_core({chow(o[0], low), chow(o[1], low + 1), chow(o[2], low + 2)}, 1);
  }
  for (int suit = 0; suit < 3; ++suit) {
    for (int step = 1; step <= 3; ++step)  // by three: the pure straight
      for (int low = 0; low + 2 * step < 7; ++low)
        add_core({chow(suit, low), chow(suit, low + step), chow(suit, low + 2 * step)}, 1);
    for (int low = 0; low < 7; ++low) add_core({chow(suit, low)}, 1);  // the pure triple chow
  }
}

void Patterns::add_pungs() {
  for (int rank = 0; rank < 9; ++rank) add_core({pung(0, rank), pung(1, rank), pung(2, rank)}, 1);
  for (int rank = 0; rank < 7; ++rank) {
    for (const auto& o : kSuitOrders)
      add_core({pung(o[0], rank), pung(o[1], rank + 1), pung(o[2], rank + 2)}, 1);
    for (int suit = 0; suit < 3; ++suit)
      add_core({pung(suit, rank), pung(suit, rank + 1), pung(suit, rank + 2)}, 1);
  }
  const auto wind = [](int t) { return at(21 + kWindEast + t); };
  add_core({wind(0), wind(1), wind(2), wind(3)}, 1);
  const auto dragon = [](int t) { return at(21 + kDragonRed + t); };
  add_core({dragon(0), dragon(1), dragon(2)}, 2);
}

void Patterns::add_kinds() {
  const auto within = [this](TileMask kinds) {
    add(
        0, [kinds](std::size_t s) { return (tiles_of(set_at(s)) & ~kinds) == 0; },
        [kinds](int t) { return (kinds >> t & 1) != 0; });
  };
  for (int suit = 0; suit < 3; ++suit) within(TileMask{0x1ff} << 9 * suit | kHonourMask);  // the flushes
  within(ranks(0x1e0));                                                                    // upper four
  within(ranks(0x00f));                                                                    // lower four
  within(ranks(0x038));                                                                    // middle tiles
  within(kReversible);
  add(0, [](std::size_t s) { return s >= 21; }, [](int) { return true; });  // all pungs
  const TileMask outer = ranks(0x101) | kHonourMask;
  add(
      0, [outer](std::size_t s) { return (tiles_of(set_at(s)) & outer) != 0; },
      [outer](int t) { return (outer >> t & 1) != 0; });  // outside hand
  add(
      0, [](std::size_t s) { return (tiles_of(set_at(s)) & ranks(0x010)) != 0; },
      [](int t) { return (ranks(0x010) >> t & 1) != 0; });  // all five
}

}  // namespace bothost::mahjong
