"""Options and timers of othello_platform."""

from __future__ import annotations

import msgspec

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
