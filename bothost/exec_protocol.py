"""The exec protocol: a strategy as a program in any language, JSON lines over its stdin and stdout.

The messages, in order::

    host → program   hello(version)
    program → host   hello(version, name, games)
    host → program   open(table, game, rules, seat)      one or more tables, interleaved
    host → program   event(table, event) …               where the host passes events on
    host → program   decide(table, id, legal, view, ms)
    program → host   action(id, action)                  or error(id, message)
    host → program   close(table)
    host             closes the program's stdin          the program exits

Both sides ignore fields that they do not know. ``docs/reference/exec-protocol.md`` has an example of every message.
"""

from __future__ import annotations

from typing import Any

import msgspec

VERSION = 1
START_S = 10.0
"""Seconds that a program has for its hello, unless its route says otherwise."""


class Line(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Base of all messages: one JSON object on one line. ``type`` names the message."""


class HostHello(Line, frozen=True, kw_only=True, tag="hello"):
    """The first line that a program reads."""

    version: int
    host: str = ""


class Open(Line, frozen=True, kw_only=True, tag="open"):
    """A hand begins at a table, or the program was restarted in the middle of one."""

    table: str
    """Identifies the hand until ``close``; never used twice in a process."""
    game: str
    rules: dict[str, Any]
    seat: int
    seats: int
    seed: int
    """Seed for all randomness of the program; then games can be replayed."""
    resumed: bool = False
    """Whether events of this hand were missed."""


class Event(Line, frozen=True, kw_only=True, tag="event"):
    """An event that this seat can see. The view of the next ``decide`` includes it."""

    table: str
    event: str


class Decide(Line, frozen=True, kw_only=True, tag="decide"):
    """Answer with an ``action`` of the same id. An id that is never answered costs one fallback move."""

    table: str
    id: int
    seq: int
    """Number of events that this seat has received."""
    phase: str
    ms: float | None = None
    """Milliseconds left; absent if there is no clock."""
    legal: tuple[str, ...]
    view: dict[str, Any]
    """Everything that this seat can see, in the game's JSON form."""


class Close(Line, frozen=True, kw_only=True, tag="close"):
    """The hand is over, or the table is gone."""

    table: str


class ProgramHello(Line, frozen=True, kw_only=True, tag="hello"):
    """The first line that a program writes."""

    version: int
    name: str
    games: tuple[str, ...]
    """Games that it plays; ``["*"]`` for any."""


class Action(Line, frozen=True, kw_only=True, tag="action"):
    """The answer to a ``decide``."""

    id: int
    action: str
    """One of ``legal``."""
    policy: tuple[float, ...] | None = None
    """Probability of each legal action, in the order of ``legal``."""
    value: float | None = None
    """Expected score of the hand for this seat."""
    stats: dict[str, Any] | None = None
    """Anything to log with the decision."""


class Error(Line, frozen=True, kw_only=True, tag="error"):
    """The program cannot answer this ``decide``; the host plays a fallback at once."""

    id: int
    message: str


ToProgram = HostHello | Open | Event | Decide | Close
ToHost = ProgramHello | Action | Error


def encode(line: Line) -> bytes:
    """One line with its newline."""
    return msgspec.json.encode(line) + b"\n"


decode_for_program = msgspec.json.Decoder(HostHello | Open | Event | Decide | Close).decode
"""Line → message that a program receives. Raises msgspec.DecodeError."""
decode_for_host = msgspec.json.Decoder(ProgramHello | Action | Error).decode
"""Line → message that a host receives. Raises msgspec.DecodeError."""
