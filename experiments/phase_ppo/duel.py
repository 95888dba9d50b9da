"""Decision phases against composite actions: matches between networks of either kind and the rule player, in the batch
environment.

A deal is played twice with the seats swapped, and networks take their most probable actions; intervals are over deals.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from bothost.rules import FloatArray, VecEnv, game, vec_env
from bothost.training.rollout import native
from bothost_phase_ppo.encode import ACTIONS, BLOCKS, SIZES
from experiments.phase_ppo.flat import ENTER, NONE, STEPS, legal_composites

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int32]


class Duel(NamedTuple):
    """The result of a match for its first side."""

    wins: float
    """Share of hands won, draws half."""
    wins_ci95: float
    """Half the width of its 95 % interval."""
    lead: float
    """Mean lead at the end of a hand, points."""
    lead_ci95: float


class Side(Protocol):
    """One of the two sides, at n hands."""

    def choose(self, rows: npt.NDArray[np.intp], observations: FloatArray, masks: BoolArray) -> IntArray:
        """Actions of the game in phases for the hands ``rows``, given observations (n, size) and masks (n, 58)."""
        ...


class RuleSide:
    """The game's own rule player in the hands of ``env``."""

    def __init__(self, env: VecEnv) -> None:
        self._env = env

    def choose(self, rows: npt.NDArray[np.intp], observations: FloatArray, masks: BoolArray) -> IntArray:
        """See ``Side``."""
        return self._env.rule_actions(rows)


class NetworkSide:
    """A network; the number of its outputs says whether its actions are phases or composites."""

    def __init__(self, model: torch.nn.Module, hands: int) -> None:
        self._model = native(model)
        self._plans = np.full((hands, 2), NONE, np.int32)

    @torch.inference_mode()
    def choose(self, rows: npt.NDArray[np.intp], observations: FloatArray, masks: BoolArray) -> IntArray:
        """See ``Side``."""
        if not len(rows):
            return np.empty(0, np.int32)
        deciding = masks[rows, ENTER:].any(axis=1)  # the others continue with the actions that they have chosen
        actions: IntArray = self._plans[rows, 0].copy()
        self._plans[rows] = np.stack([self._plans[rows, 1], np.full(len(rows), NONE, np.int32)], axis=1)
        logits = self._logits(observations[rows])
        if logits.shape[1] == ACTIONS:
            actions[:] = np.where(masks[rows], logits, -np.inf).argmax(axis=1)
            return actions
        if not deciding.any():
            return actions
        at = rows[deciding]
        legal = legal_composites(observations[at], masks[at, ENTER:])
        steps = STEPS[np.where(legal, logits[deciding], -np.inf).argmax(axis=1)]
        actions[deciding], self._plans[at] = steps[:, 0], steps[:, 1:]
        return actions

    def _logits(self, observations: FloatArray) -> FloatArray:
        return self._model(torch.from_numpy(observations))[0].numpy()


def duel(first: torch.nn.Module, second: torch.nn.Module | None, deals: int, seed: int, *, version: int = 1) -> Duel:
    """Play ``deals`` deals, each with the seats both ways round. ``second`` None: the rule player.

    ``version``: of the encoder that the networks see the game by.
    """
    leads = np.stack([_leads(first, second, deals, seed, seat, version) for seat in (0, 1)])
    wins = np.where(leads > 0, 1.0, np.where(leads == 0, 0.5, 0.0)).mean(axis=0)
    lead = leads.mean(axis=0)
    half = 1.96 / math.sqrt(deals)
    return Duel(float(wins.mean()), half * float(wins.std(ddof=1)), float(lead.mean()), half * float(lead.std(ddof=1)))


def _leads(
    first: torch.nn.Module, second: torch.nn.Module | None, deals: int, seed: int, seat: int, version: int
) -> FloatArray:
    """Lead (deals,) of ``first``, which has ``seat``, at the end of the first hand of each environment."""
    env = vec_env(game("pairing"), deals, seed)
    sides: tuple[Side, Side] = (
        NetworkSide(first, deals),
        RuleSide(env) if second is None else NetworkSide(second, deals),
    )
    observations, masks = np.empty((deals, SIZES[version]), np.float32), np.empty((deals, ACTIONS), np.bool_)
    leads, going = np.zeros(deals, np.float32), np.ones(deals, np.bool_)
    while going.any():
        env.encode(BLOCKS[version], observations)
        env.legal_mask(masks)
        actions = np.full(deals, NONE, np.int32)
        for own, side in zip((env.seat == seat, env.seat != seat), sides, strict=True):
            rows = np.flatnonzero(own & going)
            actions[rows] = side.choose(rows, observations, masks)
        env.step(actions)
        ended = np.flatnonzero(env.done & going)
        leads[ended] = env.returns[ended, seat]
        going[ended] = False
    return leads
