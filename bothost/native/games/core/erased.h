// From a `Game` (compile time) to the interface in any_game.h (run time).
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/any_game.h"
#include "core/vec_env.h"

namespace bothost {

namespace erased {

/// Scratch space for legality checks, so that they allocate nothing.
inline ActionList& scratch() {
  thread_local ActionList list;
  list.clear();
  return list;
}

template <Game G>
class GameOf;

template <Game G>
class StateOf;

template <Game G>
using GamePtr = std::shared_ptr<const GameOf<G>>;

template <Game G>
class ViewOf final : public AnyView {
 public:
  ViewOf(GamePtr<G> game, typename G::View view) : game_(std::move(game)), view_(std::move(view)) {}

  const typename G::View& native() const { return view_; }
  const AnyGame& game() const override { return *game_; }
  Seat seat() const override { return view_.seat(); }
  std::uint32_t seq() const override { return view_.seq(); }
  bool asked() const override { return view_.asked(); }
  Seat to_act() const override { return view_.to_act(); }
  bool terminal() const override { return view_.terminal(); }
  std::string_view phase() const override { return view_.phase(); }
  void legal(ActionList& out) const override { view_.legal(out); }

  bool is_legal(std::int64_t action) const override {
    if (action < 0 || action >= game_->num_actions()) return false;
    if constexpr (requires { view_.is_legal(Action{}); }) {
      return view_.is_legal(static_cast<Action>(action));
    } else {
      ActionList& list = scratch();
      view_.legal(list);
      return std::ranges::binary_search(list, static_cast<Action>(action));
    }
  }

  void observe(std::string_view event) override {
    auto next = view_;
    next.observe(G::Event::parse(game_->settled(), event));
    view_ = std::move(next);
  }

  void apply(std::int64_t action) override {
    const Action checked = game_->checked_action(action);
    if (!is_legal(action)) throw IllegalAction("action " + game_->notation(action) + " is not legal now");
    auto next = view_;
    next.apply(checked);
    view_ = std::move(next);
  }

  std::unique_ptr<AnyState> sample(std::uint64_t seed) const override {
    Rng rng(seed);
    return std::make_unique<StateOf<G>>(game_, view_.sample(rng), typename StateOf<G>::Sampled{});
  }

  std::optional<Record> record() const override { return view_.record(); }

  std::string to_bytes() const override {
    ByteWriter writer;
    writer.varint(static_cast<std::uint64_t>(G::kFormatVersion));
    view_.write(writer);
    return writer.take();
  }

  Json to_json() const override {
    JsonObject out{{"format", static_cast<int>(G::kFormatVersion)}};
    const Json inner = view_.to_json();
    for (const auto& member : inner.object("view")) out.push_back(member);
    return out;
  }

  std::unique_ptr<AnyView> clone() const override { return std::make_unique<ViewOf>(*this); }

  bool equals(const AnyView& other) const override {
    const auto* same = dynamic_cast<const ViewOf*>(&other);
    return same && view_ == same->view_ && (game_ == same->game_ || game_->rules() == same->game_->rules());
  }

  void encode(int block, float* out) const override { G::encode(view_, block, out); }
  void encode_actions(int block, std::span<const Action> actions, float* out) const override {
    for (const Action action : actions) game_->checked_action(action);
    G::encode_actions(view_, block, actions, out);
  }

 private:
  GamePtr<G> game_;
  typename G::View view_;
};

template <Game G>
class StateOf final : public AnyState {
 public:
  struct Sampled {};

  /// A hand at its beginning.
  StateOf(GamePtr<G> game, typename G::State state)
      : game_(std::move(game)), state_(std::move(state)), streams_(seats()) {
    state_.start(sink());
  }
  /// A hand in progress: its past events are unknown, later ones continue their numbers.
  StateOf(GamePtr<G> game, typename G::State state, Sampled)
      : game_(std::move(game)), state_(std::move(state)), streams_(seats()) {
    for (std::size_t seat = 0; seat < streams_.size(); ++seat)
      streams_[seat].first = state_.view(static_cast<Seat>(seat)).seq();
  }

  const AnyGame& game() const override { return *game_; }
  SeatMask to_act() const override { return state_.to_act(); }
  bool terminal() const override { return state_.terminal(); }

  std::vector<double> returns() const override {
    if (!state_.terminal()) throw InvalidInput("the hand has not ended: there are no returns yet");
    std::vector<double> out(seats());
    state_.returns(out.data());
    return out;
  }

  Json deal() const override { return state_.deal(); }
  void legal(std::int64_t seat, ActionList& out) const override {
    state_.legal(game_->checked_seat(seat), out);
  }

  void apply(std::int64_t seat, std::int64_t action) override {
    const Seat who = game_->checked_seat(seat);
    const Action what = game_->checked_action(action);
    if (!bothost::is_legal(state_, who, what))
      throw IllegalAction("seat " + std::to_string(seat) + " may not " + game_->notation(action) + " now" +
                          (terminal()            ? ": the hand has ended"
                           : to_act() >> who & 1 ? ""
                                                 : ": it is not asked"));
    actions_.reserve(actions_.size() + 1);
    state_.apply_legal(who, what, sink());
    actions_.emplace_back(who, what);
  }

  std::vector<std::string> events(std::int64_t seat, std::int64_t since) const override {
    const Stream& stream = streams_[at(game_->checked_seat(seat))];
    if (since < 0) throw InvalidInput("since: " + std::to_string(since) + " is negative");
    std::vector<std::string> out;
    for (std::size_t i = 0; i < stream.events.size(); ++i)
      if (static_cast<std::int64_t>(stream.first + i) >= since) out.push_back(stream.events[i].text());
    return out;
  }

  const std::vector<std::pair<Seat, Action>>& actions() const override { return actions_; }
  /// The game's own type, for code that knows the game (search, hand analysis).
  const typename G::State& native() const { return state_; }

  std::unique_ptr<AnyView> view(std::int64_t seat) const override {
    return std::make_unique<ViewOf<G>>(game_, state_.view(game_->checked_seat(seat)));
  }
  std::unique_ptr<AnyState> clone() const override { return std::make_unique<StateOf>(*this); }
  void encode_oracle(std::int64_t seat, int block, float* out) const override {
    G::encode_oracle(state_, game_->checked_seat(seat), block, out);
  }

 private:
  struct Stream {
    std::uint32_t first = 0;  // number of the first event kept
    std::vector<typename G::Event> events;
  };
  std::size_t seats() const { return at(game_->num_seats()); }
  auto sink() {
    return [this](Seat to, const typename G::Event& event) { streams_[at(to)].events.push_back(event); };
  }

  GamePtr<G> game_;
  typename G::State state_;
  std::vector<Stream> streams_;  // by seat; text is made on demand only
  std::vector<std::pair<Seat, Action>> actions_;
};

template <Game G>
class GameOf final : public AnyGame {
 public:
  explicit GameOf(const Json& options) : rules_(G::Rules::from_json(options)) {}

  const typename G::Rules& settled() const { return rules_; }

  std::string_view name() const override { return G::kName; }
  Json rules() const override { return rules_.to_json(); }
  int num_seats() const override { return rules_.num_seats(); }
  int num_actions() const override { return rules_.num_actions(); }
  int format_version() const override { return G::kFormatVersion; }
  const std::vector<Block>& blocks() const override { return G::blocks(); }

  std::unique_ptr<AnyState> new_state(std::uint64_t seed) const override {
    Rng rng(seed);
    return std::make_unique<StateOf<G>>(self(), typename G::State(rules_, rng));
  }
  std::unique_ptr<AnyState> state_from_deal(const Json& deal) const override {
    return std::make_unique<StateOf<G>>(self(), G::State::from_deal(rules_, deal));
  }
  std::unique_ptr<AnyView> new_view(std::int64_t seat) const override {
    return wrap(typename G::View(rules_, checked_seat(seat)));
  }
  std::unique_ptr<AnyView> view_from_bytes(std::string_view data) const override {
    ByteReader reader(data);
    if (const auto version = reader.varint(); version != static_cast<std::uint64_t>(G::kFormatVersion))
      throw InvalidInput("view bytes of format " + std::to_string(version) + "; this " +
                         std::string(G::kName) + " reads format " + std::to_string(G::kFormatVersion));
    auto view = G::View::read(rules_, reader);
    reader.expect_end();
    return wrap(std::move(view));
  }
  std::unique_ptr<AnyView> view_from_json(const Json& data) const override {
    data.at("format");
    const Json rest = without_format(data);
    auto view = G::View::from_snapshot(rules_, rest);
    require(view.to_json() == rest, "this is not a view as to_json gives it");
    return wrap(std::move(view));
  }
  std::unique_ptr<AnyView> view_from_snapshot(const Json& data) const override {
    return wrap(G::View::from_snapshot(rules_, without_format(data)));
  }
  std::unique_ptr<AnyVecEnv> vec_env(std::int64_t n, std::uint64_t seed) const override {
    constexpr std::int64_t kMost = 1 << 20;
    if (n < 1 || n > kMost)
      throw InvalidInput("n: " + std::to_string(n) + " is not within 1 .. " + std::to_string(kMost));
    return std::make_unique<VecEnvOf<G>>(shared_from_this(), rules_, at(n), seed);
  }

  std::string notation(std::int64_t action) const override {
    return G::notation(rules_, checked_action(action));
  }
  Action parse(std::string_view text) const override {
    const Action action = G::parse_action(rules_, text);
    return checked_action(action);
  }

 private:
  GamePtr<G> self() const { return std::static_pointer_cast<const GameOf>(shared_from_this()); }
  std::unique_ptr<AnyView> wrap(typename G::View view) const {
    return std::make_unique<ViewOf<G>>(self(), std::move(view));
  }
  static Json without_format(const Json& data) {
    JsonObject rest;
    for (const auto& [key, value] : data.object("view"))
      if (key != "format")
        rest.emplace_back(key, value);
      else if (value.integer("format", 0, 1 << 30) != G::kFormatVersion)
        throw InvalidInput("view JSON of another format; this " + std::string(G::kName) + " reads format " +
                           std::to_string(G::kFormatVersion));
    return rest;
  }

  typename G::Rules rules_;
};

}  // namespace erased

/// The run-time interface of game `G` under these options.
template <Game G>
std::shared_ptr<AnyGame> make_game(const Json& options) {
  return std::make_shared<erased::GameOf<G>>(options);
}

}  // namespace bothost
