#include "doudizhu/rules.h"

#include <array>

#include "core/options.h"

namespace bothost::doudizhu {
namespace {

constexpr std::pair<std::string_view, Needs> kFlags[] = {{"same_rank_kickers", kSameRankKickers},
                                                         {"rocket_kickers", kRocketKickers},
                                                         {"bomb_kickers", kBombKickers},
                                                         {"neighbour_kickers", kNeighbourKickers},
                                                         {"shuttles", kShuttles}};
constexpr std::array<std::string_view, 3> kBiddings = {"none", "score", "grab"};
constexpr std::array<std::string_view, 2> kAllPass = {"void", "first"}, kFirst = {"zero", "random"},
                                          kScoring = {"win_loss", "points"};

/// All options but the kicker flags, in the order of their JSON.
template <class Rules, class Visit>
void each_option(Rules& r, Visit& visit) {
  visit("bidding", r.bidding, kBiddings);
  visit("all_pass", r.all_pass, kAllPass);
  visit("first", r.random_first, kFirst);
  visit("scoring", r.points, kScoring);
  visit("base", r.base, 1, 1'000'000);
  visit("bomb_factor", r.bomb_factor, 1, 10);
  visit("spring_factor", r.spring_factor, 1, 10);
  visit("landlord_double", r.landlord_double);
}

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

Rules Rules::from_json(const Json& json) {
  OptionReader read(json);
  Rules r = preset(read.preset(kPresets));
  for (const auto& [flag_name, flag] : kFlags) {
    bool allows = (r.allowed & flag) != 0;
    read(flag_name, allows);
    r.allowed = static_cast<std::uint8_t>(allows ? r.allowed | flag : r.allowed & ~flag);
  }
  each_option(r, read);
  read.refuse_others("Dou Dizhu");
  return r;
}

Json Rules::to_json() const {
  OptionWriter write;
  for (const auto& [name, flag] : kFlags) write(name, (allowed & flag) != 0);
  each_option(*this, write);
  return write.out;
}

}  // namespace bothost::doudizhu
