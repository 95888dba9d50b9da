"""The games of logged hands, by name and rules."""

from __future__ import annotations

import json

from bothost import rules
from bothost.rules.game import Game

MAX_GAMES = 256


class GameCache:
    """Makes games and caches them by name and rules."""

    def __init__(self) -> None:
        self._games: dict[tuple[str, str], Game | None] = {}

    def get(self, name: str, options: str) -> Game | None:
        """Return the game with these options (JSON); None if no plugin provides it or the plugin fails."""
        key = name, options
        if key not in self._games:
            if len(self._games) >= MAX_GAMES:
                self._games.clear()
            try:
                self._games[key] = rules.game(name, **json.loads(options))
            except Exception:  # a plugin may raise anything, and the log must stay readable
                self._games[key] = None
        return self._games[key]
