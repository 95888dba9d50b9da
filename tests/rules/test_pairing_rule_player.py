"""The native rule player of pairing, in views, in batch environments and in playouts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bothost import rules
from bothost.rules.pairing import rule_choice, rule_returns

GAME = rules.game("pairing")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"preset": "four-phase"},
    {"skill_a": 3, "skill_b": 3, "refill": False},
    {"colour_set": 13, "rank_bonus": 20},
    {"hand": 5, "pool": 3, "discard_to_hand": 2},
]


def positions(game: rules.Game, hands: int, stray: float = 0.4) -> Iterator[rules.View]:
    """Views of the seat that is asked; with a chance of ``stray`` it then does something else than the rule player."""
    rng = np.random.default_rng(1)
    for hand in range(hands):
        state = game.new_state(hand)
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            yield view
            action = rule_choice(view)[0]
            state.apply(seat, int(rng.choice(view.legal())) if rng.random() < stray else action)


def finish(state: rules.State) -> tuple[float, ...]:
    while not state.terminal:
        seat = state.to_act[0]
        state.apply(seat, rule_choice(state.view(seat))[0])
    return state.returns


def test_its_choices_are_legal_and_stay_what_they_were() -> None:
    """The digest is that of an implementation in Python, which chose the same in all these positions."""
    digest = hashlib.sha256()
    for options in OPTIONS:
        for view in positions(rules.game("pairing", **options), 10):
            action, reason = rule_choice(view)
            assert view.is_legal(action)
            digest.update(f"{action} {reason}\n".encode())
    assert digest.hexdigest()[:16] == "6acb9985f5e8b2b0"


@pytest.mark.parametrize(
    ("weights", "says"),
    [({"force_from": 0.0}, "a forced pair"), ({"force_from": 1e9}, None)],
    ids=["always", "never"],
)
def test_weights_decide(weights: dict[str, float], says: str | None) -> None:
    first = GAME.new_state(1).view(0)
    action, reason = rule_choice(first, **weights)
    assert (GAME.notation(action) == "enter:B") == (says is not None)
    assert says is None or reason.startswith(says)


@pytest.mark.parametrize("weight", ["deny", "keep", "promise", "force_from"])
def test_weights_must_be_numbers_of_moderate_size(weight: str) -> None:
    view = next(positions(GAME, 1))
    for bad in (math.nan, math.inf, -1e308):
        if weight == "force_from" and not math.isnan(bad):
            assert view.is_legal(rule_choice(view, force_from=bad)[0])
            continue
        with pytest.raises(ValueError, match=r"1000|must be a number"):
            rule_choice(view, **{weight: bad})


def test_batch_environments_offer_it() -> None:
    env = rules.vec_env(GAME, 16, seed=4)
    states = [GAME.state_from_deal(env.deal(i)) for i in range(env.n)]
    some = np.array([11, 3, 7])
    for _ in range(60):
        seats = env.seat.copy()
        actions = env.rule_actions(np.arange(env.n))
        assert actions.dtype == np.int32
        assert env.rule_actions(some).tolist() == actions[some].tolist()
        for i, state in enumerate(states):
            assert actions[i] == rule_choice(state.view(int(seats[i])))[0]
            state.apply(int(seats[i]), int(actions[i]))
        env.step(actions)
        for i in np.flatnonzero(env.done):
            states[i] = GAME.state_from_deal(env.deal(int(i)))


def test_batch_environments_refuse_what_cannot_be() -> None:
    env = rules.vec_env(GAME, 4, seed=1)
    assert env.rule_actions(np.empty(0, np.int64)).shape == (0,)
    for wrong in (4, -1):
        with pytest.raises(ValueError, match=rf"environment {wrong} is not within 0 \.\. 3"):
            env.rule_actions(np.array([0, wrong]))
    with pytest.raises(TypeError):
        env.rule_actions(np.array([0], np.int32))
    with pytest.raises(ValueError, match="othello has no rule player"):
        rules.vec_env(rules.game("othello"), 1, seed=1).rule_actions(np.array([0]))


def test_playouts_end_as_the_rule_player_ends_them() -> None:
    """Where the seat knows all, there is one deal: every playout of an action is the same, and can be followed."""
    state = next(late for late in _late(GAME) if len(late.legal(late.to_act[0])) > 1)
    seat = state.to_act[0]
    view = state.view(seat)
    returns = rule_returns(view, deals=3, seed=0)
    assert returns.dtype == np.float32
    assert returns.shape == (3, len(view.legal()))
    for column, action in enumerate(view.legal()):
        after = state.clone()
        after.apply(seat, int(action))
        assert returns[:, column].tolist() == [finish(after)[seat]] * 3


def _late(game: rules.Game) -> Iterator[rules.State]:
    """States of an asked seat from whose view one deal alone is possible, up to the order of what nobody draws."""
    for hand in range(200):
        state = game.new_state(hand)
        while not state.terminal:
            seat = state.to_act[0]
            hidden = rules.Oracle(state, seat).encode("hidden")
            if not hidden[1].any() and hidden[0].sum() <= 10:
                yield state.clone()
            state.apply(seat, rule_choice(state.view(seat))[0])


def test_playouts_are_a_function_of_view_and_seed_over_many_deals() -> None:
    view = GAME.new_state(3).view(0)
    one, same, other = (rule_returns(view, deals=50, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert len(np.unique(one[:, 0])) > 10, "hidden cards matter"
    assert np.array_equal(rule_returns(view, deals=20, seed=1), one[:20])


def test_playouts_of_some_actions_are_columns_of_those_of_all() -> None:
    for seed in range(3):
        view = GAME.new_state(seed).view(0)
        legal = view.legal()
        every = rule_returns(view, deals=20, seed=1)
        assert np.array_equal(rule_returns(view, deals=20, seed=1, actions=legal), every)
        assert np.array_equal(rule_returns(view, deals=20, seed=1, actions=legal[::-2]), every[:, ::-2])


def test_playouts_beat_the_rule_player() -> None:
    """One step of improvement: the action of the best mean where it is better by more than its error."""
    won, hands = 0.0, 0
    for deal in range(12):
        for seat in (0, 1):
            state = GAME.new_state(1000 + deal)
            while not state.terminal:
                asked = state.to_act[0]
                view = state.view(asked)
                action = rule_choice(view)[0]
                if asked == seat and len(legal := view.legal()) > 1:
                    gains = rule_returns(view, deals=24, seed=deal)
                    gains = gains - gains[:, legal == action]
                    sure = gains.mean(axis=0) - gains.std(axis=0) / np.sqrt(len(gains))
                    sure[legal == action] = 0.0
                    action = int(legal[sure.argmax()])
                state.apply(asked, action)
            won += state.returns[seat]
            hands += 1
    assert won / hands > 0.0


def test_playouts_refuse_what_cannot_be() -> None:
    state = GAME.new_state(1)
    asked = state.to_act[0]
    with pytest.raises(ValueError, match="not asked"):
        rule_returns(state.view(1 - asked), deals=1, seed=1)
    with pytest.raises(ValueError, match="not asked"):
        rule_choice(state.view(1 - asked))
    for deals in (0, -1, 100_001):
        with pytest.raises(ValueError, match=r"is not within 1 \.\. 100000"):
            rule_returns(state.view(asked), deals=deals, seed=1)
    view = state.view(asked)
    legal = view.legal()
    illegal = np.setdiff1d(np.arange(58, dtype=np.int32), legal)[:1]
    for actions, why in (
        (legal[:0], "there are none"),
        (legal[[0, 0]], "there twice"),
        (illegal, "is not legal"),
        (np.array([-1], np.int32), "is not legal"),
    ):
        with pytest.raises(ValueError, match=why):
            rule_returns(view, deals=1, seed=1, actions=actions)
    other = rules.game("othello").new_state(1).view(0)
    for call in (lambda: rule_choice(other), lambda: rule_returns(other, deals=1, seed=1)):
        with pytest.raises(TypeError, match=r"of pairing$"):
            call()
