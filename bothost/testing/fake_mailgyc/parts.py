"""Connections, seats, rooms and faults of the fake of mailgyc/doudizhu."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from bothost.lobbies.mailgyc import protocol as wire
from bothost.testing.fake_server import Line as BaseLine


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


class Line(BaseLine):
    """One websocket."""

    dumb = False
    """Its player counts as gone. The lobby sends it nothing, and ignores it until it names its room."""


@dataclass(eq=False)
class Seat:
    """A player in a room."""

    uid: int
    name: str
    ready: int = 0
    rob: int = -1
    leave: int = 0
    cards: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Room:
    """Three seats, and the hand that is played."""

    number: int
    level: int
    seats: list[Seat | None] = field(default_factory=lambda: [None, None, None])
    state: int = wire.WAITING
    truth: Any = None
    bottom: list[int] = field(default_factory=list)
    first: int = 0
    multiple: int = 15
    last: tuple[int, list[int]] = (-1, [])

    @property
    def taken(self) -> list[Seat]:
        """The seats that are taken: during a hand all three."""
        return [seat for seat in self.seats if seat is not None]

    @property
    def turn(self) -> int:
        return int(self.truth.to_act[0])

    def seat_of(self, uid: int) -> int | None:
        return next((i for i, seat in enumerate(self.seats) if seat is not None and seat.uid == uid), None)

    def seat(self, uid: int) -> Seat:
        """The seat of a player who is here."""
        return next(seat for seat in self.taken if seat.uid == uid)

    def picture(self, uid: int) -> dict[str, Any]:
        """Frame 1006 for one player: the other hands are zeros."""
        playing = self.state != wire.WAITING
        landlord = self.truth.view(0).to_json()["landlord"] if self.state == wire.PLAYING else None
        taken = self.taken
        placeholder = taken[0].uid if taken else -1
        turn = taken[self.turn].uid if playing and self.truth.to_act else placeholder
        owner = taken[landlord].uid if landlord is not None else placeholder
        players = [
            {}
            if seat is None
            else {
                "uid": seat.uid,
                "name": seat.name,
                "sex": 1,
                "avatar": "",
                "ready": seat.ready,
                "rob": seat.rob,
                "leave": seat.leave,
                "landlord": int(landlord == place),
                "point": 1000,
                "pokers": seat.cards if seat.uid == uid else [0] * len(seat.cards),
            }
            for place, seat in enumerate(self.seats)
        ]
        room: dict[str, Any] = {
            "id": self.number,
            "origin": 10,
            "multiple": self.multiple,
            "state": self.state,
            "timer": 40,
        }
        room |= {"landlord_uid": owner, "whose_turn": turn}
        room |= {"last_shot_uid": self.last[0] if self.last[1] else owner, "last_shot_poker": self.last[1]}
        return {"room": room, "players": players}
