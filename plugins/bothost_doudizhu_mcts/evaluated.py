"""Running a search whose leaves another strategy values."""

from __future__ import annotations

import math
import time

import numpy as np

from bothost import Evaluator
from bothost.rules import Search


def search_on(search: Search, evaluator: Evaluator | None, *, iterations: int, ms: float = math.inf) -> None:
    """So many iterations more, or until no further batch of leaves would be valued in time.

    Equal limits of iterations make equal batches, and so equal searches, whether or not the time ended them.
    """
    end = search.iterations + iterations
    until = time.perf_counter() + ms / 1000.0
    slowest = 0.0
    while not search.run(iterations=end - search.iterations, ms=_left_ms(until - slowest)):
        if evaluator is None:
            raise ValueError("leaves wait for values, and there is no evaluator")
        began = time.perf_counter()
        views, legal = zip(*search.leaves, strict=True)
        search.feed(np.concatenate(evaluator.action_values(views, legal), dtype=np.float32))
        slowest = max(slowest, time.perf_counter() - began)


def _left_ms(until: float) -> float | None:
    return max(0.0, until - time.perf_counter()) * 1000.0 if math.isfinite(until) else None
