// The contract of a game. The host, the lobby, self-play, search and every encoder rely on it.
//
// State  the full truth (servers, self-play, search). Only it knows all the seats that may act.
// View   what one seat may know. Encoders and strategies take a View, never a State.
// Event  what happens. Each seat receives its own stream.
//
// The law: folding the events that a seat received, from its first, gives exactly state.view(seat).
//
// A game is a struct that satisfies the concept `Game` below; core/erased.h turns it into the run-time
// interface that bindings/ shows to Python, and core/vec_env.h into a batch environment. Nothing outside
// bindings/ includes Python.
//
// Simultaneous decisions (mahjong claims): State::to_act() has several bits set. Each of those seats answers
// through apply_legal(seat, action) in any order. An answer is an event to its own seat only. After the last
// answer the claims are resolved and the outcome becomes public. legal() of a seat that is not asked is
// empty. tests/native/claims.h is the smallest example.
//
// Phases (pairing): a composite move is several actions of one seat, one after another. Selections are events
// to their own seat only. The outcome is public when the composite executes.
//
// The adapters in core/erased.h and core/vec_env.h guarantee this, so that no game has to:
//  - a Rules object stays where it is and outlives every State and View made from it: they may keep a pointer
//  to it;
//  - seats lie within [0, num_seats) and actions within [0, num_actions) wherever a game receives them;
//  - an action is legal where State::apply_legal or View::apply receives it;
//  - a View whose observe or apply threw is dropped, and the one before it kept;
//  - kFormatVersion precedes the view's bytes and is in its JSON as "format". Both are checked and removed
//    before read and from_snapshot see the rest. No bytes may be left after read. JSON has at most 64 levels.
// A value that a decoder (read, from_snapshot, from_deal, parse) accepts must be safe to use:
// legal, sample and encode must not read out of bounds, however hostile the input was.
//
// Optional members:
//   cview.is_legal(action), state.is_legal(seat, action)  faster than listing the other actions
//   G::rule_action(cview)  the game's own rule player, an opponent in batch environments; the view is asked
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/bytes.h"
#include "core/json.h"
#include "core/rng.h"
#include "core/types.h"

namespace bothost {

/// One named tensor that an encoder writes: float32, C order, values as the block's documentation says.
struct Block {
  std::string name;
  /// Shape without batch (and, for action blocks, without the leading axis over actions).
  std::vector<int> shape;
  /// Increase it whenever any value of the block changes for any position: it is stored with decisions and
  /// checkpoints.
  int version;
  enum class Of { view, action, oracle } of;
  std::string doc;

  /// Number of floats.
  std::size_t size() const {
    std::size_t floats = 1;
    for (const int d : shape) floats *= at(d);
    return floats;
  }
};

/// Discards events: `state.apply_legal(seat, action, NoEvents{})` compiles to the bare transition.
struct NoEvents {
  template <class Event>
  void operator()(Seat, const Event&) const {}
};

/// Whether a sink discards events, so that none need be made.
template <class Sink>
inline constexpr bool kDiscards = std::is_same_v<std::remove_cvref_t<Sink>, NoEvents>;

/// A whole hand: the deal, and every action in the order of its application.
struct Record {
  Json deal;
  std::vector<std::pair<Seat, Action>> actions;
};

/// Static members of a game `G`, and of its three types. `sink` is any callable (Seat to, const G::Event&).
template <class G>
concept Game = requires(
    const typename G::Rules& rules, const typename G::State& state, typename G::State& mut,
    typename G::View& view, const typename G::View& cview, const typename G::Event& event, Rng& rng,
    ActionList& actions, Seat seat, Action action, std::string_view text, Json json, ByteWriter& writer,
    ByteReader& reader, double* returns, float* out, int block, std::span<const Action> some) {
  { G::kName } -> std::convertible_to<std::string_view>;
  /// Version of the view bytes and JSON.
  { G::kFormatVersion } -> std::convertible_to<int>;
  { G::blocks() } -> std::same_as<const std::vector<Block>&>;

  /// Names of all presets that Rules::from_json knows, the default first; at least one.
  { G::kPresets } -> std::convertible_to<std::span<const std::string_view>>;

  // Rules: a value with every option; from_json takes {"preset": name, option: value, …}, refuses unknown
  // keys; from_json({}) is the default preset, and from_json(to_json()) gives the same rules back.
  { G::Rules::from_json(json) } -> std::same_as<typename G::Rules>;
  { rules.to_json() } -> std::same_as<Json>;
  { rules.num_seats() } -> std::convertible_to<int>;
  { rules.num_actions() } -> std::convertible_to<int>;

  // Notation: one word per action, [!-~]+, the same in events, logs, golden games and the exec protocol.
  { G::notation(rules, action) } -> std::same_as<std::string>;
  { G::parse_action(rules, text) } -> std::same_as<Action>;

  // Events as one line of text, "kind seat args…" (the actor's seat, "-" for none).
  { event.text() } -> std::same_as<std::string>;
  { G::Event::parse(rules, text) } -> std::same_as<typename G::Event>;

  // State.
  requires std::constructible_from<typename G::State, const typename G::Rules&, Rng&>;  // a random deal
  { G::State::from_deal(rules, json) } -> std::same_as<typename G::State>;              // a given deal
  { state.deal() } -> std::same_as<Json>;  // the deal this hand began with, as from_deal takes it
  { state.start(NoEvents{}) };             // the events of the deal; called once, before the first action
  { state.to_act() } -> std::same_as<SeatMask>;
  { state.terminal() } -> std::same_as<bool>;
  { state.legal(seat, actions) };  // appends, ascending, without duplicates
  { mut.apply_legal(seat, action, NoEvents{}) };
  { state.returns(returns) };  // num_seats values, the score of the hand; valid when terminal
  { state.view(seat) } -> std::same_as<typename G::View>;

  // View.
  requires std::constructible_from<typename G::View, const typename G::Rules&, Seat>;  // before any event
  requires std::equality_comparable<typename G::View>;
  { view.observe(event) };  // throws InvalidInput for what cannot happen now
  { cview.seat() } -> std::same_as<Seat>;
  { cview.seq() } -> std::same_as<std::uint32_t>;  // events received so far
  { cview.asked() } -> std::same_as<bool>;         // is a decision of this seat awaited
  { cview.to_act() } -> std::same_as<Seat>;        // the one seat whose public turn it is, or kNobody
  { cview.terminal() } -> std::same_as<bool>;
  { cview.phase() } -> std::convertible_to<std::string_view>;
  { cview.legal(actions) };  // as State::legal(view.seat()); empty unless asked
  // The events that our own action is certain to cause, for lobbies that only take composites. A claim that
  // others may still beat is folded as if it went through, so that what follows it can be decided with it.
  { view.apply(action) };
  { cview.sample(rng) } -> std::same_as<typename G::State>;  // uniform over the deals that the view allows
  { cview.write(writer) };
  { G::View::read(rules, reader) } -> std::same_as<typename G::View>;
  { cview.to_json() } -> std::same_as<Json>;
  // Inverse of to_json. It also takes what a lobby tells after a reconnect: absent members are unknown.
  { G::View::from_snapshot(rules, json) } -> std::same_as<typename G::View>;

  // The whole hand, once the reveal was observed. When a hand ends, apply_legal sends every seat one last
  // event "reveal - …" with all that was hidden (the deal, and answers or selections that others did not
  // see).
  { cview.record() } -> std::same_as<std::optional<Record>>;

  // Encoders: block is an index into G::blocks(); `out` has room for the block's floats and is overwritten.
  { G::encode(cview, block, out) };
  { G::encode_actions(cview, block, some, out) };
  { G::encode_oracle(state, seat, block, out) };
};

/// Whether a seat may take an action now.
template <class State>
bool is_legal(const State& state, Seat seat, Action action) {
  if constexpr (requires { state.is_legal(seat, action); }) {
    return state.is_legal(seat, action);
  } else {
    ActionList list;
    state.legal(seat, list);
    return std::ranges::binary_search(list, action);
  }
}

/// As State::apply_legal, for any seat and action. Throws IllegalAction, and then changes nothing.
template <class State, class Sink>
void apply_checked(State& state, Seat seat, Action action, Sink&& sink) {
  if (!is_legal(state, seat, action))
    throw IllegalAction("seat " + std::to_string(seat) + " may not take action " + std::to_string(action) +
                        " now");
  state.apply_legal(seat, action, sink);
}

}  // namespace bothost
