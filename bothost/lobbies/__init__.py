"""Lobby adapters: what comes with bothost is registered here, through the same hook as anybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bothost.hookspecs import hookimpl

if TYPE_CHECKING:
    from bothost.lobbies.base import LobbyAdapter


@hookimpl
def bothost_lobbies() -> list[type[LobbyAdapter]]:
    """The adapters in this package, imported only now: a worker process of a strategy never asks for them."""
    from bothost.lobbies.botzone import Botzone
    from bothost.lobbies.embedded import EmbeddedLobby
    from bothost.lobbies.mailgyc import MailgycLobby
    from bothost.lobbies.open_mahjong import OpenMahjong
    from bothost.lobbies.othello_platform import OthelloPlatform

    return [Botzone, EmbeddedLobby, MailgycLobby, OpenMahjong, OthelloPlatform]
