"""What the pages stand on: settings, the database, plugins and games."""

from __future__ import annotations

import json
from collections.abc import Callable

from bothost.config import Settings
from bothost.plugins import Plugins
from bothost.rules.game import Game
from bothost.store import Store

MAX_GAMES = 256


class Site:
    """Shared by all requests; everything in it may be used from several threads."""

    def __init__(self, settings: Settings, store: Store, plugins: Plugins, make_game: Callable[..., Game]) -> None:
        self.settings = settings
        self.store = store
        self.plugins = plugins
        self.make_game = make_game
        self._games: dict[tuple[str, str], Game | None] = {}

    def game(self, name: str, rules: str) -> Game | None:
        """The game of a logged hand, ``rules`` as logged; None where it is not installed."""
        key = name, rules
        if key not in self._games:
            if len(self._games) >= MAX_GAMES:
                self._games.clear()
            try:
                self._games[key] = self.make_game(name, **json.loads(rules))
            except Exception:  # whatever is wrong with a plugin's game, the other pages work
                self._games[key] = None
        return self._games[key]
