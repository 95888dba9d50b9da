"""Small Lobby: a lobby adapter for bothost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bothost import hookimpl

if TYPE_CHECKING:
    from bothost.lobbies.base import LobbyAdapter


@hookimpl
def bothost_lobbies() -> list[type[LobbyAdapter]]:
    from bothost_small_lobby.adapter import SmallLobby

    return [SmallLobby]
