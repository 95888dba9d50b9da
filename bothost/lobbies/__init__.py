"""The built-in lobby adapters. They are registered through the same hook as adapters of plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bothost.hookspecs import hookimpl

if TYPE_CHECKING:
    from bothost.lobbies.base import LobbyAdapter


@hookimpl
def bothost_lobbies() -> Iterator[type[LobbyAdapter]]:
    """Yield the adapters of this package. Each is imported only when the caller asks for it."""
    from bothost.lobbies.embedded import EmbeddedLobby

    yield EmbeddedLobby
    from bothost.lobbies.botzone import Botzone

    yield Botzone
    from bothost.lobbies.mailgyc import MailgycLobby

    yield MailgycLobby
    from bothost.lobbies.open_mahjong import OpenMahjong

    yield OpenMahjong
    from bothost.lobbies.othello_platform import OthelloPlatform

    yield OthelloPlatform
