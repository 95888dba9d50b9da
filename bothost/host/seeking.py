"""Asks one account's lobby for tables: by the wishes in turn, and never for more than there are free slots."""

from __future__ import annotations

import os
from collections.abc import Callable

import structlog

from bothost.config import AccountSettings
from bothost.host.connection import Connection
from bothost.host.limits import Backoff
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
    ) -> None:
        """``busy``: whether the host wants no further tables now. ``seek_s``: how long one seek may last."""
        self.settings = settings
        self.slots = slots
        self.manners = manners
        self.stopped = False
        """Whether the account drains: no more tables."""
        self.paused = False
        """Whether an operator wants no further tables for now."""
        self._connection = connection
        self._busy = busy
        self._seek_s = seek_s
        self._turn = 0
        self._not_before = 0.0
        self._backoff = Backoff(0.2, 30.0)

    def seek_more(self, now: float) -> None:
        """Ask for tables, up to the slots."""
        wishes, slots = self.settings.wishes, self.slots
        if not wishes or self.stopped or self.paused or self._busy():
            return
        if not self._connection.connected or now < self._not_before:
            return
        if slots.used < slots.cap and self.manners.pauses() is not None:
            return
        while slots.used < slots.cap and self._connection.connected:
            seek = self._name()
            if not slots.reserve(seek, now + self._seek_s):
                return
            wish = wishes[self._turn % len(wishes)]
            self._turn += 1
            self.manners.waits(now)
            self._connection.feed(Seek(seek, Wish(wish.game, wish.rules, wish.attributes)))
            if seek not in slots.reserved and slots.used == 0:
                return

    def expire(self, now: float) -> None:
        """Cancel the seeks that found no table in time; the next wish has its turn."""
        for seek in self.slots.expire(now):
            self._connection.feed(CancelSeek(seek))

    def cancel(self, seek: str) -> None:
        self.slots.cancel(seek)
        self._connection.feed(CancelSeek(seek))

    def stop(self) -> None:
        """Ask for no more tables."""
        self.stopped = True
        self._cancel_all()

    def pause(self) -> None:
        """Ask for no tables until ``resume``. Those that we have are played to their end."""
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
        """The connection is lost, and all seeks with it."""
        for seek in self.slots.reserved:
            self.slots.cancel(seek)

    def ended(self, event: SeekEnded, now: float) -> None:
        """The lobby found no table."""
        if self.slots.cancel(event.seek):
            if self._connection.connected:
                _log.info("seek_ended", account=self.settings.name, reason=event.reason)
            self.hold_off(now)

    def invited(self, event: Invitation, now: float) -> None:
        """Reserve a slot before accepting: an acceptance cannot be taken back."""
        seek = self._name()
        game = event.info.game
        wanted = game in self.manners.settings.games or any(wish.game == game for wish in self.settings.wishes)
        takes = wanted and not self.stopped and not self.paused
        if takes and (reason := self.manners.challenge(game, event.info.attributes, event.players, now)) is not None:
            _log.info("challenge_declined", account=self.settings.name, table=event.info.table, reason=reason)
            self.hold_off(now)
            takes = False
        if not takes or not self.slots.reserve(seek, now + (event.expires_s or self._seek_s)):
            self._connection.feed(Decline(event.invitation))
        else:
            self._connection.feed(Accept(seek, event.invitation))

    def hold_off(self, now: float) -> None:
        """A table came to nothing: wait before the next seek. Several at once count as one failure."""
        if now >= self._not_before:
            self._not_before = now + self._backoff.next(0.1)

    def wait_until(self, moment: float) -> None:
        """Do not seek before this moment."""
        self._not_before = max(self._not_before, moment)

    def succeeded(self) -> None:
        """A hand ended normally: the next pause is short again."""
        self._backoff.reset()

    def _name(self) -> str:
        return f"{self.settings.name}-{os.urandom(6).hex()}"
