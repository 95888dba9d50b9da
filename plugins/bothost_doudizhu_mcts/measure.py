"""Measures the network's values on held-out deals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bothost.rules import FloatArray
from bothost_doudizhu_mcts.model import Networks
from bothost_doudizhu_mcts.records import Records
from bothost_doudizhu_mcts.samples import Batch, Samples, gather, weights

WELL_VISITED = 100
"""Records with at least this many visits have a standard error below 0.1."""
POSITIONS = 64


class HeldOut:
    """Positions of held-out deals, with all their records.

    Figures over held-out records. ``l1`` is the mean distance with the weights of the loss, ``l1_plain`` without them.
    ``l1_well_visited`` is over records with at least 100 visits (``l1`` if there are none). ``best_move`` is the share
    of positions with several moves where the network's best move has the most visits. ``regret`` is how much higher the
    values of the most visited moves are than those of the network's best. ``constant`` has the same distances for the
    best constant, the weighted median of the training records.
    """

    def __init__(self, found: Records, samples: Samples, most: int) -> None:
        self.found = found
        self.half_visits = samples.half_visits
        rng = np.random.default_rng(0)
        self.positions = np.sort(rng.permutation(samples.held)[:most])
        self.rows = [np.arange(found.offsets[i], found.offsets[i + 1]) for i in self.positions]
        learnt = np.repeat(np.isin(np.arange(len(found)), samples.learnt), np.diff(found.offsets))
        constant = _weighted_median(found.values[learnt], weights(found.visits[learnt], self.half_visits))
        every = np.concatenate(self.rows)
        self.constant = {"value": constant} | self._distances(np.full(len(every), constant, np.float32))

    def measure(self, net: Networks) -> dict[str, float]:
        """The figures of a network."""
        with torch.no_grad():
            values = np.concatenate([net(batch.candidates)[0].numpy() for batch in self._batches()])
        return self._distances(values) | self._choices(values)

    def _batches(self) -> Iterator[Batch]:
        for begin in range(0, len(self.positions), POSITIONS):
            part = slice(begin, begin + POSITIONS)
            yield gather(self.found, self.positions[part].tolist(), self.rows[part], self.half_visits)

    def _distances(self, values: FloatArray) -> dict[str, float]:
        every = np.concatenate(self.rows)
        visits = self.found.visits[every]
        distance = np.abs(values - self.found.values[every])
        weight = weights(visits, self.half_visits)
        well = visits >= WELL_VISITED
        l1 = float((weight * distance).sum() / weight.sum())
        return {
            "l1": l1,
            "l1_plain": float(distance.mean()),
            "l1_well_visited": float(distance[well].mean()) if well.any() else l1,
        }

    def _choices(self, values: FloatArray) -> dict[str, float]:
        right, choices, end, regret = 0, 0, 0, 0.0
        for rows in self.rows:
            begin, end = end, end + len(rows)
            if len(rows) > 1:
                choices += 1
                own, searched = int(values[begin:end].argmax()), int(self.found.visits[rows].argmax())
                right += own == searched
                regret += float(self.found.values[rows[searched]] - self.found.values[rows[own]])
        return {"best_move": right / max(1, choices), "regret": regret / max(1, choices)}


def _weighted_median(values: FloatArray, weight: FloatArray) -> float:
    """The constant with the lowest weighted L1."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order], dtype=np.float64)
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
