// Options of Dou Dizhu, and the presets that stand for real tables.
#pragma once
#include <array>
#include <string_view>

#include "core/json.h"
#include "doudizhu/moves.h"

namespace bothost::doudizhu {

/// none   the deal names the landlord
/// score  each seat once, from the first on: bid0 or more than the bids before; 3 ends the bidding; the
///        highest wins
/// grab   each seat once, from the first on: decline (bid0), `call` while no seat has called, then `grab`; if
///        another seat grabbed, the first seat that called, where it was the first to speak, may grab once
///        more; the last to call or grab is the landlord (mailgyc/doudizhu)
enum class Bidding : std::uint8_t { none, score, grab };

/// What happens when no seat bids. first: the first seat is the landlord, for a stake of 1; void_hand: the
/// hand ends at once and scores 0 (the table deals again).
enum class AllPass : std::uint8_t { void_hand, first };

struct Rules {
  /// Union of `Needs`: which kickers and shuttles are allowed.
  std::uint8_t allowed = kSameRankKickers;
  Bidding bidding = Bidding::none;
  AllPass all_pass = AllPass::void_hand;
  /// Whether a random deal draws the first seat (bidder, or landlord without bidding); otherwise it is seat
  /// 0.
  bool random_first = false;
  /// Points: base x stake x bomb_factor^(bombs and rockets) x spring_factor if spring or anti-spring.
  /// Otherwise 1.
  bool points = true;
  int base = 1, bomb_factor = 2, spring_factor = 2;
  /// The landlord wins or loses for both peasants.
  bool landlord_double = true;

  static Rules from_json(const Json& json);
  Json to_json() const;
  int num_seats() const { return kSeats; }
  /// 27,472 where RLCard's set without calls suffices, otherwise the whole universe; ids are the same in
  /// both.
  int num_actions() const {
    return bidding == Bidding::none && (allowed & ~kSameRankKickers) == 0 ? kRlcardActions
                                                                          : Universe::get().num_actions();
  }
  /// Whether the move exists under these rules (in any hand).
  bool allows(const Move& m) const { return (m.needs & ~allowed) == 0; }
  bool operator==(const Rules&) const = default;
};

inline constexpr std::array<std::string_view, 6> kPresets = {"rlcard",  "bidding", "douzero",
                                                             "mailgyc", "botzone", "botzone-bid"};

}  // namespace bothost::doudizhu
