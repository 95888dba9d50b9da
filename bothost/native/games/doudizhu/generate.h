// All legal plays of a hand, materialised as ids in ascending order.
//
// A hand becomes four rank masks (at least 1, 2, 3, 4 held). Simple moves are runs of bits; chains are found
// by and-ing a mask with its shifts; kickers are walked as bits of the masks, and their colexicographic
// index, kept as a running offset, reads the id from the universe's table. Nothing is allocated.
#pragma once
#include <algorithm>

#include "doudizhu/moves.h"

namespace bothost::doudizhu {

/// Room for every id there is: a generator writes distinct ids only.
inline constexpr std::size_t kMoveRoom = 1u << 16;

namespace detail {

template <class F>
inline void each_bit(RankMask mask, F&& f) {
  for (; mask; mask &= mask - 1) f(std::countr_zero(mask));
}

/// Ranks at which a run of `length` set bits starts.
inline RankMask runs(RankMask mask, int length) {
  RankMask out = mask;
  for (int i = 1; i < length; ++i) out &= mask >> i;
  return out;
}

/// Multisets of N kickers, the largest rank outermost. `ids` is offset by the ranks already chosen.
template <int N>
inline Action* solo_kickers(const Ranks& k, const Id16* ids, Action* out) {
  if constexpr (N == 0) {
    *out++ = *ids;
  } else if constexpr (N == 1) {
    for (RankMask m = k.one; m; m &= m - 1) *out++ = ids[std::countr_zero(m)];
  } else {
    constexpr auto& w = kWeights.solo;
    for (RankMask m = k.one; m; m &= m - 1) {
      const int r = std::countr_zero(m);
      const auto x = at(r);
      const Ranks lower = k.within((1u << r) - 1);
      const Id16* p = ids + w[N][x];
      out = solo_kickers<N - 1>(lower, p, out);
      if (k.two >> r & 1) {
        p += w[N - 1][x];
        out = solo_kickers<N - 2>(lower, p, out);
        if constexpr (N >= 3)
          if (k.three >> r & 1) {
            p += w[N - 2][x];
            out = solo_kickers<N - 3>(lower, p, out);
            if constexpr (N >= 4)
              if (k.four >> r & 1) out = solo_kickers<N - 4>(lower, p + w[N - 3][x], out);
          }
      }
    }
  }
  return out;
}

/// As solo_kickers at the outermost level, without both jokers together.
template <int N>
inline Action* solo_kickers_no_rocket(Ranks k, const Id16* ids, Action* out) {
  if ((k.one & kJokers) != kJokers) return solo_kickers<N>(k, ids, out);
  const RankMask big = 1u << kBigJoker;
  k.one ^= big;
  out = solo_kickers<N>(k, ids, out);
  k.one &= ~kJokers;
  return solo_kickers<N - 1>(k, ids + kWeights.solo[N][kBigJoker], out);
}

template <int N>
inline Action* pair_kickers(RankMask mask, const Id16* ids, Action* out) {
  if constexpr (N == 1) {
    for (; mask; mask &= mask - 1) *out++ = ids[std::countr_zero(mask)];
  } else {
    for (RankMask m = mask; m; m &= m - 1) {
      const int r = std::countr_zero(m);
      out = pair_kickers<N - 1>(mask & ((1u << r) - 1), ids + kWeights.pair[N][at(r)], out);
    }
  }
  return out;
}

}  // namespace detail

/// Writes plays of one hand under one set of kicker rules. `allowed` is a union of `Needs`.
class Generator {
 public:
  Generator(Cards hand, unsigned allowed) : u_(Universe::get()), m_(hand), allowed_(allowed) {}

  /// Every play of the hand (no pass). Returns the end.
  Action* lead(Action* out) const {
    Action* const begin = out;
    out = singles(kTrio, m_.three, singles(kPair, m_.two, singles(kSolo, m_.one, out)));
    if (m_.three) out = trios_with_pair(0, trios_with_solo(0, out));
    out = chains(kSoloChain, 1, m_.one, out);
    out = chains(kPairChain, 2, m_.two, out);
    const RankMask planes = m_.three & kChainMask;
    if (planes & (planes >> 1)) {
      out = chains(kTrioChain, 3, m_.three, out);
      for (int n = 2; n <= 5; ++n) out = planes_with_solos(n, 0, out);
      for (int n = 2; n <= 4; ++n) out = planes_with_pairs(n, 0, out);
    }
    if (m_.four) {
      out = quads_with_solos(0, out);
      out = quads_with_pairs(0, out);
      out = bombs(0, out);
      if (allowed_ & kShuttles) out = shuttles(out);
    }
    out = rocket(out);
    return in_order(begin, out);
  }

  /// Pass, and every play that beats `last` (not a pass). Returns the end.
  Action* follow(const Move& last, Action* out) const {
    Action* const begin = out;
    *out++ = kPass;
    if (last.kind == Kind::rocket) return out;
    if (last.kind == Kind::bomb) return rocket(bombs(last.rank + 1, out));
    if (last.kind != Kind::shuttle) return in_order(begin, rocket(bombs(0, higher(last, out))));
    Action* const bombs_at = out;
    return in_order(bombs_at, higher(last, rocket(bombs(0, out))));
  }

 private:
  /// The plays of the kind and length of `last` that beat it; not of bombs.
  Action* higher(const Move& last, Action* out) const {
    const int above = last.rank + 1, n = last.length;
    switch (last.kind) {
      case Kind::solo: return singles(kSolo, m_.one >> above << above, out);
      case Kind::pair: return singles(kPair, m_.two >> above << above, out);
      case Kind::trio: return singles(kTrio, m_.three >> above << above, out);
      case Kind::trio_solo: return trios_with_solo(above, out);
      case Kind::trio_pair: return trios_with_pair(above, out);
      case Kind::solo_chain: return chain(kSoloChain, 1, m_.one, n, above, out);
      case Kind::pair_chain: return chain(kPairChain, 2, m_.two, n, above, out);
      case Kind::trio_chain: return chain(kTrioChain, 3, m_.three, n, above, out);
      case Kind::plane_solo: return planes_with_solos(n, above, out);
      case Kind::plane_pair: return planes_with_pairs(n, above, out);
      case Kind::quad_solo: return quads_with_solos(above, out);
      case Kind::quad_pair: return quads_with_pairs(above, out);
      case Kind::shuttle: return chain(u_.first_shuttle(), 4, m_.four, n, above, out);
      case Kind::shuttle_solo: return shuttles_with_solos(n, above, out);
      case Kind::shuttle_pair: return shuttles_with_pairs(n, above, out);
      default: return out;
    }
  }

  /// The plays of one rank each whose ids begin with `first`.
  static Action* singles(Action first, RankMask ranks, Action* out) {
    detail::each_bit(ranks, [&](int r) { *out++ = first + r; });
    return out;
  }

  Action* trios_with_solo(int above, Action* out) const { return trios(kTrioSolo, 14, m_.one, above, out); }
  Action* trios_with_pair(int above, Action* out) const { return trios(kTrioPair, 12, m_.two, above, out); }
  /// Each trio has `kickers` ids, those of the kickers of other ranks.
  Action* trios(Action first, int kickers, RankMask held, int above, Action* out) const {
    detail::each_bit(m_.three >> above << above, [&](int t) {
      const Action base = first + kickers * t;
      detail::each_bit(held & ~(1u << t), [&](int r) { *out++ = base + r - (r > t); });
    });
    return out;
  }

  /// Calls f(start) for each run of `length` ranks of the mask that starts from `above` on.
  template <class F>
  static void each_run(RankMask mask, int length, int above, F&& f) {
    detail::each_bit(detail::runs(mask & kChainMask, length) >> above << above, f);
  }

  static Action* chain(Action first, int width, RankMask mask, int length, int above, Action* out) {
    const RankMask starts = detail::runs(mask & kChainMask, length) >> above << above;
    return singles(first + chain_offset(width, length), starts, out);
  }

  static Action* chains(Action first, int width, RankMask mask, Action* out) {
    mask &= kChainMask;
    RankMask starts = detail::runs(mask, kMinChain[width]);
    for (int n = kMinChain[width]; starts && n <= kMaxChain[width]; ++n) {
      out = singles(first, starts, out);
      first += kChainRanks - n + 1;
      starts &= mask >> n;
    }
    return out;
  }

  /// Ranks that may be kickers of a body of `length` ranks from `start`, by how many of each.
  Ranks kickers(int length, int start) const {
    Ranks k = m_.within(~(((1u << length) - 1) << start));
    if (!(allowed_ & kSameRankKickers)) k.two = 0;
    if (!(allowed_ & kNeighbourKickers)) {
      const RankMask beside = ((1u << (start + length)) | (start ? 1u << (start - 1) : 0)) & kChainMask;
      if (length > 1) k.three &= ~beside;
    }
    if (!(allowed_ & kBombKickers)) k.four = 0;
    return k;
  }

  template <int N>
  Action* solos(int width, int length, int start, Action* out) const {
    const Id16* ids = u_.solo_kickers(width, length, start);
    const auto k = kickers(length, start);
    return allowed_ & kRocketKickers ? detail::solo_kickers<N>(k, ids, out)
                                     : detail::solo_kickers_no_rocket<N>(k, ids, out);
  }

  Action* planes_with_solos(int length, int above, Action* out) const {
    each_run(m_.three, length, above, [&](int s) {
      out = length == 2   ? solos<2>(3, 2, s, out)
            : length == 3 ? solos<3>(3, 3, s, out)
            : length == 4 ? solos<4>(3, 4, s, out)
                          : solos<5>(3, 5, s, out);
    });
    return out;
  }

  Action* planes_with_pairs(int length, int above, Action* out) const {
    each_run(m_.three, length, above, [&](int s) {
      const RankMask pairs = m_.two & ~(((1u << length) - 1) << s);
      const Id16* ids = u_.pair_kickers(3, length, s);
      out = length == 2   ? detail::pair_kickers<2>(pairs, ids, out)
            : length == 3 ? detail::pair_kickers<3>(pairs, ids, out)
                          : detail::pair_kickers<4>(pairs, ids, out);
    });
    return out;
  }

  Action* quads_with_solos(int above, Action* out) const {
    detail::each_bit(m_.four >> above << above, [&](int q) { out = solos<2>(4, 1, q, out); });
    return out;
  }

  Action* quads_with_pairs(int above, Action* out) const {
    detail::each_bit(m_.four >> above << above, [&](int q) {
      out = detail::pair_kickers<2>(m_.two & ~(1u << q), u_.pair_kickers(4, 1, q), out);
    });
    return out;
  }

  Action* shuttles_with_solos(int length, int above, Action* out) const {
    each_run(m_.four, length, above, [&](int s) {
      Ranks k = kickers(length, s);
      k.two = 0;
      const Id16* ids = u_.solo_kickers(4, length, s);
      out = length == 2 ? detail::solo_kickers<4>(k, ids, out) : detail::solo_kickers<6>(k, ids, out);
    });
    return out;
  }

  Action* shuttles_with_pairs(int length, int above, Action* out) const {
    each_run(m_.four, length, above, [&](int s) {
      out = detail::pair_kickers<4>(m_.two & ~(3u << s), u_.pair_kickers(4, 2, s), out);
    });
    return out;
  }

  Action* shuttles(Action* out) const {
    out = chains(u_.first_shuttle(), 4, m_.four, out);
    out = shuttles_with_solos(2, 0, out);
    out = shuttles_with_solos(3, 0, out);
    return shuttles_with_pairs(2, 0, out);
  }

  Action* bombs(int above, Action* out) const { return singles(kBomb, m_.four >> above << above, out); }

  Action* rocket(Action* out) const {
    if ((m_.one & kJokers) == kJokers) *out++ = kRocketMove;
    return out;
  }

  /// Wider kickers have their ids after all others: only then the walk is out of order.
  Action* in_order(Action* begin, Action* end) const {
    if (allowed_ & ~static_cast<unsigned>(kSameRankKickers) && !std::is_sorted(begin, end))
      std::sort(begin, end);
    return end;
  }

  const Universe& u_;
  Ranks m_;
  unsigned allowed_;
};

}  // namespace bothost::doudizhu
