"""A lobby for tests of adapters and hosts: real websockets on loopback, recorded frames, and optional scripts.

With real games, opponents and clocks (from the core of the embedded lobby; ``robots`` fill the tables)::

    async with FakeLobby({"ada": "secret"}, robots=True) as lobby:
        ...                                    # connect an adapter, or a host, to lobby.url
        assert lobby.said_by("ada", wire.Act)  # every frame is in lobby.frames

Or with a script, for any protocol. It is called once per connection, and sends and receives raw frames::

    async def script(line: Line) -> None:
        assert json.loads(await line.recv())["type"] == "auth"
        await line.send('{"type":"auth_ok"}')

    async with FakeLobby(script=script) as lobby: ...

``bothost.testing.fault_lobby`` is a subclass that misbehaves. To write another, override :meth:`FakeLobby.incoming` and
:meth:`FakeLobby.outgoing`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Literal, Self, TypeVar

import msgspec
from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed

from bothost import rules
from bothost.host.tasks import BackgroundTasks
from bothost.listening import stop_accepting
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.core import Lobby, Send
from bothost.lobby_server.settings import ServerSettings

FrameType = TypeVar("FrameType")


class Recorded(msgspec.Struct, frozen=True):
    """One frame, or the end of a connection."""

    at: float
    """Monotonic time, seconds."""
    conn: int
    player: str | None
    direction: Literal["in", "out", "closed"]
    """From the lobby's side: ``in`` is a frame of a client."""
    data: str


class Line:
    """The lobby's side of one connection."""

    def __init__(self, number: int, socket: ServerConnection, record: Callable[[Recorded], None]) -> None:
        self.number = number
        self.socket = socket
        self.player: str | None = None
        self._record = record

    def note(self, direction: Literal["in", "out", "closed"], data: str) -> None:
        self._record(Recorded(time.monotonic(), self.number, self.player, direction, data))

    async def recv(self) -> str:
        """The client's next frame, as text. Raises ConnectionClosed."""
        data = await self.socket.recv(decode=False)
        text = data.decode(errors="replace") if isinstance(data, bytes) else data
        self.note("in", text)
        return text

    async def send(self, data: str | bytes) -> None:
        """Send a frame: a string as a text frame, bytes as a binary frame. Raises ConnectionClosed."""
        self.note("out", data if isinstance(data, str) else data.decode(errors="replace"))
        await self.socket.send(data)

    def push(self, text: str) -> None:
        """Send a text frame without waiting, unless the connection is closed."""
        self.note("out", text)
        broadcast([self.socket], text)

    def abort(self) -> None:
        """Break the connection, without a close frame."""
        self.socket.transport.abort()


class FakeLobby:
    """A lobby on a free port of loopback. Use it in an ``async with``."""

    def __init__(
        self,
        tokens: Mapping[str, str] | None = None,
        *,
        script: Callable[[Line], Coroutine[Any, Any, None]] | None = None,
        robots: bool = False,
        games: Iterable[str] | None = None,
        seed: int = 0,
        port: int = 0,
        **settings: Any,
    ) -> None:
        """``settings``: fields of ``ServerSettings``. ``robots``: a seek finds opponents at once.

        ``seed``: for deals, seats, robots and faults.
        """
        if robots:
            settings.setdefault("robots_after_s", 0.0)
        self.settings = ServerSettings(tokens=dict(tokens or {"ada": "secret-of-ada"}), port=port, **settings)
        self.frames: list[Recorded] = []
        """Every frame, oldest first."""
        self.rng = random.Random(seed)
        self._chance = random.Random(seed)
        games = rules.games(testing=True) if games is None else games
        self.core = Lobby(self.settings, games, rng=self._chance)
        self.games = self.core.waiting.shelf.names
        self.port = port
        self.lines: dict[int, Line] = {}
        """Live connections by number."""
        self._script = script
        self._numbers = itertools.count(1)
        self._server: Server | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks = BackgroundTasks()
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"ws://127.0.0.1:{self.port}/ws"

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def listen(self) -> None:
        """Listen, on the earlier port if there was one."""
        self._server = await serve(
            self._connection, "127.0.0.1", self.port, max_size=self.settings.frame_bytes, compression=None
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def close(self) -> None:
        """Stop listening, and break open connections."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._server is not None:
            for line in list(self.lines.values()):
                line.abort()
            self._tasks.cancel()
            await stop_accepting(self._server)
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def restart(self, down_s: float = 0.0) -> None:
        """Break every connection, forget every table, and listen again after ``down_s``."""
        await self.close()
        self.core = Lobby(self.settings, self.games, rng=self._chance)
        await asyncio.sleep(down_s)
        await self.listen()

    # --------------------------------------------------------------------------------------------------- what was said

    def said_by(self, player: str, kind: type[FrameType]) -> list[FrameType]:
        """Frames of one type from clients of an account, in the embedded protocol."""
        return _frames_of(self.frames, player, kind, "in")

    def sent_to(self, player: str, kind: type[FrameType]) -> list[FrameType]:
        """Frames of one type to clients of an account."""
        return _frames_of(self.frames, player, kind, "out")

    async def until(self, true: Callable[[], object], timeout_s: float = 10.0) -> None:
        """Wait until a condition on the frames holds. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while not true():
                self._news.clear()
                await self._news.wait()

    # ------------------------------------------------------------------------------------------------ to be overridden

    def incoming(self, line: Line, data: str) -> Iterable[str]:
        """What the lobby receives if a client sends ``data``."""
        return (data,)

    def outgoing(self, line: Line, data: str) -> Iterable[str]:
        """What a client receives if the lobby sends ``data``."""
        return (data,)

    def closing(self, line: Line) -> bool:
        """Whether to close a connection that the lobby wants to close."""
        return True

    # -------------------------------------------------------------------------------------------------------- running

    def _note(self, frame: Recorded) -> None:
        self.frames.append(frame)
        self._news.set()

    async def _connection(self, socket: ServerConnection) -> None:
        line = Line(next(self._numbers), socket, self._note)
        self.lines[line.number] = line
        try:
            with contextlib.suppress(ConnectionClosed, asyncio.CancelledError):
                if self._script is None:
                    await self._serve(line)
                else:
                    await self._tasks.spawn(self._script(line))
        finally:
            del self.lines[line.number]
            line.note("closed", "")
            if self._script is None:
                self.core.closed(line.number, time.monotonic())
                self.perform()

    async def _serve(self, line: Line) -> None:
        self.core.opened(line.number, time.monotonic())
        self.perform()
        while True:
            data = await line.recv()
            for heard in self.incoming(line, data):
                self.core.received(line.number, heard, time.monotonic())
                connection = self.core.connections.get(line.number)
                line.player = connection.player if connection is not None else line.player
            self.perform()

    def perform(self) -> None:
        """Perform the outputs of the core, and set its timer."""
        for output in self.core.take():
            line = self.lines.get(output.conn)
            if line is None:
                continue
            if isinstance(output, Send):
                for text in self.outgoing(line, output.data.decode()):
                    line.push(text)
            elif self.closing(line):
                self._tasks.spawn(line.socket.close(output.code, output.reason))
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        wake_at = self.core.wake_at()
        if wake_at is not None:
            after = max(0.0, wake_at - time.monotonic())
            self._alarm = asyncio.get_running_loop().call_later(after, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.core.tick(time.monotonic())
        self.perform()


def _frames_of(
    frames: Iterable[Recorded], player: str, kind: type[FrameType], direction: Literal["in", "out"]
) -> list[FrameType]:
    decode: Callable[[str], Any] = wire.decode_client if direction == "in" else wire.decode_server
    found = []
    for frame in frames:
        if frame.player == player and frame.direction == direction:
            with contextlib.suppress(wire.BadFrame):
                decoded = decode(frame.data)
                if isinstance(decoded, kind):
                    found.append(decoded)
    return found
