"""A fake lobby with the faults of real lobbies. Each fault is a switch.

::

    async with FaultLobby({"ada": "secret"}, faults=Faults(duplicate=0.2, lose=0.05), robots=True) as lobby: ...

Random faults use ``seed``; probabilities are per frame to a client. Counted faults happen once, when the lobby has
received that many moves since its start. There are no faults before a client is logged in, so that every client gets
to its tables.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bothost.lobbies.embedded import protocol as wire
from bothost.testing.fake_lobby import FakeLobby, Line

GARBAGE = ("", "{", "null", "[1001,{}]", '{"type":"fireworks"}', '{"type":"events","table":7}', "\x00\x01", "[" * 500)


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """The faults, all off by default."""

    duplicate: float = 0.0
    """Send a frame twice."""
    reorder: float = 0.0
    """Send a frame after the next one."""
    lose: float = 0.0
    """Drop a frame."""
    garbage: float = 0.0
    """Send invalid data before a frame."""
    silence_after: int | None = None
    """Send nothing more to the connection that made this move. Its socket stays open and answers protocol pings (a
    zombie)."""
    dead_after: int | None = None
    """Stop reading from the connection that made this move, so that it answers no protocol pings either."""
    drop_after: int | None = None
    """The connection that made this move breaks without a close frame."""
    oversize_after: int | None = None
    """The connection that made this move gets a frame of ``oversize_bytes``."""
    oversize_bytes: int = 8 * 1024 * 1024
    restart_after: int | None = None
    """The server restarts: every connection breaks, every table is gone."""
    restart_down_s: float = 0.2
    rate_cut: float | None = None
    """With more messages than this within one second, break the connection without a close frame."""
    zombies: bool = False
    """When a second connection of an account takes over, neither inform nor close the first."""
    stale_game_over: bool = False
    """After a reconnect, first send the end of an unknown table."""
    zero_clock: bool = False
    """Asks in a snapshot have no time left."""


class FaultLobby(FakeLobby):
    """A :class:`FakeLobby` with faults."""

    def __init__(
        self, tokens: Mapping[str, str] | None = None, *, faults: Faults | None = None, **options: Any
    ) -> None:
        super().__init__(tokens, **options)
        self.faults = faults or Faults()
        self.struck: list[str] = []
        """Names of the counted faults that happened, in order."""
        self.moves = 0
        """Moves received since the start."""
        self._silent: set[int] = set()
        self._held: dict[int, str] = {}
        self._times: dict[int, deque[float]] = {}
        self._restart: asyncio.Task[None] | None = None

    def incoming(self, line: Line, data: str) -> Iterable[str]:
        """What the lobby receives, after the faults that a move causes."""
        if self._too_fast(line):
            self.struck.append("rate_cut")
            line.abort()
            return ()
        if '"type":"act"' in data:
            self.moves += 1
            self._strike(line)
        return (data,)

    def outgoing(self, line: Line, data: str) -> Iterable[str]:
        if line.number in self._silent or (self.faults.zombies and data.startswith('{"type":"superseded"')):
            self._silent.add(line.number)
            return []
        if line.player is None or data.startswith('{"type":"welcome"'):
            return self._greeting(data)
        faults, chance = self.faults, self.rng.random
        if faults.zero_clock and data.startswith('{"type":"snapshot"'):
            data = _without_time(data)
        out: list[str] = []
        if chance() < faults.garbage:
            out.append(self.rng.choice(GARBAGE))
        held = self._held.pop(line.number, None)
        if held is None and chance() < faults.reorder:
            self._held[line.number] = data
            return out
        if chance() >= faults.lose:
            out.append(data)
            if chance() < faults.duplicate:
                out.append(data)
        if held is not None:
            out.append(held)
        return out

    def closing(self, line: Line) -> bool:
        return line.number not in self._silent

    async def __aexit__(self, *error: object) -> None:
        if self._restart is not None:
            self._restart.cancel()
        await super().__aexit__(*error)

    def _greeting(self, data: str) -> list[str]:
        if self.faults.stale_game_over and '"type":"welcome"' in data and '"resumed":true' in data:
            stale = wire.TableEnded("long-gone-1", "normal", (1.0, -1.0), "of another evening")
            return [data, wire.encode(stale).decode()]
        return [data]

    def _too_fast(self, line: Line) -> bool:
        if self.faults.rate_cut is None:
            return False
        times, now = self._times.setdefault(line.number, deque()), time.monotonic()
        times.append(now)
        while times[0] < now - 1.0:
            times.popleft()
        return len(times) > self.faults.rate_cut

    def _strike(self, line: Line) -> None:
        faults, moves = self.faults, self.moves
        for name in ("silence_after", "dead_after", "drop_after", "oversize_after", "restart_after"):
            if getattr(faults, name) != moves:
                continue
            self.struck.append(name)
            match name:
                case "silence_after":
                    self._silent.add(line.number)
                case "dead_after":
                    self._silent.add(line.number)
                    line.socket.transport.pause_reading()
                case "drop_after":
                    line.abort()
                case "oversize_after":
                    line.push(" " * faults.oversize_bytes)
                case "restart_after":
                    self._restart = asyncio.ensure_future(self.restart(faults.restart_down_s))


def _without_time(data: str) -> str:
    snapshot = wire.decode_server(data)
    if not isinstance(snapshot, wire.Snapshot) or snapshot.ask is None:
        return data
    ask = msgspec.structs.replace(snapshot.ask, grant_ms=0, bank_ms=0)
    return wire.encode(msgspec.structs.replace(snapshot, ask=ask)).decode()
