"""What the network of the four-colour pairing game is shown, and what a trainer makes rewards of."""

from __future__ import annotations

import numpy as np
from pairing_oracle import CARDS
from pairing_positions import play, position

from bothost import rules


def planes_of(view: rules.View) -> tuple[list[set[str]], list[float]]:
    features = view.encode("features")
    assert features.shape == (384,)
    planes = [{CARDS[i] for i in np.flatnonzero(features[52 * k : 52 * k + 52])} for k in range(7)]
    return planes, [round(float(value), 4) for value in features[364:]]


def test_features_of_a_position_by_hand() -> None:
    deal = position(deck=["r7", "b8", "r9", "b9"], aside=["b10"], scores=[30, 18])
    state = rules.game("pairing", pool=2, hand=4).state_from_deal(deal)
    play(state, "enter:A", "g1", "enter:B", "r2")
    planes, scalars = planes_of(state.view(0))
    assert planes == [
        {"r2", "r7"}, {"g5", "w6"}, set(deal["libraries"][0]), set(deal["libraries"][1]), set(), {"r2"},
        {"w3", "b4", "b8", "r9", "b9", "b10"},
    ]  # fmt: skip
    assert scalars == [
        0, 0, 1, 0, 0, 0, 0,  # phase B
        0, 1, 1, 1,  # charges
        round(4 / 42, 4),  # deck
        0.25, 0.15, 0.1,  # scores over 120
        0.5, 0.5,  # hands of 4
        1.5,  # turn 12 of 8
        1, 1,  # discards left, a first card is chosen
    ]  # fmt: skip
    planes, scalars = planes_of(state.view(1))
    assert planes[0] == {"w3", "b4"}
    assert planes[5] == set()
    assert planes[6] == {"g1", "r2", "r7", "b8", "r9", "b9", "b10"}
    assert scalars[:11] == [0] * 7 + [1, 1, 0, 1]
    assert scalars[12:15] == [0.15, 0.25, -0.1]


def test_features_before_the_deal_are_zero_and_at_the_deal_add_up() -> None:
    game = rules.game("pairing")
    assert not game.new_view(0).encode("features").any()
    planes, scalars = planes_of(game.new_state(1).view(0))
    assert [len(plane) for plane in planes] == [10, 10, 0, 0, 0, 0, 32]
    assert scalars == [1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0]


def test_scores_and_oracle_blocks() -> None:
    state = rules.game("pairing", pool=2).state_from_deal(position(scores=[5, 9]))
    assert state.view(1).encode("scores").tolist() == [9, 5]
    hidden = rules.Oracle(state, 0).encode("hidden")
    assert {CARDS[i] for i in np.flatnonzero(hidden[0])} == {"w3", "b4"}
    assert [round(float(hidden[1][CARDS.index(card)]), 3) for card in ("r7", "b8", "r9")] == [1, 0.5, 0.333]


def test_vec_env_gives_the_lead_at_every_turn() -> None:
    """What a trainer makes its reward of: "scores" while a hand runs, ``returns`` when it has ended."""
    game = rules.game("pairing")
    env = rules.vec_env(game, 8, seed=3)
    rng = np.random.default_rng(3)
    states = [game.state_from_deal(env.deal(i)) for i in range(env.n)]
    scores = np.empty((env.n, 2), np.float32)
    for _ in range(200):
        env.encode("scores", scores)
        for i, state in enumerate(states):
            assert scores[i].tolist() == state.view(int(env.seat[i])).encode("scores").tolist()
        offsets = env.legal_offsets
        actions = env.legal_ids[offsets[:-1] + (rng.random(env.n) * np.diff(offsets)).astype(np.int64)]
        seats = env.seat.copy()
        env.step(actions)
        for i, state in enumerate(states):
            state.apply(int(seats[i]), int(actions[i]))
            assert env.done[i] == state.terminal
            if state.terminal:
                assert env.returns[i].tolist() == list(state.returns)
                states[i] = game.state_from_deal(env.deal(i))
