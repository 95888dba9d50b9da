"""The time for a decision, by the table's clock and the position."""

from __future__ import annotations

import math
import time

from bothost import Budget

RESERVE_MS = 3.0
"""Reserve for the steps after the search, in ms."""
RESERVE_SHARE = 0.03
"""Additional reserve as a share of the remaining time, because the machine may be busy."""
OPENING_CARDS = 12
"""A lead from a hand with at least this many cards is an opening lead. It plans the whole hand, and gets all time."""
BANK_SHARE = 0.04
"""A host gives a decision about 5 % of the bank in addition to the grant. Unused bank time is kept."""
FOLLOW_SHARE, LEAD_SHARE = 0.35, 0.6
"""Shares of that bank time that are used for answers, and for later leads."""


def allotted_ms(budget: Budget, *, leads: bool, cards: int, max_ms: float) -> float:
    """Milliseconds for a search; infinity if there is no clock.

    Unused grant time is lost, so all of it is used. Bank time is used by the importance of the decision.
    """
    if math.isinf(budget.deadline):
        return math.inf
    left = budget.left_ms()
    usable = left - RESERVE_MS - RESERVE_SHARE * left
    lent = min(BANK_SHARE * budget.bank_ms, usable)
    if lent > 0.0 and not (leads and cards >= OPENING_CARDS):
        usable -= lent * (1.0 - (LEAD_SHARE if leads else FOLLOW_SHARE))
    return max(0.0, min(usable, max_ms))


class Stopwatch:
    """Tracks the remaining time and iterations of a search."""

    def __init__(self, ms: float, iterations: float) -> None:
        self.began = time.perf_counter()
        self.ms = ms
        self.iterations = iterations
        self.done = 0

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self.began) * 1000.0

    def left_ms(self) -> float:
        return max(0.0, self.ms - self.elapsed_ms)

    def left_iterations(self) -> float:
        """The remaining iterations, also limited by the remaining time at the present speed."""
        by_limit = self.iterations - self.done
        elapsed = self.elapsed_ms
        if math.isinf(self.ms) or self.done == 0 or elapsed <= 0.0:
            return by_limit
        return min(by_limit, self.done / elapsed * self.left_ms())

    def over(self) -> bool:
        return self.done >= self.iterations or self.left_ms() <= 0.0
