"""Base of the fake lobbies: a web server on a free loopback port with websockets, timers and faults."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Self

from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bothost.listening import listen
from bothost.lobby_server.server import AbortableWebSocket
from bothost.serving import running


class Line:
    """One websocket of a client."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.user = 0
        """The user who logged in; 0: none yet."""
        self.closing = False
        self._out: asyncio.Queue[str | None] = asyncio.Queue()

    def send(self, text: str) -> None:
        self._out.put_nowait(text)

    def close(self) -> None:
        """Close after the queued frames are sent. Later frames from the client are ignored."""
        self.closing = True
        self._out.put_nowait(None)

    def abort(self) -> None:
        """Break the connection without a close frame."""
        self.closing = True
        self.socket.scope["state"]["abort"]()

    async def write(self) -> None:
        """Send until closed."""
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            while (text := await self._out.get()) is not None:
                await self.socket.send_text(text)
            await self.socket.close()


class FakeServer:
    """The server. Use it in an ``async with``. Derive from it, give it routes, and override ``received``."""

    def __init__(self, routes: list[BaseRoute], seed: int = 0) -> None:
        """``routes`` must route websockets to ``self.websocket``."""
        self.port = 0
        self.rng = random.Random(seed)
        self.struck: list[str] = []
        """The faults that happened, oldest first."""
        self._serving = contextlib.AsyncExitStack()
        self._timers: set[asyncio.TimerHandle] = set()
        self._app = Starlette(routes=routes)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"ws://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        listening = listen("127.0.0.1", 0, key="port", advice="stop it")
        serving = running(self._app, listening, "fake lobby", ws=AbortableWebSocket, log_level="critical")
        self.port = await self._serving.enter_async_context(serving)
        return self

    async def __aexit__(self, *error: object) -> None:
        for timer in self._timers:
            timer.cancel()
        await self._serving.aclose()

    def later(self, after_s: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        """Call a function later, unless the server ends first."""

        def fire() -> None:
            self._timers.discard(timer)
            call(*args)

        timer = asyncio.get_running_loop().call_later(after_s, fire)
        self._timers.add(timer)
        return timer

    def every(self, period: int, count: int, name: str) -> bool:
        """Whether a fault happens now: if ``count`` is a multiple of ``period``. 0: never."""
        if period and count % period == 0:
            self.struck.append(name)
            return True
        return False

    def chance(self, probability: float, name: str) -> bool:
        """Whether a fault of this probability happens now."""
        if self.rng.random() < probability:
            self.struck.append(name)
            return True
        return False

    async def websocket(self, socket: WebSocket) -> None:
        """One websocket, from its opening to its end."""
        await socket.accept()
        line = self.connected(socket)
        if line is None:
            socket.scope["state"]["abort"]()
            return
        writer = asyncio.ensure_future(line.write())
        try:
            while (message := await socket.receive())["type"] == "websocket.receive":
                if not line.closing:
                    self.received(line, bytes(message["bytes"]).decode(errors="replace"))
        finally:
            writer.cancel()
            self.disconnected(line)

    # ------------------------------------------------------------------------------------------------ to be overridden

    def connected(self, socket: WebSocket) -> Line | None:
        """A websocket is open. None breaks the connection."""
        return Line(socket)

    def received(self, line: Line, text: str) -> None:
        """A client sent a frame."""

    def disconnected(self, line: Line) -> None:
        """A websocket is closed."""
