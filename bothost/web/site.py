"""What all pages share: settings, the database, plugins and games."""

from __future__ import annotations

from bothost.config import Settings
from bothost.plugins import Plugins
from bothost.rules.game import Game
from bothost.store import Store
from bothost.store.logged_games import GameCache


class Site:
    """Shared by all requests; everything in it may be used from several threads."""

    def __init__(self, settings: Settings, store: Store, plugins: Plugins) -> None:
        self.settings = settings
        self.store = store
        self.plugins = plugins
        self._games = GameCache()

    def game(self, name: str, rules: str) -> Game | None:
        """Return the game of a logged hand, with ``rules`` as logged; None if it is not installed."""
        return self._games.get(name, rules)
