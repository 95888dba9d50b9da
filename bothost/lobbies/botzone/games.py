"""The supported games of Botzone, and how to recognise one from its first request."""

from __future__ import annotations

from typing import Any

from bothost.lobbies.botzone.dialect import Dialect, Mismatch
from bothost.lobbies.botzone.doudizhu import FightTheLandlord, FightTheLandlord2
from bothost.lobbies.botzone.mahjong import Mahjong
from bothost.lobbies.botzone.reversi import Reversi
from bothost.rules.game import Json

GAMES: dict[str, type[Dialect]] = {
    dialect.name: dialect for dialect in (FightTheLandlord, FightTheLandlord2, Mahjong, Reversi)
}
"""By Botzone's names."""


def of_wish(game: str, rules: Json, named: Any = None) -> type[Dialect] | None:
    """The Botzone game for a wish; None if there is none. ``named``: Botzone's name, if the wish gives one."""
    if named is not None:
        dialect = GAMES.get(str(named))
        return dialect if dialect is not None and dialect.game == game else None
    if game == "doudizhu":
        return FightTheLandlord2 if rules.get("preset") == "botzone-bid" else FightTheLandlord
    return next((dialect for dialect in GAMES.values() if dialect.game == game), None)


def of_request(request: Any) -> type[Dialect]:
    """The game of a match that begins with this request. Nothing else names it. Raises Mismatch."""
    if isinstance(request, dict):
        if "x" in request:
            return Reversi
        if "bid" in request or "landlord" in request:
            return FightTheLandlord2
        if "own" in request:
            return FightTheLandlord
    words = request.split() if isinstance(request, str) else []
    numbers = all(word.removeprefix("-").isdecimal() for word in words)
    if len(words) == 2 and numbers:
        return Reversi
    if len(words) == 3 and numbers and words[0] == "0":
        return Mahjong
    raise Mismatch("the first request belongs to no supported game")
