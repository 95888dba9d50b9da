"""Changes on the server, and server-sent events that report them to a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse

from bothost.errors import BothostError
from bothost.rules.game import Json

KEEP_ALIVE_S = 15.0
"""A stream without news sends a comment this often, so that a dead connection is noticed."""


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


def stream(messages: AsyncIterator[Json]) -> StreamingResponse:
    """Server-sent events."""

    async def lines() -> AsyncIterator[bytes]:
        iterator = aiter(messages)
        following = asyncio.ensure_future(anext(iterator))
        try:
            while True:
                done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
                if not done:
                    yield b": still here\n\n"
                    continue
                try:
                    message = following.result()
                except StopAsyncIteration:
                    return
                except BothostError as error:  # the headers are sent: the stream itself must say it
                    yield b"data: " + msgspec.json.encode({"error": str(error), "advice": error.advice}) + b"\n\n"
                    return
                yield b"data: " + msgspec.json.encode(message) + b"\n\n"
                following = asyncio.ensure_future(anext(iterator))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    return StreamingResponse(lines(), media_type="text/event-stream")
