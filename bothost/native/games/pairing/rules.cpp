#include "pairing/rules.h"

#include <algorithm>
#include <numeric>

#include "core/options.h"

namespace bothost::pairing {
namespace {

/// All options that are small numbers, in the order of their JSON.
template <class Rules, class Visit>
void each_option(Rules& r, Visit& visit) {
  visit("hand", r.hand, 1, 20);
  visit("pool", r.pool, 0, 20);
  visit("deck", r.deck, 0, kCards);
  visit("rank_bonus", r.rank_bonus, 0, 99);
  visit("colour_bonus", r.colour_bonus, 0, 99);
  visit("colour_set", r.colour_set, 1, kRanks);
  visit("skill_a", r.skill_a, 0, kMostCharges[0]);
  visit("skill_b", r.skill_b, 0, kMostCharges[1]);
  visit("discards", r.discards, 0, 2);
  visit("discard_to_hand", r.discard_to_hand, 0, 4);
  visit("discard_to_pool", r.discard_to_pool, 0, 4);
}

void read_points(const Json& json, Rules& rules) {
  const auto& list = json.array("points", kRanks);
  for (std::size_t i = 0; i < list.size(); ++i)
    rules.points[i] = list[i].integer<std::uint8_t>("points of rank " + std::to_string(i + 1), 0, 99);
}

}  // namespace

Rules Rules::from_json(const Json& options) {
  OptionReader read(options);
  Rules rules;
  read("preset", rules.machine, kPresets);
  if (const Json* points = read.find("points")) read_points(*points, rules);
  each_option(rules, read);
  read("refill", rules.refill);
  read.refuse_others("pairing");
  const int left = kCards - 2 * rules.hand - rules.pool;
  if (left < 0)
    throw InvalidInput("two hands of " + std::to_string(rules.hand) + " and a pool of " +
                       std::to_string(rules.pool) + " need more than 52 cards");
  if (!options.find("deck")) rules.deck = static_cast<std::uint8_t>(left);
  if (rules.deck > left)
    throw InvalidInput("deck: " + std::to_string(rules.deck) + " is more than the " + std::to_string(left) +
                       " cards that hands and pool leave");
  return rules;
}

Json Rules::to_json() const {
  OptionWriter write{{{"preset", phases().name}}};
  each_option(*this, write);
  write.out.emplace_back("points", JsonArray(points.begin(), points.end()));
  write("refill", refill);
  return write.out;
}

int Rules::total_points() const {
  return std::max(1, kColours * std::accumulate(points.begin(), points.end(), 0));
}

}  // namespace bothost::pairing
