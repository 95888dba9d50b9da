"""What a board draws of a view."""

from __future__ import annotations

from bothost.rules.game import Json, View
from bothost.rules.mahjong import FANS

_FANS = {fan.name: fan for fan in FANS}


def drawn(view: View) -> Json:
    """The view without its list of events: that grows with the hand, and no board reads it.

    Only the events say how a hand of mahjong was won. So ``win`` holds ``seat``, ``tile``, ``from`` (the winner's own
    seat: self-drawn), ``valid`` (False: a false win) and ``fans``, each with its points and how often it counts.
    """
    shown: Json = view.to_json()
    events = shown.pop("events", ())
    if view.game.name == "mahjong" and shown["phase"] == "over":
        shown["win"] = next((_win(event) for event in reversed(events) if event.startswith(("hu ", "false-hu "))), None)
    return shown


def _win(event: str) -> Json:
    kind, seat, tile, source, *fans = event.split(" ")
    names = [name.partition("*")[::2] for name in ",".join(fans).split(",") if name]
    counted = [{**_FANS[name]._asdict(), "times": int(times or 1)} for name, times in names]
    return {"seat": int(seat), "tile": tile, "from": int(source), "valid": kind == "hu", "fans": counted}
