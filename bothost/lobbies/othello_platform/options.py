"""Options and timers of othello_platform."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bothost.lobbies.base import PositiveSeconds, Seconds

AUTH, TOKEN, QUEUE, ROOM, LOOK, SYNC, WINDOW = "auth", "token", "queue", "room", "look", "sync", "window"
"""Timers, in order: the login is late; the token expires soon; the queue is silent; the room waits too long; list the
rooms again; the position is late; repeat ``reconnect``."""


class OthelloPlatformOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of othello_platform."""

    username: str = ""
    """Default: the account's name."""
    register: bool = False
    """Register an account that the lobby does not know."""
    api_path: str = "/api/v1"
    """Path of the REST interface on the lobby's host."""
    wait_s: PositiveSeconds = 300.0
    """How long a room may wait for an opponent."""
    start_s: PositiveSeconds = 30.0
    """How long two players in a room may take to start."""
    look_s: Seconds = 10.0
    """How often we look for another room while we wait alone in one. 0: never."""


Mode = Literal["match", "room", "create", "ai"]


class OthelloPlatformAttributes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``attributes`` of a wish at othello_platform."""

    mode: Mode = "match"
    """The lobby's matchmaking, a waiting room, a room of our own, or the lobby's player."""
    name: str | int = ""
    """Name of the room."""
    password: str | int = ""
    """Password of the room."""
    ai_level: Annotated[int, Meta(ge=0, le=5)] = 3
    """Strength of the lobby's player."""
    level: int | str | None = None
    """For our routes: the lobby does not know it."""
