"""How long a decision may think: the table's clock, and what the position deserves of it."""

from __future__ import annotations

import math
import time

from bothost import Budget

RESERVE_MS = 3.0
"""Kept for what comes after the search: reading its result, handing it over."""
RESERVE_SHARE = 0.03
"""Kept besides, as a part of what is left: the machine may be busy."""
OPENING_CARDS = 12
"""A lead from a hand of so many cards is an opening lead: the plan of the hand, worth all the time there is."""
BANK_SHARE = 0.04
"""A host lends a decision about 5 % of the bank beyond the grant; what is not spent of it stays in the bank."""
FOLLOW_SHARE, LEAD_SHARE = 0.35, 0.6
"""How much of what is lent is spent on answers, and on later leads."""


def allotted_ms(budget: Budget, *, leads: bool, cards: int, max_ms: float) -> float:
    """Milliseconds for a search; infinity where there is no clock.

    The grant of a move is lost when it is not used, so that it is used; the bank is lent, and spent by importance.
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
    """Tells how much time and how many iterations a search may still have."""

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
        """At the pace so far; infinity before there is one."""
        by_limit = self.iterations - self.done
        elapsed = self.elapsed_ms
        if math.isinf(self.ms) or self.done == 0 or elapsed <= 0.0:
            return by_limit
        return min(by_limit, self.done / elapsed * self.left_ms())

    def over(self) -> bool:
        return self.done >= self.iterations or self.left_ms() <= 0.0
