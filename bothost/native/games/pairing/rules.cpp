#include "pairing/rules.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace bothost::pairing {
namespace {

struct Option {
  std::string_view name;
  std::uint8_t Rules::* value;
  int low;
  int high;
};

constexpr Option kOptions[] = {
    {"hand", &Rules::hand, 1, 20},
    {"pool", &Rules::pool, 0, 20},
    {"deck", &Rules::deck, 0, kCards},
    {"rank_bonus", &Rules::rank_bonus, 0, 99},
    {"colour_bonus", &Rules::colour_bonus, 0, 99},
    {"colour_set", &Rules::colour_set, 1, kRanks},
    {"skill_a", &Rules::skill_a, 0, kMostCharges[0]},
    {"skill_b", &Rules::skill_b, 0, kMostCharges[1]},
    {"discards", &Rules::discards, 0, 2},
    {"discard_to_hand", &Rules::discard_to_hand, 0, 4},
    {"discard_to_pool", &Rules::discard_to_pool, 0, 4},
};
constexpr std::string_view kOthers[] = {"preset", "points", "refill"};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t swap = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({swap, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void unknown(const std::string& what, std::string_view given,
                          const std::vector<std::string_view>& known) {
  const std::string_view shown = given.substr(0, 60);
  const auto nearest = *std::min_element(known.begin(), known.end(), [&](auto a, auto b) {
    return edit_distance(shown, a) < edit_distance(shown, b);
  });
  throw InvalidInput("unknown " + what + " \"" + std::string(shown) + "\" of pairing; did you mean \"" +
                     std::string(nearest) + "\"?");
}

std::uint8_t preset_index(const std::string& name) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kMachines.size(); ++i) {
    if (kMachines[i].name == name) return static_cast<std::uint8_t>(i);
    names.push_back(kMachines[i].name);
  }
  unknown("preset", name, names);
}

void read_points(const Json& json, Rules& rules) {
  const auto& list = json.array("points");
  if (list.size() != kRanks)
    throw InvalidInput("points: 13 values are needed, one per rank, not " + std::to_string(list.size()));
  for (std::size_t i = 0; i < list.size(); ++i)
    rules.points[i] =
        static_cast<std::uint8_t>(list[i].integer("points of rank " + std::to_string(i + 1), 0, 99));
}

}  // namespace

Rules Rules::from_json(const Json& options) {
  Rules rules;
  bool deck_given = false;
  for (const auto& [key, value] : options.object("rules of pairing")) {
    const auto* option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                      [&](const Option& o) { return o.name == key; });
    if (option != std::end(kOptions)) {
      rules.*option->value = static_cast<std::uint8_t>(value.integer(key, option->low, option->high));
      deck_given |= key == "deck";
    } else if (key == "preset") {
      rules.machine = preset_index(value.text(key));
    } else if (key == "points") {
      read_points(value, rules);
    } else if (key == "refill") {
      rules.refill = value.boolean(key);
    } else {
      std::vector<std::string_view> known(std::begin(kOthers), std::end(kOthers));
      for (const Option& o : kOptions) known.push_back(o.name);
      unknown("option", key, known);
    }
  }
  const int left = kCards - 2 * rules.hand - rules.pool;
  if (left < 0)
    throw InvalidInput("two hands of " + std::to_string(rules.hand) + " and a pool of " +
                       std::to_string(rules.pool) + " need more than 52 cards");
  if (!deck_given) rules.deck = static_cast<std::uint8_t>(left);
  if (rules.deck > left)
    throw InvalidInput("deck: " + std::to_string(rules.deck) + " is more than the " + std::to_string(left) +
                       " cards that hands and pool leave");
  return rules;
}

Json Rules::to_json() const {
  JsonObject out{{"preset", phases().name}};
  for (const Option& option : kOptions) out.emplace_back(option.name, static_cast<int>(this->*option.value));
  JsonArray list;
  for (const auto value : points) list.emplace_back(static_cast<int>(value));
  out.emplace_back("points", std::move(list));
  out.emplace_back("refill", refill);
  return out;
}

int Rules::total_points() const {
  return std::max(1, kColours * std::accumulate(points.begin(), points.end(), 0));
}

}  // namespace bothost::pairing
