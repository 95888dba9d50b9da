"""What a board draws of a view."""

from __future__ import annotations

from collections.abc import Sequence

from bothost.rules.game import Json, View
from bothost.rules.mahjong import FANS

_FANS = {fan.name: fan for fan in FANS}
_MOVES = ("play", "chi", "peng", "gang", "angang", "bugang")
"""Events of mahjong that everybody at the table sees."""


def drawn(view: View) -> Json:
    """The view without its list of events: that grows with the hand, and no board reads it.

    Only the events of mahjong say who discarded and claimed last, so ``recent`` holds ``recent_moves``. And only they
    say how a hand was won. So ``win`` holds ``seat``, ``tile``, ``from`` (the winner's own seat: self-drawn), ``valid``
    (False: a false win) and ``fans``, each with its points and how often it counts.
    """
    shown: Json = view.to_json()
    events = shown.pop("events", ())
    if view.game.name == "mahjong":
        shown["recent"] = recent_moves(events, view.seat)
        if shown["phase"] == "over":
            wins = (_win(event) for event in reversed(events) if event.startswith(("hu ", "false-hu ")))
            shown["win"] = next(wins, None)
    return shown


def recent_moves(events: Sequence[str], seat: int) -> list[tuple[int, str]]:
    """What everybody at a table of mahjong saw since this seat discarded last, that included: seats and notations."""
    found: list[tuple[int, str]] = []
    for event in reversed(events):
        kind, mover, *tile = event.split(" ")
        if kind in _MOVES:
            found.append((int(mover), ":".join([kind, *tile]) if kind != "angang" else kind))  # others do not see which
            if found[-1][0] == seat and kind == "play":
                break
    return found[::-1]


def _win(event: str) -> Json:
    kind, seat, tile, source, *fans = event.split(" ")
    names = [name.partition("*")[::2] for name in ",".join(fans).split(",") if name]
    counted = [{**_FANS[name]._asdict(), "times": int(times or 1)} for name, times in names]
    return {"seat": int(seat), "tile": tile, "from": int(source), "valid": kind == "hu", "fans": counted}
