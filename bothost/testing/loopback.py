"""A small web server on a free port of loopback, inside the running event loop: what fakes of lobbies stand on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from bothost.serving import WebServer


class Loopback:
    """The server, for the length of an ``async with``. Derive from it, and give it routes."""

    def __init__(self, routes: list[BaseRoute]) -> None:
        self.port = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        config = uvicorn.Config(
            Starlette(routes=routes),
            ws="websockets-sansio",
            lifespan="off",
            log_config=None,
            log_level="critical",
            timeout_graceful_shutdown=1,
        )
        self._server = WebServer(config)

    async def __aenter__(self) -> Self:
        listening = socket.socket(proto=socket.IPPROTO_TCP)  # named, so that asyncio switches delayed sending off
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        self.port = listening.getsockname()[1]
        self._serving = asyncio.ensure_future(self._server.serve(sockets=[listening]))
        while not self._server.started:  # noqa: ASYNC110 (uvicorn tells it so)
            await asyncio.sleep(0.01)
        self.opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing()
        self._server.should_exit = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._serving, *self._tasks, return_exceptions=True)

    def opened(self) -> None:
        """Called once the server listens."""

    def closing(self) -> None:
        """Called before the server ends."""

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run something beside the server; it is cancelled when that ends."""
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
