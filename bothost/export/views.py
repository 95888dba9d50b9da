"""Views decoded from their logged bytes, by the game under whose rules they were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from bothost.rules.game import Game, View

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
        self._make = make
        self._known: dict[tuple[str, str], Decoder] = {}

    def of(self, game: str, rules: str) -> Decoder:
        """The decoder of a game under these rules (JSON)."""
        key = game, rules
        decoder = self._known.get(key)
        if decoder is None:
            decoder = self._known[key] = Decoder(self._game(*key))
        return decoder

    def _game(self, name: str, rules: str) -> Game | None:
        try:
            return self._make(name, **json.loads(rules))
        except Exception:  # a plugin's game may fail in any way, and an export must not
            return None


def versions(game: Game) -> dict[str, Any]:
    """Format version of the game's views, and the versions of its encoder blocks."""
    return {
        "format_version": game.format_version,
        "blocks": {name: block.version for name, block in sorted(game.blocks.items())},
    }
