"""What the fake of othello-platform is made of: its connections, rooms and games, and what goes wrong there."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from typing import Any

import msgspec
from starlette.websockets import WebSocket

from bothost import rules
from bothost.rules.game import State
from bothost.testing.fake_server import Line as BaseLine

Json = dict[str, Any]
COLORS = ("BLACK", "WHITE")


class Traps(msgspec.Struct, frozen=True):
    """What goes wrong beyond what always does; counts are of moves over all games, 0 is never."""

    drop_every: int = 0
    """The mover's connection breaks after its move was taken."""
    refuse_every: int = 0
    """A legal move is called illegal, where there is another."""
    lose_every: int = 0
    """A move is lost, without an error."""
    repeat_every: int = 0
    """The news of a move comes twice."""
    noise_every: int = 0
    """Messages of no known type, and the end of a game of another evening."""
    lie_every: int = 0
    """One disc of the board that is sent is wrong; the next board is right again."""
    text_ids: bool = False
    """Some ids are texts."""
    restart_on_pass: bool = False
    """The server restarts right after the first forced pass, and restores the game without it."""


class Line(BaseLine):
    """One websocket."""

    def __init__(self, socket: WebSocket) -> None:
        super().__init__(socket)
        self.times: deque[float] = deque()

    def count(self, now: float) -> int:
        """Count a message. Returns how many there were within a second."""
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

    def described(self) -> Json:
        """As a listing shows it."""
        level = 3 if self.mode == "human_vs_ai" else None
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
        """How many moves had been made when one was refused last."""
        self.restored_turn: str | None = None
        """Whose turn it is after a restart, until the next move: the colour that did not move last, able or not."""
        self.windows: dict[int, asyncio.TimerHandle] = {}
        """Players who must come back."""

    @property
    def seats(self) -> list[int | None]:
        return self.room.seats

    def board(self) -> list[int]:
        return ["-XO".index(disc) for disc in self.state.view(0).to_json()["board"]]

    def turn(self) -> str | None:
        return None if self.state.terminal else self.restored_turn or COLORS[self.state.to_act[0]]

    def restore(self) -> None:
        """Rebuild from the moves, as the server does: it stores no passes."""
        last = self.moves[-1]["color"] if self.moves else "WHITE"
        self.restored_turn = COLORS[1 - COLORS.index(last)]
