// Many hands of one game stepped at once, by static dispatch and without events.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/any_game.h"

namespace bothost {

/// Environment i plays the deals of `Rng::stream(seed, i)`, whatever the others do. A step allocates nothing,
/// once the buffer of legal ids has grown to its size.
template <Game G>
class VecEnvOf final : public AnyVecEnv {
 public:
  VecEnvOf(std::shared_ptr<const AnyGame> game, const typename G::Rules& rules, std::size_t n,
           std::uint64_t seed)
      : game_(std::move(game)), rules_(rules), num_seats_(at(rules.num_seats())) {
    seat_.resize(n);
    offsets_.resize(n + 1);
    returns_.resize(n * num_seats_);
    done_.resize(n);
    scores_.resize(num_seats_);
    rngs_.reserve(n);
    states_.reserve(n);
    reserve_ids(16 * n);
    for (std::size_t i = 0; i < n; ++i) {
      rngs_.push_back(Rng::stream(seed, i));
      states_.emplace_back(rules_, rngs_.back());
      ask(i);
    }
  }

  const AnyGame& game() const override { return *game_; }
  std::size_t size() const override { return states_.size(); }

  void step(std::span<const Action> actions) override {
    check(actions);
    std::ranges::fill(returns_, 0.0F);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      auto& state = states_[i];
      if (actions[i] == kNoAction) {
        done_[i] = false;
        ask(i);  // again: the ids of those before it may have moved
        continue;
      }
      state.apply_legal(seat_[i], actions[i], NoEvents{});
      done_[i] = state.terminal();
      if (done_[i]) {
        state.returns(scores_.data());
        for (std::size_t s = 0; s < num_seats_; ++s)
          returns_[i * num_seats_ + s] = static_cast<float>(scores_[s]);
        state = typename G::State(rules_, rngs_[i]);
      }
      ask(i);
    }
  }

  void encode(int block, Rows rows, float* out) const override {
    for (const auto row : rows) {
      G::encode(asked_view(row), block, out);
      out += G::blocks()[at(block)].size();
    }
  }

  void encode_actions(int block, Rows rows, float* out) const override {
    for (const auto row : rows) {
      const auto actions = legal(at(row));
      G::encode_actions(asked_view(row), block, actions, out);
      out += actions.size() * G::blocks()[at(block)].size();
    }
  }

  void encode_oracle(int block, Rows rows, float* out) const override {
    for (const auto row : rows) {
      G::encode_oracle(states_[at(row)], seat_[at(row)], block, out);
      out += G::blocks()[at(block)].size();
    }
  }

  void legal_mask(bool* out) const override {
    const auto width = at(rules_.num_actions());
    std::memset(out, 0, states_.size() * width * sizeof(bool));
    for (std::size_t i = 0; i < states_.size(); ++i)
      for (const Action action : legal(i)) out[i * width + at(action)] = true;
  }

  Json deal(std::size_t index) const override { return states_[index].deal(); }

  void rule_actions([[maybe_unused]] Rows rows, [[maybe_unused]] Action* out) const override {
    if constexpr (requires(const typename G::View& view) { G::rule_action(view); }) {
      for (const auto row : rows) *out++ = G::rule_action(asked_view(row));
    } else {
      throw InvalidInput(std::string(G::kName) + " has no rule player for batches");
    }
  }

 private:
  typename G::View asked_view(std::int64_t row) const { return states_[at(row)].view(seat_[at(row)]); }
  std::span<const Action> legal(std::size_t i) const {
    return {ids_.get() + offsets_[i], at(offsets_[i + 1] - offsets_[i])};
  }

  void check(std::span<const Action> actions) const {
    if (actions.size() != states_.size())
      throw InvalidInput(std::to_string(actions.size()) + " actions for " + std::to_string(states_.size()) +
                         " environments");
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i] == kNoAction) continue;
      const auto ids = legal(i);
      if (!std::ranges::binary_search(ids, actions[i]))
        throw IllegalAction("environment " + std::to_string(i) + ": action " + std::to_string(actions[i]) +
                            " is not legal");
    }
  }

  /// Asks the lowest seat that may act, and lists its actions behind those of environment i - 1.
  void ask(std::size_t i) {
    const SeatMask mask = states_[i].to_act();
    if (mask == 0)
      throw std::logic_error(std::string(G::kName) + ": no seat is asked in a hand that has not ended");
    seat_[i] = static_cast<Seat>(std::countr_zero(mask));
    legal_.clear();
    states_[i].legal(seat_[i], legal_);
    if (legal_.empty()) throw std::logic_error(std::string(G::kName) + ": an asked seat has no legal action");
    const auto begin = at(offsets_[i]);
    if (begin + legal_.size() > capacity_) reserve_ids(2 * (begin + legal_.size()));
    std::memcpy(ids_.get() + begin, legal_.data(), legal_.size() * sizeof(Action));
    offsets_[i + 1] = static_cast<std::int64_t>(begin + legal_.size());
  }

  void reserve_ids(std::size_t capacity) {
    auto larger = std::make_shared<Action[]>(capacity);
    if (ids_) std::memcpy(larger.get(), ids_.get(), capacity_ * sizeof(Action));
    ids_ = std::move(larger);
    capacity_ = capacity;
  }

  std::shared_ptr<const AnyGame> game_;  // owns the rules
  const typename G::Rules& rules_;
  std::size_t num_seats_;
  std::vector<typename G::State> states_;
  std::vector<Rng> rngs_;
  std::size_t capacity_ = 0;
  ActionList legal_;            // of one environment, hot in cache
  std::vector<double> scores_;  // of one hand
};

}  // namespace bothost
