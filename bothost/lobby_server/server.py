"""The shell around the lobby's core: sockets, the loop's clock, HTTP. It has no game logic."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterable

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request as UpgradeRequest

import bothost
from bothost import rules
from bothost.listening import listen, url_host
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.core import Close, Lobby, Send
from bothost.lobby_server.settings import ServerSettings
from bothost.receiving import TurnTaking
from bothost.serving import running

log = structlog.get_logger("bothost.lobby_server")

CLOSE_S = 2.0
"""Seconds that the peer of a closed connection has to read and answer the close frame."""
CLOSING = 100
"""Most connections that wait for this answer. One more cuts the oldest of them."""
UNREAD_BYTES = 1 << 20
"""A peer is cut if it pings while more bytes than these wait for it."""


class AbortableWebSocket(TurnTaking, WebSocketsSansIOProtocol):
    """uvicorn's websocket, with the differences that a server for hostile clients needs."""

    def process(self, data: bytes) -> None:
        WebSocketsSansIOProtocol.data_received(self, data)

    def may_read(self) -> bool:
        """Whether the endpoint has taken all messages: uvicorn reads no more before."""
        return not self.read_paused

    def handle_connect(self, event: UpgradeRequest) -> None:
        """Let the endpoint cut a connection whose peer has stopped reading: a close frame would never get through."""
        super().handle_connect(event)
        if self.handshake_initiated and hasattr(self, "scope"):
            self.scope["state"]["abort"] = self.transport.abort

    def send_receive_event_to_app(self) -> None:
        """Pass text on as bytes: the codec decodes them, and answers invalid UTF-8 with an error frame."""
        self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()

    def handle_cont(self, event: Frame) -> None:
        """Keep a fragment. The protocol limits the size of all fragments, but not the number of empty ones."""
        if event.data or event.fin:
            super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping. A peer that sends pings and reads no answers would fill the memory."""
        super().handle_ping()
        if self.transport.get_write_buffer_size() > UNREAD_BYTES:
            self.transport.abort()

    def keepalive_timeout(self) -> None:
        """Cut a peer that does not answer our ping. If it does not read either, a close frame would wait for ever."""
        super().keepalive_timeout()
        self.transport.abort()


class _Outlet:
    """The output queue of one connection."""

    def __init__(self, websocket: WebSocket, max_frames: int, max_bytes: int) -> None:
        self._websocket = websocket
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self._close: tuple[int, str] | None = None

    def put(self, data: bytes) -> bool:
        """Queue a frame. Returns False if the queue is full; then the frame is dropped."""
        if len(self._queue) >= self._max_frames or self._bytes + len(data) > self._max_bytes:
            return False
        self._queue.append(data)
        self._bytes += len(data)
        self._wake.set()
        return True

    def close(self, code: int, reason: str) -> None:
        self._close = (code, reason)
        self._wake.set()

    def abort(self) -> None:
        """Drop the connection without a close frame."""
        self._queue.clear()
        self._bytes = 0
        self._websocket.scope["state"]["abort"]()

    async def run(self) -> None:
        """Send until closed."""
        send, queue = self._websocket.send, self._queue
        while True:
            while queue:
                data = queue.popleft()
                self._bytes -= len(data)
                await send({"type": "websocket.send", "text": data.decode()})
            if self._close is not None:
                await self._websocket.close(*self._close)
                return
            self._wake.clear()
            await self._wake.wait()


class LobbyServer:
    """A lobby on a listening socket. Use :func:`serve`."""

    def __init__(self, settings: ServerSettings, games: Iterable[str]) -> None:
        self.settings = settings
        self.lobby = Lobby(settings, games)
        self.host = settings.host
        self.port = settings.port
        self.app = Starlette(
            routes=[
                WebSocketRoute("/ws", self._websocket),
                Route("/healthz", self._healthz),
                Route("/tables", self._tables),
            ]
        )
        self._outlets: dict[int, _Outlet] = {}
        self._closing: deque[_Outlet] = deque(maxlen=CLOSING)
        """The last connections that we closed, oldest first. Their peers may not have answered yet."""
        self._numbers = itertools.count(1)
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0

    @property
    def url(self) -> str:
        """The address for adapters."""
        return f"ws://{url_host(self.host)}:{self.port}/ws"

    @property
    def games(self) -> list[str]:
        """Names of the games that are played here."""
        return self.lobby.waiting.shelf.names

    # ------------------------------------------------------------------------------------------------------ websocket

    async def _websocket(self, websocket: WebSocket) -> None:
        await websocket.accept()
        loop = asyncio.get_running_loop()
        conn, lobby = next(self._numbers), self.lobby
        outlet = _Outlet(websocket, self.settings.queue_frames, self.settings.queue_bytes)
        self._outlets[conn] = outlet
        writer = asyncio.create_task(self._write(outlet))
        try:
            lobby.opened(conn, loop.time(), websocket.client.host if websocket.client is not None else "")
            self._perform()
            while (message := await websocket.receive())["type"] == "websocket.receive":
                lobby.received(conn, message.get("bytes") or message.get("text") or b"", loop.time())
                self._perform()
        finally:
            del self._outlets[conn]
            writer.cancel()
            lobby.closed(conn, loop.time())
            self._perform()

    async def _write(self, outlet: _Outlet) -> None:
        # If the peer vanished, the reader notices it and ends the connection.
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await outlet.run()

    def _perform(self) -> None:
        """Perform the core's outputs, then schedule its next ``tick``."""
        outlets = self._outlets
        for output in self.lobby.take():
            outlet = outlets.get(output.conn)
            if outlet is None:
                continue
            if type(output) is Send:
                if not outlet.put(output.data):
                    self.lobby.cut(output.conn)
                    outlet.abort()
            elif type(output) is Close:
                self._close(outlet, output)
        wake_at = self.lobby.wake_at()
        if wake_at is not None and (self._alarm is None or wake_at < self._alarm_at):
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_at = wake_at
            self._alarm = asyncio.get_running_loop().call_at(wake_at, self._wake)

    def _close(self, outlet: _Outlet, output: Close) -> None:
        """Close a connection. It is cut if its peer does not read or does not answer: open files are limited."""
        outlet.close(output.code, output.reason)
        asyncio.get_running_loop().call_later(CLOSE_S, outlet.abort)
        if len(self._closing) == CLOSING:
            self._closing[0].abort()
        self._closing.append(outlet)

    def _wake(self) -> None:
        self._alarm = None
        self.lobby.tick(asyncio.get_running_loop().time())
        self._perform()

    # ----------------------------------------------------------------------------------------------------------- HTTP

    async def _healthz(self, request: Request) -> Response:
        lobby = self.lobby
        return JSONResponse(
            {
                "status": "ok",
                "version": bothost.__version__,
                "protocol": wire.VERSION,
                "connections": len(lobby.connections),
                "waiting": len(lobby.waiting.tables),
                "tables": len(lobby.tables),
                "hands": lobby.playing.hands_played,
                "frames": lobby.frames_in,
            }
        )

    async def _tables(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or self.lobby.accounts.of_token(token.strip()) is None:
            advice = "send the header `Authorization: Bearer <token of an account>`"
            return JSONResponse({"error": advice}, 401, {"WWW-Authenticate": "Bearer"})
        infos = tuple(self.lobby.table_infos(request.query_params.get("game")))
        return Response(wire.encode(wire.Tables(infos)), media_type="application/json")

    def stop(self) -> None:
        """Cancel the timer."""
        if self._alarm is not None:
            self._alarm.cancel()


@contextlib.asynccontextmanager
async def serve(settings: ServerSettings, *, games: Iterable[str] | None = None) -> AsyncIterator[LobbyServer]:
    """A running lobby within this loop: ``async with serve(settings) as server: server.url``.

    ``games`` defaults to every game of ``bothost.rules`` and those of the settings. Raises ConfigError when the port is
    taken, UsageError for a game of the settings that does not exist.
    """
    for name in settings.games:
        rules.game(name)
    offered = games if games is not None else {*rules.games(), *settings.games}
    server = LobbyServer(settings, offered)
    advice = "stop it, or choose another with --port or lobby_server.port"
    listening = listen(settings.host, settings.port, key="lobby_server.port", advice=advice, backlog=1024)
    try:
        async with running(
            server.app,
            listening,
            "lobby server",
            ws=AbortableWebSocket,
            ws_max_size=settings.frame_bytes,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=3,
        ) as server.port:
            log.info("lobby is open", url=server.url, accounts=len(settings.tokens), games=server.games)
            yield server
    finally:
        server.stop()
        log.info("lobby is closed", hands=server.lobby.playing.hands_played)
