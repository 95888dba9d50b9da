"""Rollouts travel packed: small, and without loss."""

from __future__ import annotations

import pickle

import numpy as np
import torch

from bothost import rules
from bothost.training.packing import pack, unpack
from bothost.training.ppo import PpoOptions
from bothost.training.rollout import Rollout, RolloutTask, SelfPlay
from bothost_phase_ppo.encode import BLOCKS, TURNS
from bothost_phase_ppo.model import PhaseNet


def test_what_is_unpacked_is_what_was_packed_and_a_tenth_as_large():
    torch.manual_seed(0)
    play, net = SelfPlay(RolloutTask(rules.game("pairing"), BLOCKS[1], TURNS), 16, 32), PhaseNet()
    rollout = play.collect(net, net, seed=1)
    whole = sum(field.nbytes for field in rollout if isinstance(field, np.ndarray))
    packed = pack(rollout)
    first = [np.copy(field) for field in rollout[:-1]]
    play.collect(net, net, seed=2)  # overwrites the first rollout's memory, not what was packed
    again = unpack(pickle.loads(pickle.dumps(packed)))
    for name, mine, theirs in zip(Rollout._fields, first, again, strict=False):
        assert mine.dtype == theirs.dtype and np.array_equal(mine, theirs), name
    assert again.steps == packed.steps
    assert packed.nbytes < whole / 9
    assert again.batch(PpoOptions()).samples == 16 * 32


def test_observations_that_are_no_bits_travel_as_they_are():
    rng = np.random.default_rng(1)
    observations = rng.normal(size=(2, 3, 9)).astype(np.float32)
    observations[:, :, 4] = 1.0
    observations[0, 0, 0] = np.nan
    plain = np.zeros((2, 3), np.float32)
    masks = rng.random((2, 3, 11)) < 0.5
    rollout = Rollout(
        observations, masks, np.full((2, 3), 10), plain, plain, plain, plain > 0, plain[0], np.ones(1, np.float32), 7
    )
    again = unpack(pack(rollout))
    assert pack(rollout).binary.sum() == 1
    assert np.array_equal(again.observations, observations, equal_nan=True) and np.array_equal(again.masks, masks)
