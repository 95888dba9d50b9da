// Dou Dizhu cards: ranks without suits, and multisets of them packed into one word.
//
// Ranks 0..14 are 3 4 5 6 7 8 9 T J Q K A 2, the small joker B and the big joker R. `Cards` holds the count
// of rank r (0..4) in bits 4r .. 4r+3, so that union and difference are one addition or subtraction.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include "core/types.h"

namespace bothost::doudizhu {

using Cards = std::uint64_t;
/// Bit r is set when rank r is meant.
using RankMask = std::uint32_t;

inline constexpr int kRanks = 15;
/// Chains run within 3..A.
inline constexpr int kChainRanks = 12;
inline constexpr int kTwo = 12, kSmallJoker = 13, kBigJoker = 14;
inline constexpr int kSeats = 3;
inline constexpr int kDeckSize = 54, kDealSize = 17, kBottomSize = 3;
inline constexpr std::string_view kRankChars = "3456789TJQKA2BR";
/// Four of each rank, one of each joker.
inline constexpr Cards kDeck = 0x114444444444444ULL;
inline constexpr Cards kRocket = 0x110000000000000ULL;
inline constexpr RankMask kJokers = 3u << kSmallJoker;
inline constexpr RankMask kChainMask = (1u << kChainRanks) - 1;

constexpr Cards card(int rank, int count = 1) { return static_cast<Cards>(count) << (4 * rank); }
constexpr int count_of(Cards c, int rank) { return static_cast<int>(c >> (4 * rank)) & 15; }

/// Number of cards; every count must be below 8.
constexpr int size_of(Cards c) {
  const Cards pairs = (c & 0x0f0f0f0f0f0f0f0fULL) + ((c >> 4) & 0x0f0f0f0f0f0f0f0fULL);
  return static_cast<int>((pairs * 0x0101010101010101ULL) >> 56);
}

/// Whether `part` lies within `whole`; counts must be below 8.
constexpr bool contains(Cards whole, Cards part) {
  constexpr Cards kHigh = 0x888888888888888ULL;
  return (((whole | kHigh) - part) & kHigh) == kHigh;
}

/// Rank by rank max(a - b, 0); counts must be below 8.
constexpr Cards minus(Cards a, Cards b) {
  constexpr Cards kHigh = 0x888888888888888ULL;
  const Cards d = (a | kHigh) - b;            // bit 3 of a nibble survives where a >= b
  const Cards keep = ((d & kHigh) >> 3) * 7;  // 0111 where a >= b
  return d & keep;
}

/// One bit per nibble (bit 0 of each) squeezed together.
inline RankMask squeeze(Cards x) {
#ifdef __BMI2__
  return static_cast<RankMask>(_pext_u64(x, 0x111111111111111ULL));
#else
  x &= 0x111111111111111ULL;
  x = (x | (x >> 3)) & 0x0303030303030303ULL;
  x = (x | (x >> 6)) & 0x000f000f000f000fULL;
  x = (x | (x >> 12)) & 0x000000ff000000ffULL;
  return static_cast<RankMask>((x | (x >> 24)) & 0xffff);
#endif
}

/// The ranks of which at least 1, 2, 3 and 4 cards are held.
struct Ranks {
  RankMask one, two, three, four;
  Ranks(RankMask a, RankMask b, RankMask c, RankMask d) : one(a), two(b), three(c), four(d) {}
  explicit Ranks(Cards c)
      : Ranks(squeeze(c | c >> 1 | c >> 2), squeeze(c >> 1 | c >> 2), squeeze((c & c >> 1) | c >> 2),
              squeeze(c >> 2)) {}
  /// Those among these ranks.
  Ranks within(RankMask m) const { return {one & m, two & m, three & m, four & m}; }
};

/// Writes the cards one by one, lowest rank first. Returns how many.
inline int spread(Cards c, std::uint8_t* out) {
  int n = 0;
  for (int r = 0; r < kRanks; ++r)
    for (int i = count_of(c, r); i > 0; --i) out[n++] = static_cast<std::uint8_t>(r);
  return n;
}

inline std::string to_text(Cards c) {
  std::string out;
  for (int r = 0; r < kRanks; ++r) out.append(at(count_of(c, r)), kRankChars[at(r)]);
  return out;
}

/// Cards in any order. Throws InvalidInput on an unknown character or more of a rank than the deck holds.
inline Cards cards_from_text(std::string_view text) {
  Cards out = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto r = kRankChars.find(text[i]);
    if (r == std::string_view::npos) {
      const std::string wrong(first_characters(text.substr(i), 1));
      throw InvalidInput("'" + wrong + "' is not a rank of 3456789TJQKA2BR");
    }
    out += card(static_cast<int>(r));
    if (!contains(kDeck, out)) reject(text, std::string("holds too many of '") + text[i] + "'");
  }
  return out;
}

/// As cards_from_text, of at most 20 cards.
inline Cards hand_from_text(std::string_view text) {
  const Cards out = cards_from_text(text);
  if (size_of(out) > kDealSize + kBottomSize) throw InvalidInput("a hand has at most 20 cards");
  return out;
}

/// Throws InvalidInput unless every count lies within the deck's.
inline Cards checked(Cards c) {
  for (int r = 0; r < 16; ++r)
    if (static_cast<int>(c >> (4 * r) & 15) > (r < kRanks ? count_of(kDeck, r) : 0))
      throw InvalidInput("not a part of the deck");
  return c;
}

}  // namespace bothost::doudizhu
