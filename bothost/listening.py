"""Close listening sockets without losing connections that are being accepted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Protocol


class _Descriptor(Protocol):
    def fileno(self) -> int: ...


class Listening(Protocol):
    """An ``asyncio.Server`` or a wrapper of one."""

    @property
    def sockets(self) -> Iterable[_Descriptor]:
        """The listening sockets."""


async def stop_accepting(*servers: Listening) -> None:
    """Stop accepting connections, and wait until those just accepted have transports. Call it before ``close()``.

    Otherwise asyncio's selector loop loses a connection that it accepted in the iteration before the server was
    closed, and never closes its socket (python/cpython#109564).
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # a proactor loop (Windows) has no readers
        for server in servers:
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
