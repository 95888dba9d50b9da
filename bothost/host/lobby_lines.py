"""The log lines that a lobby causes. They are limited, so that no lobby can fill the log."""

from __future__ import annotations

from typing import Any, Literal

import structlog

from bothost.tables.clock import TokenBucket

_log = structlog.get_logger("bothost.host")

LINES_PER_MINUTE = 60.0
"""Lines that one account logs about what its lobby sends, such as notices and unknown frames."""


class LobbyLines:
    """The lines of one account. ``log`` counts those that it leaves out, and reports how many there are."""

    def __init__(self, lobby: str, account: str) -> None:
        self._lobby = lobby
        self._account = account
        self._lines = TokenBucket(LINES_PER_MINUTE / 60.0, LINES_PER_MINUTE, 0.0)
        self._left_out = 0

    def log(
        self, now: float, level: Literal["info", "warning", "error", "exception"], event: str, **values: Any
    ) -> None:
        """Log a line, unless there were too many before ``now``, monotonic seconds."""
        if self._lines.take(now):
            getattr(_log, level)(event, account=self._account, **values)
            return
        self._left_out += 1
        if self._left_out & (self._left_out - 1) == 0:  # the first, the second, the fourth, …
            _log.warning("lobby_lines_left_out", lobby=self._lobby, account=self._account, lines=self._left_out)
