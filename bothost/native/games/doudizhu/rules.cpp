#include "doudizhu/rules.h"

#include <algorithm>
#include <array>

namespace bothost::doudizhu {
namespace {

struct NamedFlag {
  std::string_view name;
  Needs flag;
};
constexpr std::array<NamedFlag, 5> kFlags = {{{"same_rank_kickers", kSameRankKickers},
                                              {"rocket_kickers", kRocketKickers},
                                              {"bomb_kickers", kBombKickers},
                                              {"neighbour_kickers", kNeighbourKickers},
                                              {"shuttles", kShuttles}}};
constexpr std::array<std::string_view, 3> kBiddings = {"none", "score", "grab"};
constexpr std::array<std::string_view, 2> kAllPass = {"void", "first"}, kFirst = {"zero", "random"},
                                          kScoring = {"win_loss", "points"};

/// rlcard       RLCard's 27,472 actions; seat 0 is the landlord; points with bombs, rocket and spring.
/// bidding      the same plays after calling 1-2-3; the first bidder is drawn.
/// douzero      DouZero's generator: any cards out of the body are kickers, a rocket and a bomb among them;
///              no spring.
/// mailgyc      mailgyc/doudizhu: kickers of distinct ranks, a rocket among them; call and grab; base 150,
///              spring x 3. Its bonus for the bottom cards, which depends on suits, is not modelled.
/// botzone      FightTheLandlord: kickers of distinct ranks, a rocket among them; space shuttles; who wins
///              counts.
/// botzone-bid  FightTheLandlord2: the same plays after calling 1-2-3.
Rules preset(std::string_view name) {
  if (name == "bidding") return {.bidding = Bidding::score, .random_first = true};
  if (name == "douzero")
    return {.allowed = kSameRankKickers | kRocketKickers | kBombKickers | kNeighbourKickers,
            .spring_factor = 1};
  if (name == "mailgyc")
    return {.allowed = kRocketKickers,
            .bidding = Bidding::grab,
            .all_pass = AllPass::first,
            .random_first = true,
            .base = 150,
            .spring_factor = 3};
  if (name == "botzone")
    return {.allowed = kRocketKickers | kShuttles, .points = false, .landlord_double = false};
  if (name == "botzone-bid")
    return {.allowed = kRocketKickers | kShuttles, .bidding = Bidding::score, .all_pass = AllPass::first};
  return {};
}

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = {"rlcard",  "bidding", "douzero",
                                                 "mailgyc", "botzone", "botzone-bid"};
  return names;
}

Rules Rules::from_json(const Json& json) {
  const auto* name = json.find("preset");
  Rules r = name ? preset(preset_names()[name->one_of("preset", preset_names())]) : Rules{};
  for (const auto& [key, value] : json.object("rules")) {
    const auto flag =
        std::find_if(kFlags.begin(), kFlags.end(), [&](const auto& f) { return f.name == key; });
    if (flag != kFlags.end())
      r.allowed =
          static_cast<std::uint8_t>(value.boolean(key) ? r.allowed | flag->flag : r.allowed & ~flag->flag);
    else if (key == "bidding")
      r.bidding = static_cast<Bidding>(value.one_of(key, kBiddings));
    else if (key == "all_pass")
      r.all_pass = static_cast<AllPass>(value.one_of(key, kAllPass));
    else if (key == "first")
      r.random_first = value.one_of(key, kFirst) == 1;
    else if (key == "scoring")
      r.points = value.one_of(key, kScoring) == 1;
    else if (key == "base")
      r.base = static_cast<int>(value.integer(key, 1, 1'000'000));
    else if (key == "bomb_factor")
      r.bomb_factor = static_cast<int>(value.integer(key, 1, 10));
    else if (key == "spring_factor")
      r.spring_factor = static_cast<int>(value.integer(key, 1, 10));
    else if (key == "landlord_double")
      r.landlord_double = value.boolean(key);
    else if (key != "preset")
      throw InvalidInput("Dou Dizhu has no option \"" + key + "\"");
  }
  return r;
}

Json Rules::to_json() const {
  JsonObject out;
  for (const auto& f : kFlags) out.emplace_back(f.name, (allowed & f.flag) != 0);
  out.emplace_back("bidding", kBiddings[at(bidding)]);
  out.emplace_back("all_pass", kAllPass[at(all_pass)]);
  out.emplace_back("first", kFirst[random_first]);
  out.emplace_back("scoring", kScoring[points]);
  out.emplace_back("base", base);
  out.emplace_back("bomb_factor", bomb_factor);
  out.emplace_back("spring_factor", spring_factor);
  out.emplace_back("landlord_double", landlord_double);
  return out;
}

}  // namespace bothost::doudizhu
