"""Composite actions are exactly the ways through the phases, and both kinds of network can play each other."""

from __future__ import annotations

import numpy as np
import torch

from bothost.rules import game, vec_env
from bothost_phase_ppo.model import PhaseNet
from experiments.phase_ppo.duel import RuleSide, duel
from experiments.phase_ppo.flat import COMPOSITES, ENTER, STEPS, FlatPairing


def test_composites_are_distinct_and_as_many_as_the_layout_says():
    assert STEPS.shape == (COMPOSITES, 3) == (3588, 3)
    assert len({tuple(row) for row in STEPS.tolist()}) == COMPOSITES
    assert (STEPS[:, 1] == STEPS[:, 2]).sum() == 104


def test_legal_composites_are_those_that_the_phases_allow_one_by_one():
    phased, env = game("pairing"), FlatPairing().vec_env(1, seed=3)
    rng = np.random.default_rng(0)
    masks = np.empty((1, COMPOSITES), np.bool_)
    state = phased.state_from_deal(vec_env(phased, 1, 3).deal(0))
    while not state.terminal:
        seat = state.to_act[0]
        env.legal_mask(masks)
        legal = np.flatnonzero(masks[0])
        assert {tuple(row) for row in STEPS[legal].tolist()} == set(ways(state.view(seat)))
        assert env.seat[0] == seat
        chosen = int(rng.choice(legal))
        env.step(np.array([chosen], np.int32))
        for action in STEPS[chosen]:
            if action >= 0:
                state.apply(seat, int(action))
        assert env.done[0] == state.terminal
    assert env.returns[0].tolist() == list(state.returns)


def ways(view):
    for phase in view.legal():
        entered = view.clone()
        entered.apply(int(phase))
        assert phase >= ENTER
        for first in entered.legal():
            chosen = entered.clone()
            chosen.apply(int(first))
            pairs = chosen.phase == entered.phase and chosen.phase in ("B", "pairing")
            for second in chosen.legal() if pairs else [-1]:
                yield int(phase), int(first), int(second)


def test_a_network_of_either_kind_plays_its_equal_evenly():
    torch.manual_seed(0)
    flat = PhaseNet(COMPOSITES)
    even = duel(flat, flat, deals=20, seed=1)
    assert even.wins == 0.5 and even.lead == 0.0
    mixed = duel(PhaseNet(), flat, deals=20, seed=1)
    assert 0.0 <= mixed.wins <= 1.0 and mixed.wins_ci95 > 0


def test_the_rule_player_meets_networks():
    torch.manual_seed(0)
    fresh, found = PhaseNet(), game("pairing")
    beaten = duel(fresh, None, deals=40, seed=1)
    assert beaten.wins < 0.3 and beaten.lead < -5
    env = vec_env(found, 2, seed=1)
    observations, masks = np.empty((2, 384), np.float32), np.empty((2, 58), np.bool_)
    env.legal_mask(masks)
    chosen = RuleSide(env).choose(np.array([1]), observations, masks)
    assert chosen.shape == (1,) and masks[1, chosen[0]]
