"""Decides when a connection is dropped, and when to reconnect."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from bothost.host.backoff import Backoff

HURRY_S = 1.0
"""When one account has reconnected, the others of its lobby try within this time."""


class ConnectionSettings(msgspec.Struct, frozen=True):
    """Settings of connections."""

    frame_bytes: int = 1 << 20
    heartbeat_s: float = 20.0
    """Interval between two heartbeats. After two intervals without a sign of life the connection is dropped."""
    connect_s: float = 30.0
    """How long connecting and logging in may take in total."""
    queue_frames: int = 10_000
    """Most frames that wait for the rate limit."""
    backoff_first_s: float = 0.5
    backoff_most_s: float = 60.0
    steady_s: float = 30.0
    """After a connection that lasted this long, reconnecting begins with a short pause again."""
    quarantine_after: int = 3
    """An adapter that fails this often within ``quarantine_s`` pauses for that time."""
    quarantine_s: float = 300.0
    refused_s: float = 60.0
    """Minimum pause before a retry if the lobby refuses credentials that worked before."""


class Reconnect:
    """Schedules the next attempt to connect."""

    def __init__(self, settings: ConnectionSettings, attempt: Callable[[], None]) -> None:
        self._settings = settings
        self._attempt = attempt
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff(settings.backoff_first_s, settings.backoff_most_s)
        self._timer: asyncio.TimerHandle | None = None
        self._may_hurry = False
        self._hurried = False
        """Whether ``hurry`` already shortened the pause of this outage."""
        self._failures: list[float] = []
        """When the adapter failed recently, monotonic seconds."""

    @property
    def pending(self) -> bool:
        """Whether an attempt is scheduled."""
        return self._timer is not None

    def schedule(self, at_least_s: float) -> float:
        """Schedule an attempt. Returns the seconds until then."""
        wait = self._backoff.next(at_least_s)
        self._timer = self._loop.call_later(wait, self._try)
        return wait

    def hurry(self) -> None:
        """Try soon, because another account of the lobby connected. Once per outage; not if the lobby set a time."""
        if self._timer is None or not self._may_hurry:
            return
        soon = self._loop.time() + self._backoff.spread(HURRY_S)
        if soon < self._timer.when():
            self._hurried, self._may_hurry = True, False
            self._timer.cancel()
            self._timer = self._loop.call_at(soon, self._try)

    def allow_hurry(self, allowed: bool) -> None:
        """Set whether ``hurry`` may shorten the pause of this outage."""
        self._may_hurry = allowed and not self._hurried

    def succeeded(self) -> None:
        """Record that the connection works. The next pause is short again."""
        self._backoff.reset()
        self._hurried = False

    def quarantine_s(self) -> float:
        """Record a failure of the adapter. Returns the seconds that it must pause; 0 if it has not failed often."""
        now, settings = time.monotonic(), self._settings
        self._failures = [at for at in self._failures if at > now - settings.quarantine_s] + [now]
        if len(self._failures) < settings.quarantine_after:
            return 0.0
        self._failures = []
        return settings.quarantine_s

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _try(self) -> None:
        self._timer = None
        self._attempt()


class Watchdog:
    """Drops a connection that does not log in in time, or shows no sign of life. An open socket is not a session."""

    def __init__(
        self,
        settings: ConnectionSettings,
        signs: Callable[[], object],
        ask: Callable[[], None],
        cut: Callable[[str], None],
    ) -> None:
        """``signs()`` changes with every sign of life, ``ask`` asks for one, ``cut`` drops the connection."""
        self._settings = settings
        self._signs = signs
        self._ask = ask
        self._cut = cut
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._seen: object = None
        self._silent = 0

    def expect_login(self) -> None:
        self.stop()
        seconds = self._settings.connect_s
        self._timer = self._loop.call_later(seconds, self._cut, f"not logged in within {seconds:g} s")

    def expect_life(self) -> None:
        """Watch for signs of life, now that we are logged in."""
        self.stop()
        self._seen, self._silent = None, 0
        self._timer = self._loop.call_later(self._settings.heartbeat_s, self._beat)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._timer = self._loop.call_later(self._settings.heartbeat_s, self._beat)
        signs = self._signs()
        self._silent = 0 if signs != self._seen else self._silent + 1
        self._seen = signs
        if self._silent >= 2:
            self._cut("no sign of life")
        else:
            self._ask()
