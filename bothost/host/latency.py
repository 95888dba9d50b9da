"""A latency histogram that is cheap enough for the hot path. Not thread-safe: used on the event loop."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

BOUNDS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets, in seconds. There is one more bucket without a bound."""


class Latency:
    """A histogram of seconds."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    @property
    def total(self) -> int:
        """Number of observations."""
        return sum(self.counts)

    def cumulative(self) -> list[int]:
        """Observations up to each bound, then all of them."""
        return list(accumulate(self.counts))

    def quantile(self, q: float) -> float | None:
        """The bound below which a share ``q`` of the observations lies; None without observations.

        If that share is only reached beyond the last bound, returns the last bound, because infinity is not JSON.
        """
        total = self.total
        if total == 0:
            return None
        return next(
            (bound for bound, upto in zip(BOUNDS_S, self.cumulative(), strict=False) if upto >= q * total), BOUNDS_S[-1]
        )

    @classmethod
    def merged(cls, parts: Iterable[Latency]) -> Latency:
        """Several histograms as one."""
        made = cls()
        for part in parts:
            made.counts = [a + b for a, b in zip(made.counts, part.counts, strict=True)]
            made.sum_s += part.sum_s
        return made
