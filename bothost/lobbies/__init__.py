"""Lobby adapters: what comes with bothost is registered here, through the same hook as anybody's."""

from __future__ import annotations

from bothost.hookspecs import hookimpl
from bothost.lobbies.base import LobbyAdapter
from bothost.lobbies.botzone import Botzone
from bothost.lobbies.embedded import EmbeddedLobby
from bothost.lobbies.mailgyc import MailgycLobby
from bothost.lobbies.open_mahjong import OpenMahjong
from bothost.lobbies.othello_platform import OthelloPlatform


@hookimpl
def bothost_lobbies() -> list[type[LobbyAdapter]]:
    """The adapters in this package."""
    return [Botzone, EmbeddedLobby, MailgycLobby, OpenMahjong, OthelloPlatform]
