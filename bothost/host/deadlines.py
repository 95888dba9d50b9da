"""One event loop timer for the deadlines of all hands."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from bothost.tables.clock import Deadlines
from bothost.tables.hand import Hand


class DeadlineTimer:
    """Calls ``expire(hand, now)`` at ``hand.due_at``."""

    def __init__(self, expire: Callable[[Hand, float], None]) -> None:
        self._expire = expire
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines[Hand]()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, hand: Hand) -> None:
        """Watch the hand's ``due_at``."""
        if hand.due_at < hand.wake_at and self._deadlines.watch(hand):
            self._set_timer()

    def forget(self, hand: Hand) -> None:
        """Stop watching the hand."""
        self._deadlines.forget(hand)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self.close()
        self._timer = self._loop.call_later(max(0.0, self._deadlines.next() - time.monotonic()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = time.monotonic()
        due = deque(self._deadlines.due(now))
        try:
            while due:
                hand = due.popleft()
                self._expire(hand, now)
                self.watch(hand)
        finally:  # a failure at one hand, such as a panic of its game, leaves the others their deadlines
            for hand in due:
                self.watch(hand)
            if len(self._deadlines):
                self._set_timer()
