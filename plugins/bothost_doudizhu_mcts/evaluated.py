"""Runs a search whose leaves are valued by the network or another strategy."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bothost import Evaluator
from bothost.rules import ActionArray, FloatArray, Search, View


class LeafValues(Protocol):
    """Values leaves: the network, or a strategy that is an ``Evaluator``."""

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> Sequence[FloatArray]:
        """See :meth:`bothost.Evaluator.action_values`."""


def search_on(
    search: Search, evaluator: LeafValues | None, *, iterations: int, ms: float = math.inf, batch: int = 1
) -> None:
    """Run this many more iterations, or until there is no time for another batch of leaves.

    ``batch``: most leaves of one inference. The first inference, of the root alone, estimates a batch's time.
    Equal limits of iterations give equal batches, and so equal searches, also if the time limit ended one.
    """
    end = search.iterations + iterations
    until = time.perf_counter() + ms / 1000.0
    slowest = 0.0
    while not search.run(iterations=end - search.iterations, ms=_left_ms(until - slowest)):
        if evaluator is None:
            raise ValueError("the search needs values of leaves, but there is no evaluator")
        began = time.perf_counter()
        views, legal = zip(*search.leaves, strict=True)
        search.feed(np.concatenate(evaluator.action_values(views, legal), dtype=np.float32))
        slowest = max(slowest, (time.perf_counter() - began) * batch / len(views))


def _left_ms(until: float) -> float | None:
    return max(0.0, until - time.perf_counter()) * 1000.0 if math.isfinite(until) else None


def address_of(evaluator: Evaluator) -> str:
    """Its name, and the version and sha256 of its model, for statistics and lineages."""
    return evaluator.name if evaluator.model is None else evaluator.model.label
