"""Branches of a mahjong hand: the same scores as hands that are played through the State, and nothing else changes."""

from itertools import pairwise

import numpy as np
import pytest

from bothost import rules
from bothost.rules import mahjong

GAME = rules.game("mahjong")


def played(state, seat, action, choice):
    """Scores after ``action``, played on by a rule player's ``choice`` one decision after another."""
    state = state.clone()
    state.apply(seat, action)
    while not state.terminal:
        who = state.to_act[0]
        state.apply(who, choice(state.view(who))[0])
    return state.returns


def positions(seed):
    """States with the seat that is asked, every tenth of a hand, and all in which several seats may claim."""
    state, number = GAME.new_state(seed), 0
    while not state.terminal:
        if number % 10 == 0 or len(state.to_act) > 1:
            yield state.clone(), state.to_act[-1]
        number += 1
        state.apply(state.to_act[0], mahjong.rule_choice(state.view(state.to_act[0]))[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_branches_are_hands_that_the_rule_player_plays_on(weighted):
    choice = mahjong.acceptance_weighted_choice if weighted else mahjong.rule_choice
    differ = several = 0
    for state, seat in (found for seed in range(4) for found in positions(seed)):
        several += len(state.to_act) > 1
        actions = state.legal(seat)[:4]
        before = state.actions
        scores = mahjong.branches(state, seat, actions, acceptance_weighted=weighted)
        assert scores.shape == (len(actions), 4) and scores.dtype == np.float32
        assert scores.tolist() == [list(played(state, seat, action, choice)) for action in actions.tolist()]
        assert not scores.sum(axis=1).any()
        assert state.actions == before
        differ += len(set(scores[:, seat].tolist())) > 1
    assert differ > 5 and several > 0


def test_both_rule_players_go_on_in_their_own_ways():
    found = [next(iter(positions(seed))) for seed in range(6)]
    plain, weighted = (
        np.stack([mahjong.branches(state, seat, state.legal(seat)[:2], acceptance_weighted=w) for state, seat in found])
        for w in (False, True)
    )
    assert not np.array_equal(plain, weighted)


def estimate(state):
    """Values (4,) of the hands before the last draw, by the weights of ``mahjong.luck``."""
    inputs, drawers, wall = (of[-1] for of in mahjong.luck_inputs(state))
    weights, widths = np.load(mahjong.LUCK_WEIGHTS), (4 * inputs.shape[1] + 5, 128, 64, 1)
    place = np.eye(4)[(np.arange(4) - drawers) % 4]
    x = np.array([[*np.roll(inputs, -seat, axis=0).ravel(), *place[seat], wall / 84] for seat in range(4)])
    for n, m in pairwise(widths):
        layer, weights = weights[: (n + 1) * m].reshape(n + 1, m), weights[(n + 1) * m :]
        x = np.maximum(x, 0.0) @ layer[:-1] + layer[-1]  # no input of the first layer is negative
    return (x - x.mean())[:, 0]


@pytest.mark.parametrize("draws", [1, 3])
def test_a_branch_with_draws_is_valued_before_the_last_of_them_is_seen(draws):
    ended = valued = 0
    for start, seat in (found for seed in range(2) for found in positions(seed)):
        seen = len(mahjong.luck_inputs(start)[1])
        actions = start.legal(seat)[:2]
        for action, scores in zip(actions, mahjong.branches(start, seat, actions, draws=draws), strict=True):
            state, who = start.clone(), seat
            state.apply(who, action)
            while not state.terminal and len(mahjong.luck_inputs(state)[1]) < seen + draws:
                who = state.to_act[0]
                state.apply(who, mahjong.rule_choice(state.view(who))[0])
            expected = state.returns if state.terminal else estimate(state)
            np.testing.assert_allclose(scores, expected, atol=1e-3)
            ended, valued = ended + state.terminal, valued + (not state.terminal)
    assert ended > 0 and valued > 10


def test_what_may_not_be_done_does_not_branch():
    state = GAME.new_state(1)
    illegal = np.setdiff1d(np.arange(GAME.num_actions), state.legal(0))[:1]
    for seat, actions in ((0, illegal), (1, state.legal(0)[:1]), (0, [GAME.num_actions]), (4, state.legal(0)[:1])):
        with pytest.raises(ValueError):
            mahjong.branches(state, seat, np.array(actions))
    with pytest.raises(ValueError, match="draws"):
        mahjong.branches(state, 0, state.legal(0)[:1], draws=-1)
    with pytest.raises(TypeError, match="mahjong"):
        mahjong.branches(rules.game("othello").new_state(1), 0, np.array([0]))
    flowers = rules.game("mahjong", flowers=True).new_state(1)
    with pytest.raises(ValueError, match="flowers"):
        mahjong.branches(flowers, 0, flowers.legal(0)[:1], draws=1)
    assert mahjong.branches(state, 0, np.array([], np.int32)).shape == (0, 4)
