"""Log lines that a lobby or a plugin causes. They are limited, so that neither can fill the log."""

from __future__ import annotations

import math
import time
from typing import Any, Literal

import structlog

from bothost.tables.clock import TokenBucket

_log = structlog.get_logger("bothost.host")

REPORT_S = 60.0
"""Lines that are left out are reported at most this often."""


class LimitedLines:
    """Lines of one origin. ``log`` counts those that it leaves out, and reports how many, at most once a minute."""

    def __init__(self, left_out: str, per_minute: float, **origin: str) -> None:
        """``left_out``: the event that reports them. ``origin``: fields of every line."""
        self._event = left_out
        self._origin = origin
        self._lines = TokenBucket(per_minute / 60.0, per_minute, 0.0)
        self._left_out = 0
        self._report_at = -math.inf

    def log(
        self, now: float, level: Literal["info", "warning", "error", "exception"], event: str, **values: Any
    ) -> None:
        """Log a line, unless there were too many before ``now``, monotonic seconds."""
        if self._lines.take(now):
            getattr(_log, level)(event, **(self._origin | values))
        else:
            self._left_out += 1
        if self._left_out and now >= self._report_at:
            self.report()
            self._report_at = now + REPORT_S

    def report(self) -> None:
        """Log how many lines were left out since the last report, if any were."""
        if self._left_out:
            _log.warning(self._event, **self._origin, lines=self._left_out)
            self._left_out = 0


LOBBY_LINES_PER_MINUTE = 60.0
"""Lines that one account logs about what its lobby sends, such as notices and unknown frames."""


def lobby_lines(lobby: str, account: str) -> LimitedLines:
    """The lines of one account."""
    return LimitedLines("lobby_lines_left_out", LOBBY_LINES_PER_MINUTE, lobby=lobby, account=account)


FAILURES_PER_MINUTE = 10.0
"""Warnings about the failures of one strategy."""


class FailureLines:
    """The warnings about strategies that fail. One strategy does not crowd out those of others."""

    def __init__(self) -> None:
        self._lines: dict[str, LimitedLines] = {}

    def warning(self, event: str, strategy: str, **values: Any) -> None:
        if strategy not in self._lines:
            self._lines[strategy] = LimitedLines("failures_left_out", FAILURES_PER_MINUTE, strategy=strategy)
        self._lines[strategy].log(time.monotonic(), "warning", event, **values)

    def report(self) -> None:
        """Log how many warnings were left out since the last report."""
        for lines in self._lines.values():
            lines.report()
