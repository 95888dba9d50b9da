"""Connections, rooms, games and faults of the fake of othello-platform."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
from starlette.websockets import WebSocket

from bothost import rules
from bothost.rules.game import State
from bothost.testing.fake_othello_platform.accounts import Accounts
from bothost.testing.fake_server import Line as BaseLine

Json = dict[str, Any]
COLORS = ("BLACK", "WHITE")


class Traps(msgspec.Struct, frozen=True):
    """Faults in addition to the real lobby's own defects. Counts are of moves over all games; 0: never."""

    drop_every: int = 0
    """Break the mover's connection after the move."""
    refuse_every: int = 0
    """Refuse a legal move as illegal, if there is another one."""
    repeat_every: int = 0
    """Send a move's message twice."""
    noise_every: int = 0
    """Send a message of an unknown type, and the end of an unknown game."""
    lie_every: int = 0
    """Send a board with one wrong disc. The next board is right again."""
    text_ids: bool = False
    """Send some ids as strings."""
    restart_on_pass: bool = False
    """Restart right after the first forced pass, and restore the game without it."""


class Line(BaseLine):
    """One websocket."""

    def __init__(self, socket: WebSocket) -> None:
        super().__init__(socket)
        self.times: deque[float] = deque()

    def count(self, now: float) -> int:
        """Count a message. Returns the number within the last second."""
        self.times.append(now)
        while self.times[0] <= now - 1.0:
            self.times.popleft()
        return len(self.times)

    def say(self, kind: str, payload: Json) -> None:
        self.send(json.dumps({"type": kind, "payload": payload, "ts": int(time.time() * 1000)}))


class Room(msgspec.Struct):
    id: int
    name: str
    owner: int
    mode: str = "human_vs_human"
    password: str = ""
    seats: list[int | None] = msgspec.field(default_factory=lambda: [None, None])
    ready: list[bool] = msgspec.field(default_factory=lambda: [False, False])
    game: str | None = None
    status: str = "waiting"
    opened_at: float = 0.0

    @property
    def against_ai(self) -> bool:
        return self.mode == "human_vs_ai"

    def described(self) -> Json:
        """As a listing shows it."""
        level = 3 if self.against_ai else None
        described = {"id": self.id, "name": self.name, "mode": self.mode, "aiLevel": level, "status": self.status}
        return {**described, "hasPassword": bool(self.password)}


class Game:
    def __init__(self, name: str, room: Room) -> None:
        self.id = name
        self.room = room
        self.state: State = rules.game("othello").new_state(0)
        self.moves: list[Json] = []
        self.timer: asyncio.TimerHandle | None = None
        self.left_ms = 0.0
        self.since = 0.0
        self.refused_at = -1
        """Number of moves when a legal one was last refused."""
        self.restored_turn: str | None = None
        """Whose turn it is after a restart, until the next move: the colour that did not move last, even if it has no
        legal move."""
        self.windows: dict[int, asyncio.TimerHandle] = {}
        """Players who must reconnect, with their timers."""

    @property
    def seats(self) -> list[int | None]:
        return self.room.seats

    def remaining_ms(self) -> int:
        """What is left of the time for this move."""
        spent = 0.0 if self.timer is None else (time.monotonic() - self.since) * 1000.0
        return int(max(self.left_ms - spent, 0.0))

    def board(self) -> list[int]:
        return ["-XO".index(disc) for disc in self.state.view(0).to_json()["board"]]

    def turn(self) -> str | None:
        return None if self.state.terminal else self.restored_turn or COLORS[self.state.to_act[0]]

    def restore(self) -> None:
        """Rebuild the game from its moves. Like the real server, it stores no passes."""
        last = self.moves[-1]["color"] if self.moves else "WHITE"
        self.restored_turn = COLORS[1 - COLORS.index(last)]


class Lobby(Protocol):
    """The server, as its rooms and games use it."""

    accounts: Accounts
    rng: random.Random
    traps: Traps
    struck: list[str]
    numbers: Iterator[int]
    move_s: float
    queue_s: float
    list_s: float

    def tell(self, user: int | None, kind: str, payload: Json) -> None: ...
    def error(self, line: Line, code: str) -> None: ...
    def refuse(self, user: int, code: str) -> None: ...
    def show(self, room: Room) -> None: ...
    def drop(self, user: int) -> None: ...
    def restart(self) -> None: ...
    def every(self, period: int, count: int, name: str) -> bool: ...
    def later(self, after_s: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle: ...
