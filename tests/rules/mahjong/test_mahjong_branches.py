"""Branches of a mahjong hand: the same scores as hands that are played through the State, and nothing else changes."""

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


def test_what_may_not_be_done_does_not_branch():
    state = GAME.new_state(1)
    illegal = np.setdiff1d(np.arange(GAME.num_actions), state.legal(0))[:1]
    for seat, actions in ((0, illegal), (1, state.legal(0)[:1]), (0, [GAME.num_actions]), (4, state.legal(0)[:1])):
        with pytest.raises(ValueError):
            mahjong.branches(state, seat, np.array(actions))
    with pytest.raises(TypeError, match="mahjong"):
        mahjong.branches(rules.game("othello").new_state(1), 0, np.array([0]))
    assert mahjong.branches(state, 0, np.array([], np.int32)).shape == (0, 4)
