"""Games by name and rules: those that a host plays, and those that a lobby offers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from bothost import rules
from bothost.messages import Json
from bothost.rules.game import Game

KNOWN_GAMES = 256
"""Most games that are kept. Lobbies choose the rules, so there may be many."""


class Games:
    """Makes games, and caches the recent ones."""

    def __init__(self) -> None:
        self._games: OrderedDict[tuple[str, bytes], Game] = OrderedDict()

    def __iter__(self) -> Iterator[Game]:
        return iter(list(self._games.values()))

    def make(self, name: str, options: Json) -> Game:
        """The game with the lobby's rules. Raises any exception of a plugin, and ValueError for invalid rules."""
        key = (name, msgspec.json.encode(options, order="sorted"))
        game = self._games.get(key)
        if game is None:
            self._games[key] = game = rules.game(name, **options)
            if len(self._games) > KNOWN_GAMES:
                self._games.popitem(last=False)
        return game
