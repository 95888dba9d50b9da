"""The rows of the decision log, written by ``DecisionLog`` and returned by readers.

A row is written once and never changed. What happens to a move later (sent, acknowledged, rejected) is a separate
:class:`OutcomeRecord`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

Role = Literal["live", "shadow"]
OutcomeKind = Literal["sent", "acknowledged", "rejected", "withdrawn", "superseded", "server_acted"]


IMPORTED = "imported"
"""Strategy name of imported decisions."""
IMPORT_HOST = "import"
"""``GameRecord.host`` of imported hands."""


class GameRecord(msgspec.Struct, kw_only=True, gc=False):
    """A hand at one of our seats, written when it starts."""

    game_id: bytes
    """uuid7, 16 bytes, made when the hand starts."""
    host: str
    lobby: str
    account: str
    table: str
    hand: str
    game: str
    rules: str
    """JSON object with all options of the game's rules."""
    format_version: int
    seat: int
    players: str
    """JSON array of ``PlayerInfo``."""
    seed: int
    strategy: str
    strategy_version: str
    model_sha256: str | None
    config_hash: str
    attributes: str
    started_us: int
    """Microseconds since 1970, UTC."""


class GameEndRecord(msgspec.Struct, kw_only=True, gc=False):
    """The end of a hand at one of our seats."""

    game_id: bytes
    seat: int
    reason: str
    scores: str | None
    """JSON array, per seat; None when the hand was aborted or void."""
    ended_us: int
    away: str | None = None
    """JSON array of seats whose players were away during the hand, or for which the lobby moved, if it reports this.
    None: not recorded."""


class EventsRecord(msgspec.Struct, gc=False):
    """Consecutive events of one of our seats. The rows of a seat do not overlap and cover its whole event stream."""

    game_id: bytes
    seat: int
    seq: int
    """Number of the first event."""
    events: str
    """Canonical event lines joined by newline."""


class SnapshotRecord(msgspec.Struct, gc=False):
    """A lobby's snapshot that replaced our view; the event stream continues from its ``seq``."""

    game_id: bytes
    seat: int
    seq: int
    view: str
    at_us: int


class DecisionRecord(msgspec.Struct, gc=False):
    """One model decision. Unique on (game_id, seat, seq, substep, attempt, role).

    The hot path passes positional arguments: 33 keywords take 6 µs, 33 positions 0.5 µs.
    """

    id: bytes
    """uuid7, 16 bytes."""
    game_id: bytes
    seat: int
    seq: int
    """Number of events that this seat had received."""
    substep: int
    attempt: int
    role: Role
    host: str
    lobby: str
    table: str
    request_id: str
    game: str
    phase: str
    state_hash: int
    """``View.hash()``."""
    view: bytes
    """``View.to_bytes()``."""
    legal: bytes
    """Legal actions, little-endian int32."""
    policy: bytes | None
    """Little-endian float32, aligned with ``legal``."""
    action_values: bytes | None
    """Little-endian float32, aligned with ``legal``."""
    value: float | None
    action: int
    notation: str
    strategy: str
    strategy_version: str
    model_sha256: str | None
    encoder_version: int | None
    stats: str | None
    """JSON."""
    fallback: str | None
    """None if the strategy decided; else the reason ("late", "error", "illegal", "quarantined", …)."""
    budget_ms: float | None
    elapsed_ms: float
    config_hash: str
    seed: int
    raw: bytes | None
    """The frame with the request."""
    at_us: int


class OutcomeRecord(msgspec.Struct, gc=False):
    """What happened to a decided move."""

    decision_id: bytes
    kind: OutcomeKind
    detail: str | None
    at_us: int


class ChatRecord(msgspec.Struct, gc=False):
    """What we or another player said at the table of a hand."""

    id: bytes
    """uuid7, 16 bytes."""
    game_id: bytes
    seat: int
    """Of ours, which heard or said it."""
    player: str
    """Who said it: the lobby's id or name; the account if we did."""
    text: str
    """One line of printable text."""
    at_us: int


class LoggedMove(msgspec.Struct, frozen=True):
    """A live decision, as far as a restarted host needs it to repeat the answer."""

    request_id: str
    decision_id: bytes
    seq: int
    substep: int
    attempt: int
    action: int
    notation: str


def iso_time(us: int) -> str:
    """Format microseconds since 1970 as ISO 8601, UTC."""
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat()


def short_time(us: int) -> str:
    """Format microseconds since 1970 for tables: ``2026-11-24 05:00:00``, UTC."""
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(" ", "seconds").removesuffix("+00:00")


Record = GameRecord | GameEndRecord | EventsRecord | SnapshotRecord | DecisionRecord | OutcomeRecord | ChatRecord
