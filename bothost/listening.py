"""How a listening socket is left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Protocol


class _Descriptor(Protocol):
    def fileno(self) -> int: ...


class Listening(Protocol):
    """An ``asyncio.Server``, or what wraps one."""

    @property
    def sockets(self) -> Iterable[_Descriptor]:
        """Where it listens."""


async def stop_accepting(*servers: Listening) -> None:
    """Take no more connections, and let those that are being taken get their transports: then ``close()``.

    Without it asyncio's selector loop forgets a connection, and never closes its socket, that it accepted in the turn
    before the server was closed (python/cpython#109564).
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # a loop without readers (Windows) has no such turn
        for server in servers:
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
