"""Waits between attempts to connect."""

from __future__ import annotations

import random


class Backoff:
    """Exponential backoff with full jitter: each wait is uniform between 0 and a growing bound."""

    def __init__(self, first_s: float = 0.5, most_s: float = 60.0, rng: random.Random | None = None) -> None:
        self.first_s = first_s
        self.most_s = most_s
        self.attempts = 0
        self._rng = rng or random.Random()

    def next(self, at_least_s: float = 0.0) -> float:
        """Seconds to wait before the next attempt."""
        bound = min(self.most_s, self.first_s * 2.0 ** min(self.attempts, 30))
        self.attempts += 1
        return at_least_s + self._rng.uniform(0.0, bound)

    def spread(self, most_s: float) -> float:
        """A uniform wait, so that many accounts do not connect at the same moment."""
        return self._rng.uniform(0.0, most_s)

    def reset(self) -> None:
        """Start again with short waits, because the connection works."""
        self.attempts = 0
