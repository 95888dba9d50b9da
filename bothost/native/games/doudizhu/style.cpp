#include "doudizhu/style.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/rng.h"

namespace bothost::doudizhu {
namespace {

using Habits = std::array<double, kHabitNames.size()>;

constexpr int kAceRank = 11, kNineRank = 6;

int high_cards(Cards cards) {
  int out = 0;
  for (int rank = kAceRank; rank < kRanks; ++rank) out += count_of(cards, rank);
  return out;
}

/// A seat's situation, as far as habits look at it.
class Situation {
 public:
  explicit Situation(const Sight& s) : s_(s), leads_(s.table.last == 0) {
    const Seat partner = partner_of(s);
    for (Seat i = 0; i < kSeats; ++i) {
      const int held = s.table.counts[at(i)];
      if (i == s.seat) continue;
      if (i == partner)
        partner_holds_ = held;
      else
        enemy_holds_ = std::min(enemy_holds_, held);
    }
    partner_leads_ = !leads_ && s.table.last_seat == partner;
  }

  /// What each habit, at strength 1, says for a move.
  Habits of(const Move& m, int bombs_from) const {
    Habits out{};
    const auto say = [&](Habit habit, double value) { out[at(habit)] = value; };
    if (m.kind == Kind::pass) {
      say(Habit::help, partner_leads_);
      return out;
    }
    const int size = size_of(m.cards);
    say(Habit::bombs, m.is_bomb() && m.cards != s_.hand && enemy_holds_ > bombs_from);
    say(Habit::kickers, m.cards != m.body);
    if (!m.is_bomb()) say(Habit::control, high_cards(m.cards));
    if (!leads_) {
      say(Habit::aggression, !partner_leads_);
      return out;
    }
    say(Habit::length, size);
    say(Habit::ranks, m.rank);
    say(Habit::pairs, m.kind == Kind::pair || m.kind == Kind::pair_chain);
    say(Habit::chains, m.kind == Kind::solo_chain);
    if (size <= 2 && size == partner_holds_) say(Habit::feed, 1 - m.rank / 14.0);
    if (size <= 2 && size == enemy_holds_) say(Habit::block, m.rank - kNineRank);
    return out;
  }

 private:
  const Sight& s_;
  bool leads_;
  bool partner_leads_ = false;
  int partner_holds_ = 0;  // 0: there is none
  int enemy_holds_ = kDealSize + kBottomSize;
};

double weighed(const Habits& habits, const Style& style) {
  double sum = 0;
  for (std::size_t i = 0; i < habits.size(); ++i) sum += habits[i] * style.habits[i];
  return sum;
}

std::size_t best_of(std::span<const float> likes) {
  return at(std::ranges::max_element(likes) - likes.begin());
}

/// The likes of the rule player, bent into those of the style. Calls stay as they are.
void bend(const Sight& s, const Style& style, std::span<const Action> moves, std::span<float> likes) {
  if (s.table.phase == Phase::bid) return;
  const auto& u = Universe::get();
  const Situation situation(s);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Move& m = u[moves[i]];
    if (m.cards == s.hand && m.kind != Kind::pass) continue;  // everybody takes the last play
    if (!style.sees_wins && likes[i] > kCertainWin / 2) likes[i] -= kCertainWin;
    likes[i] += static_cast<float>(weighed(situation.of(m, style.bombs_from), style));
  }
}

}  // namespace

StyledChoice choose_in_style(const Sight& s, const Style& style, std::uint64_t mood) {
  const auto moves = legal_actions(s);
  StyledChoice out{};
  if (s.table.phase == Phase::bid) {
    out.action = call(s, moves, style.bid).action;
    out.rule = call(s, moves).action;
    return out;
  }
  std::vector<float> likes(moves.size());
  preferences(s, moves, likes);
  out.rule = moves[best_of(likes)];
  bend(s, style, moves, likes);
  if (style.temperature > 0) {
    Rng rng(mood);  // the Gumbel trick: the largest of likes with such noise is a draw from their softmax
    for (float& like : likes)
      like -= static_cast<float>(style.temperature * std::log(-std::log(rng.uniform() + 0x1p-54)));
  }
  out.action = moves[best_of(likes)];
  const Situation situation(s);
  out.habits = situation.of(Universe::get()[out.action], style.bombs_from);
  for (std::size_t i = 0; i < out.habits.size(); ++i) out.habits[i] *= style.habits[i];
  return out;
}

}  // namespace bothost::doudizhu
