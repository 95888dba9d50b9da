#include "doudizhu/player_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "doudizhu/cells.h"

namespace bothost::doudizhu {
namespace {

using Row = PlayerModel::Row;

void add(Row& to, const Row& row, float times = 1) {
  for (std::size_t i = 0; i < row.size(); ++i) to[i] += times * row[i];
}

}  // namespace

PlayerModel::Sums PlayerModel::position_sums(const Sight& s) const {
  Sums out{p_->bias};
  int first = 0;
  const auto see = [&](int cell) { add(out.hidden, p_->position[at(first + cell)]); };
  for (const Cards cards :
       {s.hand, s.unseen, s.table.last ? Universe::get()[s.table.last].cards : Cards{0}}) {
    each_cell(cards, see);
    first += kCardVector;
  }
  situation_cells(s, see);
  each_cell(s.hand, [&](int cell) {
    add(out.hidden, p_->move[at(cell)]);
    out.linear += p_->linear[at(cell)];
  });
  return out;
}

void PlayerModel::probabilities(const Sight& s, std::span<const Action> moves, std::span<const float> likes,
                                std::span<float> out) const {
  const Sums whole = position_sums(s);
  const float most_liked = *std::ranges::max_element(likes);
  float top = -std::numeric_limits<float>::infinity(), sum = 0;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Move& m = Universe::get()[moves[i]];
    const Cards rest = s.hand - m.cards;
    Sums sums = whole;
    const auto count = [&](int cell, float times) {
      add(sums.hidden, p_->move[at(cell)], times);
      sums.linear += times * p_->linear[at(cell)];
    };
    const auto set = [&](int cell) { count(cell, 1); };
    each_cell_between(rest, s.hand, [&](int cell) { count(cell, -1); });
    move_cells(s, m, rest, set);
    preference_cells(likes[i], most_liked, set);
    out[i] = sums.linear;
    for (std::size_t k = 0; k < sums.hidden.size(); ++k)
      out[i] += p_->output[k] * std::max(sums.hidden[k], 0.0f);
    top = std::max(top, out[i]);
  }
  for (float& value : out) sum += value = std::exp(value - top);
  for (float& value : out) value /= sum;
}

}  // namespace bothost::doudizhu
