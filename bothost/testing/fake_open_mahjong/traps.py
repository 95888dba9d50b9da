"""Faults of the fake open_mahjong lobby."""

from __future__ import annotations

import msgspec


class Traps(msgspec.Struct, frozen=True, kw_only=True):
    """Additional faults, all off by default. The real lobby's own defects are always on."""

    drop_every: int = 0
    """After every this many moves, break the mover's connection. The move counts, but later frames are lost. The last
    player in the room keeps the connection, because the lobby would delete the game."""
    ignore: float = 0.0
    """Chance that a legal discard is ignored."""
    repeat: float = 0.0
    """Chance that a frame of a game is sent twice."""
    noise: float = 0.0
    """Chance that an unknown frame comes before a frame."""
    cleanup_s: float = 0.0
    """How long the lobby cleans up after a closed connection. Then it forgets a newer one of the same player too: that
    gets answers, and nothing else."""
