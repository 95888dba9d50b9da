"""Logged hands: the list, one hand with its decisions and positions."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from bothost.errors import StoreError
from bothost.rules.game import Game, Json
from bothost.store.hand_report import report
from bothost.store.query import HandQuery, players_of, started_us_of
from bothost.store.reader import (
    Key,
    LoggedHand,
    Timeline,
    decision_counts,
    iter_timelines,
    read_hands,
    search_hands,
)
from bothost.web.replay import positions
from bothost.web.site import Site

PAGE = 50
MAX_SEATS = 128
SEARCH_S = 0.25
"""How long the log is searched before the page shows what was found. Then it asks for the rest."""


def listed(site: Site, query: HandQuery, before: str | None) -> Json:
    """Hands, the newest first, up to a page of them.

    ``next`` names where the following page begins; None at the beginning of the log. ``full``: whether this page is
    full. If it is not, the search took long and has come as far as ``searched_us``.
    """
    found = search_hands(
        site.store, query, PAGE + 1, before=None if before is None else key_of(before), within_s=SEARCH_S
    )
    shown, full = found.hands[:PAGE], len(found.hands) > PAGE
    beyond = shown[-1].key if full else found.beyond
    counted = decision_counts(site.store, [hand.key for hand in shown])
    return {
        "hands": [_line(hand, *counted.get(hand.key, (0, 0))) for hand in shown],
        "next": None if beyond is None else _name(beyond),
        "full": full,
        "searched_us": None if beyond is None else started_us_of(beyond[0]),
    }


def name_of(hand: LoggedHand) -> str:
    """Return the name of a hand in addresses: its id and our seat."""
    return _name(hand.key)


def _name(key: Key) -> str:
    return f"{key[0].hex()}-{key[1]}"


def key_of(name: str) -> tuple[bytes, int]:
    """Inverse of ``name_of``. Raises ValueError."""
    game_id, _, seat = name.partition("-")
    with contextlib.suppress(ValueError):
        key = bytes.fromhex(game_id), int(seat)
        if len(key[0]) == 16 and key[1] in range(MAX_SEATS):
            return key
    raise ValueError(f"there is no hand {name[:80]!r}")


def exists(site: Site, name: str) -> bool:
    """Whether the log has a hand of this name, live or not."""
    try:
        return bool(read_hands(site.store, [key_of(name)]))
    except ValueError:
        return False


def timeline_of(site: Site, name: str) -> Timeline | None:
    """Return all logged rows of a hand; None if it does not exist. Raises ValueError for a bad name."""
    hands = read_hands(site.store, [key_of(name)])
    return next(iter_timelines(site.store, iter(hands)), None)


def shown(site: Site, timeline: Timeline) -> Json:
    """A closed hand: its report, and the positions to step through."""
    record = timeline.hand.game
    made = report(timeline)
    game = site.game(record.game, record.rules)
    steps: list[Json] = []
    if game is not None:
        try:
            steps = [msgspec.to_builtins(position, str_keys=True) for position in positions(game, timeline)]
        except (StoreError, ValueError) as error:
            made["problems"].append(f"the hand cannot be replayed: {error}")
    for decision in made["decisions"]:
        decision.pop("view")
        _add_visits(decision)
        decision["position"] = _where(steps, record.seat, decision["seq"])
    made.pop("events")
    return {**made, "name": name_of(timeline.hand), "names": seat_names(timeline.hand, game), "positions": steps}


def _add_visits(decision: Json) -> None:
    """Search visits stand in the statistics; the bars want them beside the actions."""
    stats = decision["stats"] if isinstance(decision["stats"], dict) else {}
    visits = visits_of(stats.get("candidates"))
    for action in decision["actions"]:
        action["visits"] = visits.get(action["notation"])


def visits_of(candidates: Any) -> dict[str, int]:
    """A search's visits by notation, as its statistics hold them: notation → [visits, value]. Others are left out."""
    visits: dict[str, int] = {}
    for name, found in candidates.items() if isinstance(candidates, dict) else ():
        with contextlib.suppress(TypeError, ValueError, OverflowError, LookupError):
            visits[str(name)] = int(found[0])
    return visits


def _where(steps: list[Json], seat: int, seq: int) -> int | None:
    """The number of the position at which a seat decided, when it had received ``seq`` events.

    Several may fit where others answer unseen: then the one from which this seat moves, else the last.
    """
    here = [i for i, step in enumerate(steps) if step["seqs"].get(str(seat)) == seq]
    moved = [i for i in here if i + 1 < len(steps) and steps[i + 1]["mover"] == seat]
    found = moved or here
    return found[-1] if found else None


def seat_names(hand: LoggedHand, game: Game | None) -> list[str]:
    """The name of the player at each seat; without the game, up to the last seat whose player is known."""
    names = {
        player["seat"]: player.get("name") or player.get("player")
        for player in players_of(hand.game.players)
        if isinstance(player.get("seat"), int) and player["seat"] in range(MAX_SEATS)
    }
    count = game.num_seats if game is not None else max(names, default=-1) + 1
    return [str(names.get(seat) or f"seat {seat}") for seat in range(count)]


def described(hand: LoggedHand) -> Json:
    """What the lists of hands and of live tables say about a hand."""
    record = hand.game
    return {
        "name": name_of(hand),
        "game": record.game,
        "lobby": record.lobby,
        "table": record.table,
        "account": record.account,
        "strategy": record.strategy,
        "seat": record.seat,
        "players": seat_names(hand, None),
        "started_us": record.started_us,
    }


def _line(hand: LoggedHand, decisions: int, fallbacks: int) -> Json:
    return {
        **described(hand),
        "state": "live" if hand.end is None else hand.end.reason,
        "scores": hand.scores,
        "score": hand.score,
        "decisions": decisions,
        "fallbacks": fallbacks,
    }
