"""Asks one account's lobby for tables: each wish in turn, and never for more tables than there are free slots."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

import structlog

from bothost.config import AccountSettings
from bothost.host.backoff import Backoff
from bothost.host.connection import Connection
from bothost.host.limited_lines import LimitedLines
from bothost.host.manners import Manners
from bothost.messages import Accept, CancelSeek, Decline, Invitation, Seek, SeekEnded, Wish
from bothost.tables.slots import Slots

_log = structlog.get_logger("bothost.host")


class Seeking:
    """The seeks of one account."""

    def __init__(
        self,
        settings: AccountSettings,
        slots: Slots,
        connection: Connection,
        busy: Callable[[], bool],
        seek_s: float,
        manners: Manners,
        lines: LimitedLines,
    ) -> None:
        """``busy()``: whether the host wants no further tables now. ``seek_s``: how long one seek may last."""
        self.settings = settings
        self.slots = slots
        self.manners = manners
        self.stopped = False
        """Whether the account drains: no more tables."""
        self.paused = False
        """Whether an operator paused the account."""
        self._lines = lines
        self._connection = connection
        self._busy = busy
        self._seek_s = seek_s
        self._turn = 0
        self._not_before = 0.0
        self._backoff = Backoff(0.2, 30.0)
        self.cancelled: deque[str] = deque(maxlen=64)
        """Our last cancelled seeks of this connection. The lobby may have answered one at the same time."""

    def seek_more(self, now: float) -> None:
        """Ask for tables until all slots are used."""
        wishes, slots = self.settings.wishes, self.slots
        if not wishes or self.stopped or self.paused or self._busy():
            return
        if slots.used < slots.cap and self.manners.pauses() is not None:
            return
        while slots.used < slots.cap and self._connection.connected and now >= self._not_before:
            seek = self._name()
            if not slots.reserve(seek, now + self._seek_s):
                return
            wish = wishes[self._turn % len(wishes)]
            self._turn += 1
            self.manners.waits(now)
            self._connection.feed(Seek(seek, Wish(wish.game, wish.rules, wish.attributes)))

    def expire(self, now: float) -> None:
        """Cancel seeks that found no table in time, so that the next wish is tried."""
        for seek in self.slots.expire(now):
            self._cancel(seek)

    def cancel(self, seek: str) -> None:
        self.slots.cancel(seek)
        self._cancel(seek)

    def _cancel(self, seek: str) -> None:
        self.cancelled.append(seek)
        self._connection.feed(CancelSeek(seek))

    def stop(self) -> None:
        """Ask for no more tables, and cancel open seeks."""
        self.stopped = True
        self._cancel_all()

    def pause(self) -> None:
        """Ask for no tables until ``resume``. Open tables are played to the end."""
        self.paused = True
        self._cancel_all()

    def resume(self, now: float) -> None:
        """Ask for tables again."""
        self.paused = False
        self.seek_more(now)

    def _cancel_all(self) -> None:
        for seek in self.slots.reserved:
            self.cancel(seek)

    def forget(self) -> None:
        """Forget all seeks, because the connection is lost."""
        for seek in self.slots.reserved:
            self.slots.cancel(seek)
        self.cancelled.clear()

    def ended(self, event: SeekEnded, now: float) -> None:
        """Handle a seek that found no table."""
        if self.slots.cancel(event.seek):
            if self._connection.connected:
                _log.info("seek_ended", account=self.settings.name, reason=event.reason)
            self.hold_off(now)

    def invited(self, event: Invitation, now: float) -> None:
        """Accept or decline a challenge. The slot is reserved first, because an acceptance cannot be withdrawn."""
        slots, game = self.slots, event.info.game
        ours = event.seek if event.seek in slots.reserved else None
        wanted = game in self.manners.settings.games or any(wish.game == game for wish in self.settings.wishes)
        takes = wanted and not self.stopped and not self.paused
        if takes and (reason := self.manners.challenge(game, event.info.attributes, event.players, now)) is not None:
            self._lines.log(now, "info", "challenge_declined", table=event.info.table, reason=reason)
            self.hold_off(now)
            takes = False
        named = event.expires_s or 0.0
        until = now + (named if 0.0 < named < self._seek_s else self._seek_s)
        seek = ours or self._name()
        if takes and (slots.reserve(seek, until) if ours is None else slots.extend(seek, until)):
            self._connection.feed(Accept(seek, event.invitation))
        else:
            self._connection.feed(Decline(event.invitation))

    def hold_off(self, now: float) -> None:
        """Wait before the next seek, because a seek or a table failed. Failures during the wait do not extend it."""
        if now >= self._not_before:
            self._not_before = now + self._backoff.next(0.1)

    def wait_until(self, moment: float) -> None:
        """Do not seek before this moment."""
        self._not_before = max(self._not_before, moment)

    def succeeded(self) -> None:
        """Record that a hand ended normally. The next pause is short again."""
        self._backoff.reset()

    def _name(self) -> str:
        return f"{self.settings.name}-{os.urandom(6).hex()}"
