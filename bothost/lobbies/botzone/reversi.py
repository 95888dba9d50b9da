"""Reversi at Botzone. Requests and responses are ``{"x", "y"}``; -1 and -1 is a pass, or black's first request.

In simple IO a line holds the two numbers. Black's first discs are on (3, 4) and (4, 3), so x can be read as the
column. A player who passes with a legal move loses the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bothost.lobbies.botzone.dialect import Dialect, Folded, Mismatch

START = "start - ---------------------------OX------XO--------------------------- 0"


class Reversi(Dialect):
    """Canonical name: othello."""

    name: ClassVar[str] = "Reversi"
    game: ClassVar[str] = "othello"
    players: ClassVar[int] = 2

    def take(self, request: Any, answered: Any) -> Folded:
        x, y = _square(request)
        if self.view is None:
            self._begin(0 if x < 0 else 1)
            events = self._observe(START)
            return Folded(events + ([] if x < 0 else self._observe(_event(0, x, y))))
        return Folded(self._own(answered) + self._observe(_event(1 - self.seat, x, y)))

    def respond(self, actions: Sequence[str]) -> Any:
        (action,) = actions
        if action == "pass":
            return {"x": -1, "y": -1}
        return {"x": "abcdefgh".index(action[0]), "y": int(action[1]) - 1}

    def blind(self, request: Any, answered: Any = None) -> Any:
        return {"x": -1, "y": -1}

    def _own(self, answered: Any) -> list[str]:
        return self._observe(_event(self.seat, *_square(answered)))


def _event(seat: int, x: int, y: int) -> str:
    return f"pass {seat}" if x < 0 else f"move {seat} {'abcdefgh'[x]}{y + 1}"


def _square(value: Any) -> tuple[int, int]:
    """A square, or (-1, -1). Raises Mismatch."""
    try:
        x, y = map(int, value.split()) if isinstance(value, str) else (int(value["x"]), int(value["y"]))
    except (TypeError, KeyError, ValueError):
        raise Mismatch("the request has no square x, y") from None
    if not (0 <= x < 8 and 0 <= y < 8) and (x, y) != (-1, -1):
        raise Mismatch(f"square {x}, {y} is not on the board")
    return x, y
