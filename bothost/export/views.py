"""Decode logged views with their game and rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bothost.rules.game import Game, View

_encode = msgspec.json.Encoder().encode


class Decoder:
    """Decodes views of one game with its rules. ``game`` is None if no plugin provides the game."""

    def __init__(self, game: Game | None) -> None:
        self.game = game
        # Native games can print the text directly, about ten times faster than through Python objects.
        self._text: Callable[[bytes], str] | None = getattr(game, "view_json", None)

    def view(self, data: bytes) -> View | None:
        """Decode a view; None for an unknown game or another format version."""
        if self.game is None:
            return None
        try:
            return self.game.view_from_bytes(data)
        except ValueError:
            return None

    def json(self, data: bytes) -> str | None:
        """Decode a view to its JSON; None for an unknown game or another format version."""
        if self._text is not None:
            try:
                return self._text(data)
            except ValueError:
                return None
        view = self.view(data)
        return None if view is None else _encode(view.to_json()).decode()


def versions(game: Game) -> dict[str, Any]:
    """Return the format version of the game's views, and the versions of its encoder blocks."""
    return {
        "format_version": game.format_version,
        "blocks": {name: block.version for name, block in sorted(game.blocks.items())},
    }
