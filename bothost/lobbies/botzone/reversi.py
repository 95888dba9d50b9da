"""Reversi at Botzone. Requests and responses are ``{"x", "y"}``; -1 and -1 is a pass, or black's first request.

In simple IO a line holds the two numbers. Black's first discs are on (3, 4) and (4, 3), so x can be read as the
column. A player who passes with a legal move loses the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bothost.lobbies.botzone.dialect import Dialect, Folded, Mismatch
from bothost.rules.game import Json

COLUMNS = "abcdefgh"
START = "start - ---------------------------OX------XO--------------------------- 0"


class Reversi(Dialect):
    """Canonical name: othello."""

    name: ClassVar[str] = "Reversi"
    game: ClassVar[str] = "othello"
    players: ClassVar[int] = 2

    def take(self, request: Any, answered: Any) -> Folded:
        word = word_of(request)
        if self.view is None:
            self._begin(0 if word == "pass" else 1)
            events = self._observe(START)
            return Folded(events + ([] if word == "pass" else self._moved(0, word)))
        return Folded(self._own(answered) + self._moved(1 - self.seat, word))

    def respond(self, actions: Sequence[str]) -> Any:
        (action,) = actions
        return square_of(action)

    def blind(self, request: Any, answered: Any = None) -> Any:
        return square_of("pass")

    def _own(self, answered: Any) -> list[str]:
        return self._moved(self.seat, word_of(answered))

    def _moved(self, seat: int, word: str) -> list[str]:
        return self._observe(f"pass {seat}" if word == "pass" else f"move {seat} {word}")


def square_of(word: str) -> Json:
    """The message for an action in notation."""
    return {"x": -1, "y": -1} if word == "pass" else {"x": COLUMNS.index(word[0]), "y": int(word[1]) - 1}


def word_of(value: Any) -> str:
    """The notation of the action that a message holds. Raises Mismatch."""
    try:
        x, y = map(int, value.split()) if isinstance(value, str) else (int(value["x"]), int(value["y"]))
    except (TypeError, KeyError, ValueError):
        raise Mismatch("the message has no square x, y") from None
    if (x, y) == (-1, -1):
        return "pass"
    if not (0 <= x < 8 and 0 <= y < 8):
        raise Mismatch(f"there is no square {x}, {y}")
    return f"{COLUMNS[x]}{y + 1}"
