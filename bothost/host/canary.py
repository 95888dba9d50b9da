"""Tests whether a canary is significantly worse than the champion.

Each hand of the canary is paired with a hand that the champion played in the same game at the same lobby at about the
same time. Each pair gives two scores against the canary, 0, ½ or 1: one by the results, one by failures (a fallback or
a refused move). If the canary is no worse, the mean of both is at most ½. A betting martingale
(``bothost.sequential``) tests this after every hand. The probability that one host ever rolls back a canary that is
no worse is at most ``ALPHA``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple

from bothost.sequential import BettingTest
from bothost.tables.hand import Hand

ALPHA = 0.01
"""Significance level, divided evenly between the two tests."""
WAITING = 200
"""Most hands that wait for a hand of the other model."""


class Played(NamedTuple):
    score: float | None
    failed: bool


class Trial:
    """One canary against its champion."""

    def __init__(self) -> None:
        self.results = BettingTest(0.5, ALPHA / 2)
        self.failures = BettingTest(0.5, ALPHA / 2)
        self.pairs = 0
        self.worse = self.better = 0
        self.failed = [0, 0]
        """Hands with failures, of the champion and of the canary, among the pairs."""
        self._waiting: dict[tuple[str, str], tuple[deque[Played], deque[Played]]] = defaultdict(
            lambda: (deque(maxlen=WAITING), deque(maxlen=WAITING))
        )

    def add(self, where: tuple[str, str], played: Played, is_canary: bool) -> None:
        waiting = self._waiting[where]
        waiting[is_canary].append(played)
        while waiting[0] and waiting[1]:
            self._pair(waiting[0].popleft(), waiting[1].popleft())

    def _pair(self, champion: Played, canary: Played) -> None:
        self.pairs += 1
        self.failed[0] += champion.failed
        self.failed[1] += canary.failed
        self.failures.update((1 + canary.failed - champion.failed) / 2)
        if champion.score is not None and canary.score is not None:
            self.worse += canary.score < champion.score
            self.better += canary.score > champion.score
            self.results.update(0.5 + (champion.score > canary.score) / 2 - (champion.score < canary.score) / 2)

    @property
    def verdict(self) -> str | None:
        if self.failures.rejected:
            return (
                f"failures in {self.failed[1]} of {self.pairs} hands, in {self.failed[0]} of the champion's "
                f"(p = {self.failures.p_value:.2g}, significant at {ALPHA / 2:g})"
            )
        if self.results.rejected:
            return (
                f"of {self.pairs} pairs of hands it scored less in {self.worse} and more in {self.better} "
                f"(p = {self.results.p_value:.2g}, significant at {ALPHA / 2:g})"
            )
        return None


class Judge:
    """Judges the canaries of a host, by its own tables."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}

    def begin(self, strategy: str) -> None:
        """Start to judge a new canary."""
        self._trials[strategy] = Trial()

    def closed(self, hand: Hand, score: float | None, *, is_canary: bool) -> None:
        """Record the end of a hand of the canary or its champion. ``score``: that of our seat."""
        actor = hand.actor
        trial = self._trials.get(actor.plan.strategy.name)
        if trial is not None:
            trial.add((actor.table.lobby, actor.table.game.name), Played(score, hand.failed), is_canary)

    def verdicts(self) -> Iterator[tuple[str, str]]:
        """Yield the strategies whose canaries are worse, and the statistics. Each is reported once."""
        for name, trial in list(self._trials.items()):
            if (verdict := trial.verdict) is not None:
                del self._trials[name]
                yield name, verdict
