"""The built-in lobby adapters. They are registered through the same hook as adapters of plugins."""

from __future__ import annotations

from bothost.hookspecs import LazyClass, hookimpl

ADAPTERS = {
    "embedded": "embedded:EmbeddedLobby",
    "botzone": "botzone:Botzone",
    "mailgyc": "mailgyc:MailgycLobby",
    "open_mahjong": "open_mahjong:OpenMahjong",
    "othello_platform": "othello_platform:OthelloPlatform",
}
"""Name → module of this package, and class."""


@hookimpl
def bothost_lobbies() -> list[LazyClass]:
    """The adapters of this package."""
    return [LazyClass(name, f"{__name__}.{place}") for name, place in ADAPTERS.items()]
