"""The lobby's connections: output queues, logins and rate limits. Sans-IO."""

from __future__ import annotations

import msgspec
import structlog

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.settings import ServerSettings
from bothost.lobby_server.timers import Timers
from bothost.tables.clock import TokenBucket

log = structlog.get_logger("bothost.lobby_server")


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send this text frame (UTF-8) on a connection."""

    conn: int
    data: bytes


class Close(msgspec.Struct, frozen=True, gc=False):
    """Close a connection, after what was sent before."""

    conn: int
    code: int
    reason: str


Output = Send | Close


class Connection(msgspec.Struct):
    """A socket. ``player`` is set by its hello."""

    number: int
    bucket: TokenBucket
    player: str | None = None
    closing: bool = False
    refused: int = 0


class Connections:
    """All sockets, by number. Connections without a hello are limited, so that they cannot keep the accounts out."""

    def __init__(self, settings: ServerSettings, timers: Timers) -> None:
        self._settings = settings
        self._timers = timers
        self.by_number: dict[int, Connection] = {}
        self._strangers: dict[int, str] = {}
        """Connections without a hello, oldest first, with their addresses."""
        self._out: list[Output] = []

    def take(self) -> list[Output]:
        """The outputs since the last call, in order."""
        out, self._out = self._out, []
        return out

    def opened(self, number: int, now: float, address: str) -> None:
        connection = self.by_number[number] = Connection(
            number, TokenBucket(self._settings.messages_per_s, self._settings.burst, now)
        )
        if len(self.by_number) > self._settings.connections:
            self.close(connection, wire.CLOSE_FULL, "too many connections")
            return
        self._strangers[number] = address
        self._timers.set(f"hello {number}", now + self._settings.hello_s)
        self._evict_stranger(address)

    def _evict_stranger(self, address: str) -> None:
        """Disconnect the oldest connection without a hello if there are too many."""
        same = [number for number, of in self._strangers.items() if of == address]
        if len(same) > self._settings.strangers_per_address:
            oldest = same[0]
        elif len(self._strangers) > self._settings.strangers:
            oldest = next(iter(self._strangers))
        else:
            return
        del self._strangers[oldest]
        self._timers.cancel(f"hello {oldest}")
        self.close(self.by_number[oldest], wire.CLOSE_FULL, "too many connections without a hello")

    def log_in(self, connection: Connection, player: str) -> None:
        """Log in a connection after its hello."""
        connection.player = player
        self._strangers.pop(connection.number, None)
        self._timers.cancel(f"hello {connection.number}")

    def closed(self, number: int) -> Connection | None:
        """The socket is gone. Returns its connection."""
        self._strangers.pop(number, None)
        self._timers.cancel(f"hello {number}")
        return self.by_number.pop(number, None)

    def hello_timed_out(self, number: int) -> None:
        connection = self.by_number.get(number)
        if connection is not None and connection.player is None:
            self.close(connection, wire.CLOSE_TIMEOUT, "no hello")

    def admit(self, connection: Connection, now: float, seek: str = "") -> bool:
        """Take a token from the connection's bucket.

        If it is empty, send an error (one for each refused seek), and in the end close the connection.
        """
        s = self._settings
        if connection.bucket.take(now):
            connection.refused = 0
            return True
        connection.refused += 1
        retry = int(1000.0 / s.messages_per_s) + 1
        if (connection.refused == 1 or seek) and connection.refused <= s.burst:
            text = f"at most {s.messages_per_s:g} messages a second; this one was dropped"
            self.send(connection, wire.Error("rate_limited", text, seek=seek[:100], retry_ms=retry))
        elif connection.refused > s.burst:
            log.warning("rate limited", player=connection.player, conn=connection.number)
            self.close(connection, wire.CLOSE_RATE, "too many messages")
        return False

    def refuse(self, connection: Connection, error: wire.Error, now: float) -> None:
        """Answer an invalid frame: it is fatal before the hello, and counts as a message after it."""
        if connection.player is None:
            self.send(connection, error)
            self.close(connection, wire.CLOSE_PROTOCOL, error.message[:100])
        elif self.admit(connection, now):
            self.send(connection, error)

    def send(self, connection: Connection, frame: wire.ServerFrame) -> None:
        self._out.append(Send(connection.number, wire.encode(frame)))

    def close(self, connection: Connection, code: int, reason: str) -> None:
        connection.closing = True
        self._out.append(Close(connection.number, code, reason))

    def cut(self, number: int) -> None:
        """The shell cuts a connection that does not read: a close frame would not reach it."""
        connection = self.by_number.get(number)
        if connection is not None and not connection.closing:
            log.warning("slow client is disconnected", player=connection.player, conn=number)
            connection.closing = True
