"""Changes on the server, and server-sent events that report them to a browser."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from bothost.errors import BothostError, SchemaOutdated, StoreUnavailable
from bothost.rules.game import Json

KEEP_ALIVE_S = 15.0
"""A stream without news sends a sign of life this often, so that server and page notice a dead connection."""


SCREENS = 8
"""Most streams of one game or job, in all tabs together."""
OPEN_ELSEWHERE = "this is open in too many tabs: close one of them"
DATABASE_AWAY = "the database cannot be used now"
"""Stands for the messages of DATABASE_ERRORS, which name its address."""
DATABASE_ERRORS = (StoreUnavailable, SchemaOutdated)

log = structlog.get_logger("bothost.web")


def error_json(error: BothostError) -> Json:
    """What a browser reads about an error."""
    if not isinstance(error, DATABASE_ERRORS):
        return {"error": str(error), "advice": error.advice}
    log.warning("the database cannot be used", error=str(error), advice=error.advice)
    return {"error": DATABASE_AWAY, "advice": error.advice}


class Changes:
    """Wakes everyone who watches something after each of its changes."""

    def __init__(self) -> None:
        self._version = 0
        self._changed = asyncio.Condition()

    async def note(self) -> None:
        """Something has changed."""
        self._version += 1
        async with self._changed:
            self._changed.notify_all()

    async def each(self) -> AsyncIterator[int]:
        """Yields the number of changes at once, and again whenever there was another one."""
        seen = -1
        while True:
            async with self._changed:
                while self._version == seen:
                    await self._changed.wait()
            seen = self._version
            yield seen


class Places:
    """Places for streams: each stream holds a connection as long as its page is open."""

    def __init__(self, most: int, full: str, each: int | None = None) -> None:
        """``full``: what is said to those who find no place. ``each``: most places of one address; None: all."""
        self._most = most
        self._full = full
        self._each = most if each is None else each
        self._of: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        return self._of.total()

    @contextlib.contextmanager
    def one(self, address: str = "") -> Iterator[None]:
        """Take a place for the time of the block. Raises HTTPException 429 where there is none.

        ``address``: where the visitor comes from; empty: unknown, and then only the sum counts.
        """
        if self.taken >= self._most or (address and self._of[address] >= self._each):
            raise HTTPException(429, self._full)
        self._of[address] += 1
        try:
            yield
        finally:
            self._of[address] -= 1
            self._of += Counter()  # forgets who has none


class _EventStream(StreamingResponse):
    def __init__(self, lines: AsyncIterator[bytes], place: contextlib.AbstractContextManager[None]) -> None:
        super().__init__(lines, media_type="text/event-stream")
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)


def stream(
    messages: AsyncIterator[Json], place: contextlib.AbstractContextManager[None] | None = None
) -> StreamingResponse:
    """Server-sent events. The last one may be an ``error``; ``passes``: whether it is worth trying again.

    ``place``: where a stream needs one, see ``Places``.
    """

    async def lines() -> AsyncIterator[bytes]:
        iterator = aiter(messages)
        following = asyncio.ensure_future(anext(iterator))
        try:
            while True:
                done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
                if not done:
                    yield b"event: alive\ndata:\n\n"
                    continue
                try:
                    message = following.result()
                except StopAsyncIteration:
                    return
                except BothostError as error:  # the headers are sent: the stream itself must say it
                    problem = {**error_json(error), "passes": isinstance(error, StoreUnavailable)}
                    yield b"data: " + msgspec.json.encode(problem) + b"\n\n"
                    return
                yield b"data: " + msgspec.json.encode(message) + b"\n\n"
                following = asyncio.ensure_future(anext(iterator))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    return _EventStream(lines(), place or contextlib.nullcontext())
