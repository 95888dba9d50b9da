"""A table's key, and how its lobby behaves."""

from __future__ import annotations

from typing import NamedTuple

from bothost.tables.clock import ClockPolicy


class TableKey(NamedTuple):
    lobby: str
    account: str
    table: str


class Conduct(NamedTuple):
    """What a session must know about its lobby and account."""

    clock: ClockPolicy = ClockPolicy()
    takes_composites: bool = False
    acks_moves: bool = True
    """Whether the lobby sends ``MoveAcknowledged``; otherwise the echo of our own move is the acknowledgement."""
    echo_s: float = 15.0
    """If no acknowledgement comes for this long, we ask for a snapshot."""
    consents: bool = False
    """Whether our own player consents to imitation. The log marks such hands."""
