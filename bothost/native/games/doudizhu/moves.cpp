#include "doudizhu/moves.h"

#include <algorithm>

namespace bothost::doudizhu {
namespace {

constexpr std::array<std::string_view, 6> kCallNames = {"bid0", "bid1", "bid2", "bid3", "call", "grab"};

Cards chain(int width, int length, int start) {
  Cards out = 0;
  for (int r = start; r < start + length; ++r) out += card(r, width);
  return out;
}

/// Calls f(ranks ascending) for every multiset (distinct = false) or set of n of the ranks below `ranks`, in
/// colexicographic order.
template <class F>
void colex(int n, int ranks, bool distinct, F&& f) {
  std::array<int, 6> x{};
  const auto step = [&](auto&& self, int position, int limit) -> void {
    if (position < 0) return f(x);
    for (int r = distinct ? position : 0; r < limit; ++r) {
      x[at(position)] = r;
      self(self, position - 1, distinct ? r : r + 1);
    }
  };
  step(step, n - 1, ranks);
}

}  // namespace

struct Universe::Builder {
  Universe& u;

  Action add(Kind kind, Cards body, Cards kickers, int rank, int length, int abstract, int needs = 0) {
    u.moves_.push_back({body + kickers, body, kind, static_cast<std::uint8_t>(needs),
                        static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(length),
                        static_cast<std::uint16_t>(abstract), false});
    return static_cast<Action>(u.moves_.size() - 1);
  }

  int name_abstract(Cards body, std::string_view kickers) {
    u.abstract_names_.push_back(to_text(body) + std::string(kickers));
    return static_cast<int>(u.abstract_names_.size()) - 1;
  }

  void simple(Kind kind, int ranks, int width) {
    for (int r = 0; r < ranks; ++r) add(kind, card(r, width), 0, r, 1, name_abstract(card(r, width), ""));
  }

  void trios_with(Kind kind, int ranks, int kicker_width) {
    for (int r = 0; r <= kTwo; ++r) {
      const int abstract = name_abstract(card(r, 3), kicker_width == 1 ? "*" : "**");
      for (int k = 0; k < ranks; ++k)
        if (k != r) add(kind, card(r, 3), card(k, kicker_width), r, 1, abstract);
    }
  }

  void chains(Kind kind, int width) {
    for (int n = kMinChain[width]; n <= kMaxChain[width]; ++n)
      for (int s = 0; s + n <= kChainRanks; ++s) {
        const Cards body = chain(width, n, s);
        add(kind, body, 0, s, n, width < 4 ? name_abstract(body, "") : kNoAbstract,
            width < 4 ? 0 : kShuttles);
      }
  }

  /// Which features solo kickers need beyond RLCard's set, or -1 where no rules allow them. Shuttles take
  /// distinct kickers only, as the one lobby that knows them does.
  static int solo_needs(Cards kickers, int width, int length, int start) {
    int needs = width == 4 && length > 1 ? kShuttles : 0;
    for (int r = 0; r < kRanks; ++r) {
      const int n = count_of(kickers, r);
      if (n == 0) continue;
      if (n > count_of(kDeck, r) || (r >= start && r < start + length)) return -1;
      if (n > 1) needs |= kSameRankKickers;
      if (n > 3) needs |= kBombKickers;
      if (n > 2 && r < kChainRanks && (r == start - 1 || r == start + length)) needs |= kNeighbourKickers;
    }
    if (contains(kickers, kRocket)) needs |= kRocketKickers;
    return (needs & kShuttles) && (needs & kSameRankKickers) ? -1 : needs;
  }

  /// The moves of a kind whose kickers are sets of `each` cards of a rank, for each start of the body.
  /// `needs_of(kickers, start)`: what they need, or -1 where there is no such move. abstract: by body, in
  /// order.
  template <class NeedsOf>
  void with_kickers(Kind kind, int width, int length, int starts, int each, const int* abstract,
                    NeedsOf needs_of) {
    const int n = width == 3 ? length : 2 * length;
    for (int s = 0; s < starts; ++s) {
      auto& base = (each == 1 ? u.solo_ : u.pair_)[width - 3][length][s];
      if (base == 0) {
        base = static_cast<std::uint32_t>(u.kicker_ids_.size());
        u.kicker_ids_.resize(base + at(each == 1 ? solo_sets(n) : pair_sets(n)));
      }
      std::size_t index = 0;
      colex(n, each == 1 ? kRanks : 13, each == 2, [&](const auto& x) {
        Cards kickers = 0;
        for (int i = 0; i < n; ++i) kickers += card(x[at(i)], each);
        if (const int needs = needs_of(kickers, s); needs >= 0)
          u.kicker_ids_[base + index] =
              static_cast<Id16>(add(kind, chain(width, length, s), kickers, s, length,
                                    abstract ? abstract[s] : kNoAbstract, needs));
        ++index;
      });
    }
  }

  /// One pass over a kind with solo kickers: RLCard's moves or the wider ones.
  void with_solos(Kind kind, int width, int length, int starts, bool rlcard, const int* abstract) {
    with_kickers(kind, width, length, starts, 1, abstract, [=](Cards kickers, int s) {
      const int needs = solo_needs(kickers, width, length, s);
      const bool in_rlcard = (needs & ~kSameRankKickers) == 0;
      return in_rlcard == rlcard ? needs : -1;
    });
  }

  void with_pairs(Kind kind, int width, int length, int starts, const int* abstract) {
    with_kickers(kind, width, length, starts, 2, abstract, [=](Cards kickers, int s) {
      return kickers & chain(15, length, s) ? -1 : abstract ? 0 : kShuttles;
    });
  }

  void build() {
    u.kicker_ids_.push_back(0);  // offset 0 means "not laid out yet"
    add(Kind::pass, 0, 0, 0, 0, 0);
    u.abstract_names_.push_back("pass");
    simple(Kind::solo, 15, 1);
    simple(Kind::pair, 13, 2);
    simple(Kind::trio, 13, 3);
    trios_with(Kind::trio_solo, 15, 1);
    trios_with(Kind::trio_pair, 13, 2);
    chains(Kind::solo_chain, 1);
    chains(Kind::pair_chain, 2);
    chains(Kind::trio_chain, 3);
    std::array<std::array<int, 13>, 6> plane_solo{};
    std::array<int, 13> abstract{};
    for (int n = 2; n <= 5; ++n) {
      for (int s = 0; s + n <= kChainRanks; ++s)
        plane_solo[n][s] = name_abstract(chain(3, n, s), std::string(at(n), '*'));
      with_solos(Kind::plane_solo, 3, n, kChainRanks - n + 1, true, plane_solo[n].data());
    }
    for (int n = 2; n <= 4; ++n) {
      for (int s = 0; s + n <= kChainRanks; ++s)
        abstract[s] = name_abstract(chain(3, n, s), std::string(at(2 * n), '*'));
      with_pairs(Kind::plane_pair, 3, n, kChainRanks - n + 1, abstract.data());
    }
    std::array<int, 13> quad_solo{};
    for (int s = 0; s <= kTwo; ++s) quad_solo[s] = name_abstract(card(s, 4), "**");
    with_solos(Kind::quad_solo, 4, 1, 13, true, quad_solo.data());
    for (int s = 0; s <= kTwo; ++s) abstract[s] = name_abstract(card(s, 4), "****");
    with_pairs(Kind::quad_pair, 4, 1, 13, abstract.data());
    simple(Kind::bomb, 13, 4);
    add(Kind::rocket, kRocket, 0, kSmallJoker, 1, name_abstract(kRocket, ""));

    for (int n = 2; n <= 5; ++n)
      with_solos(Kind::plane_solo, 3, n, kChainRanks - n + 1, false, plane_solo[n].data());
    with_solos(Kind::quad_solo, 4, 1, 13, false, quad_solo.data());
    u.first_shuttle_ = static_cast<Action>(u.moves_.size());
    chains(Kind::shuttle, 4);
    with_solos(Kind::shuttle_solo, 4, 2, 11, false, nullptr);
    with_solos(Kind::shuttle_solo, 4, 3, 10, false, nullptr);
    with_pairs(Kind::shuttle_pair, 4, 2, 11, nullptr);
    u.first_call_ = static_cast<Action>(u.moves_.size());
    for (int i = 0; i < 6; ++i) add(Kind::call, 0, 0, i, 0, kNoAbstract);
    index_by_cards();
  }

  /// Canonical first: a play of RLCard's set, otherwise the highest body. The others are marked in notation.
  void index_by_cards() {
    for (Action a = 1; a < u.first_call_; ++a) u.by_cards_.emplace_back(u[a].cards, a);
    std::ranges::sort(u.by_cards_, [&](const auto& x, const auto& y) {
      if (x.first != y.first) return x.first < y.first;
      const bool narrow_x = x.second < kRlcardActions, narrow_y = y.second < kRlcardActions;
      return narrow_x != narrow_y ? narrow_x : x.second > y.second;
    });
    for (std::size_t i = 1; i < u.by_cards_.size(); ++i)
      if (u.by_cards_[i].first == u.by_cards_[i - 1].first) u.moves_[at(u.by_cards_[i].second)].marked = true;
  }
};

Universe::Universe() {
  moves_.reserve(60000);
  Builder{*this}.build();
}

std::vector<Action> Universe::readings(Cards cards) const {
  std::vector<Action> out;
  auto it = std::ranges::lower_bound(by_cards_, cards, {}, &std::pair<Cards, Action>::first);
  for (; it != by_cards_.end() && it->first == cards; ++it) out.push_back(it->second);
  return out;
}

std::string Universe::notation(Action a) const {
  const Move& m = (*this)[a];
  if (m.kind == Kind::pass) return "pass";
  if (m.kind == Kind::call) return std::string(kCallNames[m.rank]);
  return to_text(m.body) + (m.marked ? "+" : "") + to_text(m.cards - m.body);
}

Action Universe::parse(std::string_view text) const {
  if (text == "pass") return kPass;
  for (std::size_t i = 0; i < kCallNames.size(); ++i)
    if (text == kCallNames[i]) return first_call_ + static_cast<Action>(i);
  const auto plus = text.find('+');
  const bool marked = plus != std::string_view::npos;
  const Cards body = cards_from_text(text.substr(0, plus));
  const Cards kickers = marked ? cards_from_text(text.substr(plus + 1)) : 0;
  for (const Action a : readings(body + kickers))
    if (!marked || (*this)[a].body == body) return a;
  reject(text, "is not a move of Dou Dizhu");
}

}  // namespace bothost::doudizhu
