"""Views decoded from their logged bytes, by the game under whose rules they were made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bothost.rules.game import Game, View
from bothost.store.logged_games import GameCache

_encode = msgspec.json.Encoder().encode


class Decoder:
    """Of one game with its rules; ``game`` is None where no plugin knows that game."""

    def __init__(self, game: Game | None) -> None:
        self.game = game
        # Native games print the text themselves, about ten times faster than by way of Python objects.
        self._text: Callable[[bytes], str] | None = getattr(game, "view_json", None)

    def view(self, data: bytes) -> View | None:
        """The view, None where it cannot be decoded (an unknown game, another format version)."""
        if self.game is None:
            return None
        try:
            return self.game.view_from_bytes(data)
        except ValueError:
            return None

    def json(self, data: bytes) -> str | None:
        """The view's JSON, None where it cannot be decoded."""
        if self._text is not None:
            try:
                return self._text(data)
            except ValueError:
                return None
        view = self.view(data)
        return None if view is None else _encode(view.to_json()).decode()


class Games:
    """Decoders by game and rules, made when first needed."""

    def __init__(self, make: Callable[..., Game]) -> None:
        self._games = GameCache(make)
        self._decoders: dict[tuple[str, str], Decoder] = {}

    def of(self, game: str, rules: str) -> Decoder:
        """The decoder of a game under these rules (JSON)."""
        key = game, rules
        if key not in self._decoders:
            self._decoders[key] = Decoder(self._games.get(*key))
        return self._decoders[key]


def versions(game: Game) -> dict[str, Any]:
    """Format version of the game's views, and the versions of its encoder blocks."""
    return {
        "format_version": game.format_version,
        "blocks": {name: block.version for name, block in sorted(game.blocks.items())},
    }
