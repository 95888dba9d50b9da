"""Opponents with habits: weaker than the rule player, and none where calls or the rule player's moves are learned."""

import re
from itertools import pairwise

import numpy as np
import pytest

from bothost import rules
from bothost.training.action_values import NativeActionValues
from bothost_deep_mc import branches, engine
from bothost_deep_mc.encode import (
    BEHIND,
    CARD_FEATURES,
    CHOICE,
    FEATURES,
    KINDS,
    LENGTHS,
    PLAYS_LEFT,
    RANKS,
    ROLES,
    UNBEATABLE,
    encode_rows,
)
from bothost_deep_mc.habits import habits
from bothost_deep_mc.model import Sizes, seeded
from bothost_deep_mc.selfplay import PlayOptions

GAME = rules.game("doudizhu")
SIZES = Sizes(trunk=(32, 16), head=(16, 16), bidder_trunk=(16,), bidder_head=(16,))


@pytest.fixture(scope="module")
def nets():
    model = seeded(SIZES, 3)
    return {role: NativeActionValues(model.of(role)) for role in ROLES}


def play(nets, strength, **given):
    options = PlayOptions(epsilon=0.0, habits=strength)
    return branches.play_round(GAME, nets, options, hands=200, seed=5, seen=SIZES.seen, **given)


def landlords_wins(found):
    """Of the deals in which the networks are the landlord: the share won."""
    return float((found.decisions["landlord"].returns > 0).mean())


def test_cells_lie_where_the_encoder_says():
    sizes = [int(n) for n in re.findall(r"\((\d+)\)", GAME.blocks["move_analysis"].doc)]
    ends = np.cumsum([CARD_FEATURES, *sizes]).tolist()
    _hand, plays, _cards, kind, rank, length, unbeatable, behind, _wins, choice = pairwise(ends)
    found = [(cells.start, cells.stop) for cells in (PLAYS_LEFT, KINDS, RANKS, LENGTHS, BEHIND)]
    assert found == [plays, kind, rank, length, behind]
    assert (unbeatable[0], *choice) == (UNBEATABLE, CHOICE, FEATURES)


def test_without_strength_the_move_is_the_rule_players():
    env = rules.vec_env(GAME, 40, 2)
    every = encode_rows(env, np.arange(40), analysis=True)
    owner = np.repeat(np.arange(40), np.diff(every.offsets))
    scores = {s: (every.moves * habits(np.random.default_rng(1), 40, s)[owner]).sum(axis=1) for s in (0.0, 6.0)}
    chosen = {
        s: [
            start + int(score[start:stop].argmax())
            for start, stop in zip(every.offsets, every.offsets[1:], strict=False)
        ]
        for s, score in scores.items()
    }
    assert every.moves[chosen[0.0], CHOICE].all()
    assert 0.2 < every.moves[chosen[6.0], CHOICE].mean() < 0.9


def test_players_with_habits_lose_more(nets):
    wins = [landlords_wins(play(nets, strength, expert_share=1.0)) for strength in (0.0, 20.0)]
    assert wins[0] + 0.1 < wins[1]


def test_what_is_imitated_has_no_habits(nets):
    found = play(nets, 6.0, imitate=True)
    assert all(decisions.moves[:, 0, CHOICE].all() for decisions in found.decisions.values())


def test_calls_are_learned_against_players_without_habits(nets):
    def bidding(strength):
        setup = engine.Setup(SIZES, PlayOptions(epsilon=0.0, habits=strength))
        order = engine.Order((1, 2), (0, 100), 1.0, imitate=False, keep_expert=False, branches=0)
        return engine.play(order, nets, setup).decisions

    with_habits, without = bidding(6.0), bidding(0.0)
    assert with_habits.keys() == without.keys()
    for role, decisions in without.items():
        np.testing.assert_array_equal(with_habits[role].moves, decisions.moves)
