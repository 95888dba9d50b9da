"""Batches of records for the fit. Each depends on the seed and the step's number only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bothost.errors import UsageError
from bothost.rules import FloatArray
from bothost_doudizhu_mcts.encode import encode, roles
from bothost_doudizhu_mcts.model import Candidates
from bothost_doudizhu_mcts.records import Records


def weights(visits: npt.NDArray[np.int64], half_visits: float) -> FloatArray:
    """Weights of records in the loss: n / (n + half_visits) for n visits."""
    return (visits / (visits + half_visits)).astype(np.float32)


def split(found: Records, held_out: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Training positions and held-out positions. Raises UsageError if either is empty."""
    held = found.held_out(held_out)
    if held.all() or not held.any():
        advice = "collect or log more hands, or hold out more: --option held_out=0.2"
        raise UsageError("there are too few deals to hold some out", advice=advice)
    return np.flatnonzero(~held), np.flatnonzero(held)


class Samples:
    """The training positions, in a different order in every epoch."""

    def __init__(
        self, found: Records, positions: int, candidates: int, half_visits: float, held_out: float, seed: int
    ) -> None:
        self.found = found
        self.learnt, self.held = split(found, held_out)
        self.positions = min(positions, len(self.learnt))
        self.candidates = candidates
        self.half_visits = half_visits
        self.seed = seed
        self.steps = len(self.learnt) // self.positions
        """Number of steps of an epoch."""
        self._order: tuple[int, npt.NDArray[np.int64]] = (-1, self.learnt)

    def batch(self, step: int) -> Batch:
        """The batch of step number ``step``."""
        epoch, place = divmod(step, self.steps)
        if self._order[0] != epoch:
            self._order = (epoch, np.random.default_rng([self.seed, 0, epoch]).permutation(self.learnt))
        chosen = self._order[1][place * self.positions : (place + 1) * self.positions]
        rng = np.random.default_rng([self.seed, 1, step])
        rows = [self._some(int(position), rng) for position in chosen]
        return gather(self.found, chosen.tolist(), rows, self.half_visits)

    def _some(self, position: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        begin, end = int(self.found.offsets[position]), int(self.found.offsets[position + 1])
        if end - begin <= self.candidates:
            return np.arange(begin, end)
        return np.sort(rng.choice(np.arange(begin, end), self.candidates, replace=False))


class Batch(NamedTuple):
    """Records of some positions."""

    candidates: Candidates
    values: Tensor
    """(candidates,) float32"""
    weights: Tensor
    """(candidates,) float32"""
    outcomes: Tensor
    """(candidates,) bool: whether the value is the result of one hand, +1 or -1."""


def gather(found: Records, positions: list[int], rows: list[npt.NDArray[np.int64]], half_visits: float) -> Batch:
    """Make a batch of some records (``rows``) of some positions. Raises UsageError for a position that is none."""
    try:
        views = [found.view(position) for position in positions]
        inputs = encode(views, [found.actions[part] for part in rows])
    except ValueError as error:
        raise UsageError(f"a record cannot be read: {error}", advice="collect the records again") from error
    every = np.concatenate(rows)
    visits = found.visits[every]
    fields = found.values[every], weights(visits, half_visits), visits == 1
    return Batch(Candidates.of(inputs, roles(views)), *map(torch.from_numpy, fields))
