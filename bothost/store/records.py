"""The rows of the decision log: what the host hands to ``DecisionLog`` and what readers get back.

A row is written once and never changed. What happened to a move after it was decided (sent, acknowledged, rejected) is
an :class:`OutcomeRecord` of its own.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["live", "shadow"]
OutcomeKind = Literal["sent", "acknowledged", "rejected", "withdrawn", "superseded", "server_acted"]


IMPORTED = "imported"
"""What stands for the strategy of a decision that somebody made elsewhere."""


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
    """JSON of every option of the game's rules."""
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
    """JSON array of the seats whose players were away at some time of the hand, or in whose place the lobby moved, as
    far as it reported; None where that was not recorded."""


class EventsRecord(msgspec.Struct, gc=False):
    """A stretch of the event stream of one of our seats: together they are the whole stream, without gap or overlap."""

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

    On the hot path it is built by position: 33 keywords cost 6 µs, 33 positions 0.5.
    """

    id: bytes
    """uuid7, 16 bytes."""
    game_id: bytes
    seat: int
    seq: int
    """Events that this seat had received when asked."""
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
    """None: the strategy's own decision; else why not ("late", "error", "illegal", "quarantined", …)."""
    budget_ms: float | None
    elapsed_ms: float
    config_hash: str
    seed: int
    raw: bytes | None
    """The frame that asked."""
    at_us: int


class OutcomeRecord(msgspec.Struct, gc=False):
    """What became of a decided move."""

    decision_id: bytes
    kind: OutcomeKind
    detail: str | None
    at_us: int


class ChatRecord(msgspec.Struct, gc=False):
    """What somebody at the table of a hand said, we or another player."""

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
    """A live decision as a restarted host needs it, to give the same answer again."""

    request_id: str
    decision_id: bytes
    seq: int
    substep: int
    attempt: int
    action: int
    notation: str


Record = GameRecord | GameEndRecord | EventsRecord | SnapshotRecord | DecisionRecord | OutcomeRecord | ChatRecord
Json = dict[str, Any]
