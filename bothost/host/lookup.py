"""Finds in the log the hands that an earlier process started: they continue under their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import structlog

from bothost.errors import StoreUnavailable
from bothost.host.limits import Backoff
from bothost.host.tasks import BackgroundTasks
from bothost.tables.conduct import TableKey
from bothost.tables.hand import Hand, Logged
from bothost.tables.session import Session

_log = structlog.get_logger("bothost.host")


class RecoveredHand(Protocol):
    """A hand that the log knows from an earlier process."""

    @property
    def game_id(self) -> bytes: ...
    @property
    def seed(self) -> int: ...
    @property
    def moves(self) -> tuple[Logged, ...]: ...


class HandKey(NamedTuple):
    """A hand that may be in the log from an earlier process."""

    key: TableKey
    hand: str
    seat: int


Find = Callable[[Sequence[HandKey]], Sequence[RecoveredHand | None]]
"""What the log knows of each of these hands; called in a thread."""


class Lookup:
    """Looks hands up. A restarted host resumes all of its tables at once, so one query serves one turn of the loop.

    Without the log we cannot know what was answered, and a second answer would be worse than none. So these hands wait
    while the database is away; other hands do not.
    """

    def __init__(
        self,
        find: Find,
        found: Callable[[Session, Hand, RecoveredHand | None], None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        """``found`` is called with each hand that is still open, ``fatal`` with an unexpected error."""
        self._find = find
        self._found = found
        self._fatal = fatal
        self._waiting: list[tuple[Session, Hand]] = []
        self._tasks = BackgroundTasks()

    def add(self, session: Session, hand: Hand) -> None:
        """Look this hand up soon."""
        self._waiting.append((session, hand))
        if len(self._waiting) == 1:
            self._tasks.spawn(self._look_up())

    def close(self) -> None:
        self._tasks.cancel()

    async def _look_up(self) -> None:
        await asyncio.sleep(0)
        hands, self._waiting = self._waiting, []
        backoff = Backoff(0.2, 2.0)
        while hands:
            keys = [HandKey(session.key, hand.name, hand.seat) for session, hand in hands]
            try:
                found = await asyncio.to_thread(self._find, keys)
            except StoreUnavailable as error:
                if not backoff.attempts:
                    _log.error("lookup_waits", hands=len(hands), error=str(error), advice=error.advice)
                await asyncio.sleep(backoff.next(0.1))
                hands = [(session, hand) for session, hand in hands if session.hand is hand]
                continue
            except Exception as error:
                _log.exception("lookup_failed", hands=len(hands))
                self._fatal(error)
                return
            for (session, hand), known in zip(hands, found, strict=True):
                if session.hand is hand:
                    self._found(session, hand, known)
            return
