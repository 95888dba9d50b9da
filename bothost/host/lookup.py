"""Looks up hands of an earlier process in the log, so that they continue with the same ids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import structlog

from bothost.errors import StoreUnavailable
from bothost.host.backoff import Backoff
from bothost.host.tasks import BackgroundTasks
from bothost.tables.conduct import TableKey
from bothost.tables.hand import Hand, Logged

_log = structlog.get_logger("bothost.host")


class RecoveredHand(msgspec.Struct, frozen=True):
    """A hand of an earlier process that has not ended."""

    game_id: bytes
    seed: int
    moves: tuple[Logged, ...]


class HandKey(NamedTuple):
    """A hand that may be in the log from an earlier process."""

    key: TableKey
    hand: str
    seat: int


Find = Callable[[Sequence[HandKey]], Sequence[RecoveredHand | None]]
"""Returns the log's entry for each of these hands. Called in a thread."""


class Lookup:
    """Looks up hands. A restarted host resumes all tables at once, so one query covers a turn of the event loop.

    Without the log we do not know what the earlier process answered, and a second, different answer is worse than none.
    So these hands wait while the database is unreachable. Other hands do not.
    """

    def __init__(
        self,
        find: Find,
        found: Callable[[Hand, RecoveredHand | None], None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        """``found`` is called for each hand, also if it has ended meanwhile, ``fatal`` for an unexpected error."""
        self._find = find
        self._found = found
        self._fatal = fatal
        self._waiting: list[Hand] = []
        self._tasks = BackgroundTasks()

    def add(self, hand: Hand) -> None:
        """Queue a hand for the next query."""
        self._waiting.append(hand)
        if len(self._waiting) == 1:
            self._tasks.spawn(self._look_up())

    def close(self) -> None:
        self._tasks.cancel()

    async def _look_up(self) -> None:
        await asyncio.sleep(0)
        hands, self._waiting = self._waiting, []
        keys = [HandKey(hand.key, hand.name, hand.seat) for hand in hands]
        backoff = Backoff(0.2, 2.0)
        while True:
            try:
                found = await asyncio.to_thread(self._find, keys)
                break
            except StoreUnavailable as error:
                if not backoff.attempts:
                    _log.error("lookup_waits", hands=len(hands), error=str(error), advice=error.advice)
                await asyncio.sleep(backoff.next(0.1))
            except Exception as error:
                _log.exception("lookup_failed", hands=len(hands))
                self._fatal(error)
                return
        for hand, known in zip(hands, found, strict=True):
            self._found(hand, known)
