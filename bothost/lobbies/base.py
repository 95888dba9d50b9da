"""What a lobby adapter is: a sans-IO translator between one lobby's dialect and :mod:`bothost.messages`.

An adapter holds no socket, reads no clock and awaits nothing. The shell (``bothost.host``) feeds it inputs and
performs the effects that it returns, in order. One adapter instance serves one account.

Rules that every adapter keeps:

- A request id is made here where the lobby has none, and is never used twice at a table.
- Frames are hostile: whatever arrives, ``feed`` returns (with ``Unknown`` for what it does not understand). It raises
  only for a bug.
- ``Connected(resumed=True)`` is followed by a ``Seated`` and a ``Snapshot`` for every table that still lives; nothing
  is decided at a table before its snapshot, and its clock, are fresh.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import msgspec

from bothost.messages import Input, Output


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a lobby can do, each tested against a faithful fake of it."""

    games: tuple[str, ...]
    tables_per_connection: int | None
    """None: no limit of its own."""
    connections_per_identity: int
    acks_moves: bool
    rejects_illegal: Literal["error", "silence", "resend"]
    sends_turn: bool
    sends_legal_actions: bool
    takes_composites: bool
    clock: Literal["none", "per_move", "bank_and_step"]
    resume: Literal["none", "identity", "token", "game_id"]
    resume_delivers: Literal["nothing", "snapshot", "log", "delta"]
    heartbeat: Literal["none", "app", "protocol"]
    messages_per_second: float | None
    """The lobby's limit; the host keeps to half of it."""
    on_rate_limit: Literal["close", "error", "drop", "none"]
    plays_for_us: bool
    transport: Literal["websocket", "long_poll"] = "websocket"
    needs_secret: bool = True
    """Whether logging in takes a token or a password; some lobbies ask for nothing but a name."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter needs to log in. Secrets are resolved before they come here, and never printed."""

    name: str
    url: str
    token: str = ""
    password: str = ""
    user_agent: str = "bothost"

    def __repr__(self) -> str:
        return f"Account(name={self.name!r}, url={self.url!r}, …)"


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of an adapter that has none."""


class LobbyAdapter(ABC):
    """Base class of adapters; register with the hook ``bothost_lobbies``."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of ``[lobby.options]`` in config.toml."""

    def __init__(self, account: Account, options: Any) -> None:
        self.account = account
        self.options = options

    @abstractmethod
    def feed(self, item: Input) -> list[Output]:
        """Take one input or command; return effects and events in the order in which they must happen."""
