"""Players, rooms and faults of the fake of mailgyc/doudizhu."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from bothost.lobbies.mailgyc import protocol as wire
from bothost.testing.fake_server import Line

INIT, OVER = 0, 4
"""States of a player: without a room; a hand that ended before the next is prepared."""


class Traps(msgspec.Struct, frozen=True, kw_only=True):
    """Additional faults, all off by default. The real lobby's own defects are always on."""

    drop_every: int = 0
    """After every this many moves, break the mover's connection. The move counts, but its echo is lost."""
    refuse: float = 0.0
    """Chance that a legal move is refused."""
    noise: float = 0.0
    """Chance that an unknown frame comes before a frame."""
    dead_after: int | None = None
    """After this many moves, robots do not move any more."""
    login_status: int = 200
    notices_after_s: float = 0.0
    """How long the lobby takes to notice a dead socket. Until then it answers a reconnect with an error."""


NOISE = ("", "[", "null", '[9001,{"fireworks":1}]', '[3002,{"uid":"x"}]', '{"a":1}', '[1006,{"room":{}}]')


@dataclass(eq=False)
class FakePlayer:
    """A player. The server remembers everyone who ever logged in."""

    uid: int
    name: str
    robot: bool = False
    line: Line | None = None
    """The websocket that opened last. The lobby sends to it, even if it is closed and an older one is not."""
    left: int = 0
    """1 after leaving, and after the end of any websocket. The lobby then ignores everything but a wish for a room."""
    room: Room | None = None
    """Where the player sits, or sat last."""
    state: int = INIT
    ready: int = 0
    rob: int = -1
    cards: list[int] = field(default_factory=list)

    def restart(self, state: int) -> None:
        self.state, self.ready, self.rob, self.cards = state, 0, -1, []


@dataclass(eq=False)
class Room:
    """Three seats, and the hand that is played."""

    number: int
    level: int
    seats: list[FakePlayer | None] = field(default_factory=lambda: [None, None, None])
    filled: bool = False
    """Whether all seats were ever taken. From then on only who asks for its number gets a seat."""
    truth: Any = None
    bottom: list[int] = field(default_factory=list)
    first: int = 0
    """Who calls first."""
    multiple: int = 15
    last: tuple[int, list[int]] = (0, [])
    """Seat and cards of the last play."""

    @property
    def players(self) -> list[FakePlayer]:
        return [player for player in self.seats if player is not None]

    @property
    def state(self) -> int:
        return next((player.state for player in self.players if not player.left), INIT)

    @property
    def mover(self) -> FakePlayer | None:
        """Whose turn it is. None: of no player, or of one who left for another room, so that nothing happens."""
        playing = any(player.state in (wire.CALLING, wire.PLAYING) for player in self.players)
        return self.seats[self.truth.to_act[0]] if playing and self.truth.to_act else None

    def picture(self, viewer: FakePlayer) -> dict[str, Any]:
        """Frame 1006 for one player: the other hands are zeros."""
        playing = self.state == wire.PLAYING
        landlord = self.seats[self.truth.view(0).to_json()["landlord"]] if playing else None
        room: dict[str, Any] = {
            "id": self.number,
            "origin": 10,
            "multiple": self.multiple,
            "state": self.state,
            "landlord_uid": self._uid(self.first),
            "whose_turn": self._uid(0) if self.mover is None else self.mover.uid,
            "timer": 40,
            "last_shot_uid": self._uid(self.last[0]),
            "last_shot_poker": self.last[1],
        }
        players = [
            {}
            if player is None
            else {
                "uid": player.uid,
                "name": player.name,
                "sex": 1,
                "avatar": "",
                "ready": player.ready,
                "rob": player.rob,
                "leave": player.left,
                "landlord": int(player is landlord),
                "point": 1000,
                "pokers": player.cards if player is viewer else [0] * len(player.cards),
            }
            for player in self.seats
        ]
        return {"room": room, "players": players}

    def _uid(self, seat: int) -> int:
        player = self.seats[seat]
        return -1 if player is None else player.uid
