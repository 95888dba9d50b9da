"""Rate limit and backoff."""

from __future__ import annotations

import random


class TokenBucket:
    """A token bucket with ``rate`` tokens a second, at most ``burst``. Times are monotonic seconds."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Take a token. Returns False if there is none."""
        self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens < 1.0 - 1e-9:
            return False
        self._tokens -= 1.0
        return True

    def wait(self) -> float:
        """Seconds until the next token, as of the last ``take``."""
        return max(0.0, (1.0 - self._tokens) / self.rate)


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
