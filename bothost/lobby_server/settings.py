"""The settings of an embedded lobby."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

import msgspec

from bothost.config import LobbyServerSettings
from bothost.config.names import is_visible
from bothost.errors import ConfigError

MAX_NAME = 64
"""Characters of an account's name."""
TOKENS_ADVICE = (
    'set $BOTHOST_LOBBY_TOKENS to "name:token,name:token"; '
    "`python -c 'import secrets; print(secrets.token_urlsafe())'` makes a token"
)


def parse_tokens(text: str) -> dict[str, str]:
    """``name:token,name:token`` as a mapping, names in NFC. Raises ConfigError, which does not repeat a token."""
    tokens: dict[str, str] = {}
    for number, pair in enumerate(filter(None, (part.strip() for part in text.split(","))), start=1):
        name, colon, token = (part.strip() for part in pair.partition(":"))
        if not (name and colon and token):
            raise ConfigError(f"account {number} is not name:token", key="lobby_server.tokens", advice=TOKENS_ADVICE)
        name = unicodedata.normalize("NFC", name)
        if name in tokens:
            raise ConfigError(f"two accounts are called {name!r}", key="lobby_server.tokens", advice=TOKENS_ADVICE)
        tokens[name] = token
    return tokens


def check_accounts(tokens: Mapping[str, str]) -> None:
    """Raise ConfigError for invalid names or tokens of accounts."""
    if not tokens or not all(tokens.values()):
        raise ConfigError("the lobby has no accounts", key="lobby_server.tokens", advice=TOKENS_ADVICE)
    for name in tokens:
        if name.startswith("robot-") or ":" in name or not is_visible(name, MAX_NAME):
            advice = (
                f"a name has 1 to {MAX_NAME} visible characters, no space or colon, and does not start with `robot-`"
            )
            raise ConfigError(f"{name!r} is not a valid account name", key="lobby_server.tokens", advice=advice)
    if len(set(tokens.values())) < len(tokens):
        advice = "a token identifies an account: every account needs its own"
        raise ConfigError("two accounts have the same token", key="lobby_server.tokens", advice=advice)


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one lobby server. The defaults suit a machine of one's own and a small public server alike."""

    tokens: Mapping[str, str]
    """Account name → token. Every login needs one."""
    host: str = "127.0.0.1"
    port: int = 8765
    """0: any free port (see ``LobbyServer.port``)."""

    grant_ms: int = 5_000
    """Time for each action, unless the table's attributes say otherwise; 0: no clock."""
    bank_ms: int = 30_000
    """Reserve of each seat and hand."""
    lag_ms: int = 100
    """How much later than its deadline an answer may arrive: a client cannot answer before the question arrives."""
    hands: int = 1
    """Hands of a table, unless its attributes say otherwise."""
    max_hands: int = 100_000
    pause_ms: int = 0
    """Between two hands."""
    robots_after_s: float | None = None
    """Fill the free seats of a waiting table with random players after this long; None: never."""
    accept_s: float = 20.0
    """How long an invitation stands (tables with attribute ``accept``)."""
    max_rejects: int = 8
    """Illegal answers to one question before the server answers it."""

    chat_burst: int = 5
    """Chat messages that a player may send at once; ``chat_per_minute`` more each minute."""
    chat_per_minute: float = 20.0

    frame_bytes: int = 262_144
    messages_per_s: float = 200.0
    """Messages other than answers to pending asks."""
    burst: int = 2_000
    hello_s: float = 10.0
    """How long a connection may stay without saying hello."""
    connections: int = 1_000
    strangers: int = 100
    """Most connections without a hello. One more disconnects the oldest of them."""
    strangers_per_address: int = 20
    """Most connections without a hello from one address."""
    tables: int = 10_000
    """Tables of the whole server, waiting and playing."""
    tables_per_account: int = 2_000
    """Tables and seeks of one account."""
    queue_frames: int = 8_192
    """Frames that may wait for a slow client before it is disconnected."""
    queue_bytes: int = 8_388_608
    idle_s: float = 900.0
    """A table at which no player acted or came back for so long is given up."""
    wait_s: float = 86_400.0
    """A waiting table that does not fill is closed after this time."""
    remembered: int = 1_024
    """Ended tables whose result a returning client can still learn."""

    games: tuple[str, ...] = ()
    """Games to offer beside those of ``bothost.rules.games()``: members of families that it does not list."""

    def __post_init__(self) -> None:
        check_accounts(self.tokens)

    @classmethod
    def configured(cls, settings: LobbyServerSettings, **overrides: Any) -> ServerSettings:
        """Make settings from ``[lobby_server]`` of a configuration. Raises ConfigError if it has no accounts."""
        text = settings.tokens.reveal() if settings.tokens is not None else ""
        values: dict[str, Any] = {
            "tokens": parse_tokens(text) if "tokens" not in overrides else {},
            "host": settings.host,
            "port": settings.port,
            "grant_ms": round(settings.grant_ms),
            "bank_ms": round(settings.bank_ms),
            "hands": settings.hands,
            "robots_after_s": settings.robots_after_s,
            "games": settings.games,
        }
        return cls(**(values | overrides))

    def __repr__(self) -> str:
        return f"ServerSettings({self.host}:{self.port}, {len(self.tokens)} accounts, …)"
