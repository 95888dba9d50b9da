"""A running table of the in-memory lobby, and the events of its players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from memory_lobby import MemoryLobby, RandomClient

from bothost import messages as m
from bothost.lobby_server.table import ServerTable

NAMES = ("ada", "bob", "cyd", "dan")
TOKENS = {name: f"token-of-{name}" for name in NAMES}

Kind = TypeVar("Kind")


def new_lobby(seed: int = 0, **options: Any) -> MemoryLobby:
    """A lobby with the accounts ``NAMES``."""
    return MemoryLobby(TOKENS, seed=seed, **options)


def clients(lobby: MemoryLobby, count: int, **options: Any) -> list[RandomClient]:
    """Clients of the first ``count`` accounts, not connected yet."""
    return [RandomClient(lobby.shell(name), seed, **options) for seed, name in enumerate(NAMES[:count])]


def told(client: RandomClient, kind: type[Kind]) -> list[Kind]:
    """The events of one kind that a player received."""
    return [event for event in client.shell.events if isinstance(event, kind)]


def started(
    seed: int = 0,
    count: int = 3,
    acts: bool = False,
    game: str = "claims",
    attributes: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[MemoryLobby, list[RandomClient], ServerTable]:
    """A lobby with one running table, and its players. ``acts``: whether they answer requests."""
    lobby = new_lobby(seed, **options)
    players = clients(lobby, count, acts=acts)
    for player in players:
        player.start(m.Wish(game, {}, dict(attributes or {})))
    lobby.run()
    (table,) = list(lobby.core.tables.values()) or [lobby.core.playing.ended["t-1"]]
    return lobby, players, table


def asked(players: Sequence[RandomClient]) -> RandomClient:
    """The first player with an open request."""
    return next(player for player in players if player.asked)
