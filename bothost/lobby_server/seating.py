"""The members and rules of a table, and how it sends frames to them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Protocol

import msgspec

from bothost.lobbies.embedded import protocol as wire
from bothost.rules.game import Game


class TableRules(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a table. ``_ms``: milliseconds, ``_s``: seconds."""

    game: Game
    attributes: wire.Attributes
    grant_ms: int
    bank_ms: int
    lag_ms: int
    hands: int
    pause_ms: int
    max_rejects: int
    idle_s: float


class Audience(Protocol):
    """The part of the lobby that a table uses."""

    def send(self, player: str, frame: wire.ServerFrame) -> None:
        """Send to the player's connection, if there is one."""
        ...

    def online(self, player: str) -> bool: ...


class Member(msgspec.Struct):
    """A player or a robot who has a seat."""

    player: str
    seek: str = ""
    robot: bool = False
    resigned: bool = False
    """Whether the member resigned the current hand."""
    left: bool = False
    total: float = 0.0

    @property
    def automatic(self) -> bool:
        return self.robot or self.resigned or self.left

    @property
    def connected(self) -> bool:
        """Whether frames go to this member."""
        return not self.robot and not self.left


class Seating:
    """A table's members, rules and random numbers: what does not change from hand to hand."""

    def __init__(self, name: str, rules: TableRules, members: list[Member], audience: Audience, seed: int) -> None:
        self.name = name
        self.rules = rules
        self.members = members
        self.audience = audience
        self.rng = random.Random(seed)
        self.ask_numbers = itertools.count(1)

    def humans(self) -> list[Member]:
        """The members who still play here through a connection."""
        return [member for member in self.members if member.connected]

    def member(self, player: str) -> Member:
        """The member of this name. Raises KeyError."""
        for member in self.humans():
            if member.player == player:
                return member
        raise KeyError(player)

    def send(self, player: str, frame: wire.ServerFrame) -> None:
        self.audience.send(player, frame)

    def send_all(self, frame: wire.ServerFrame, but: str = "") -> None:
        """Send to everybody here, except ``but``."""
        for member in self.humans():
            if member.player != but:
                self.audience.send(member.player, frame)

    def infos(self, seats: Sequence[Member]) -> tuple[wire.PlayerInfo, ...]:
        """The members in this order of seats."""
        return tuple(
            wire.PlayerInfo(m.player, seat, m.robot or (not m.left and self.audience.online(m.player)), m.robot)
            for seat, m in enumerate(seats)
        )

    def seated(self, member: Member, seats: Sequence[Member]) -> wire.Seated:
        """The frame that shows a member its seat."""
        return wire.Seated(
            table=self.name,
            game=self.rules.game.name,
            rules=self.rules.game.rules,
            seat=seats.index(member),
            players=self.infos(seats),
            attributes=self.rules.attributes,
            seek=member.seek,
        )
