"""Hands as lines of a list: one for each hand, or one for each seat of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bothost.cli.hand_query import ids_from
from bothost.cli.output import printable
from bothost.cli.output import table as aligned
from bothost.errors import UsageError
from bothost.messages import Json
from bothost.store.query import HandQuery, players_of
from bothost.store.records import iso_time

if TYPE_CHECKING:
    from bothost.store import Store
    from bothost.store.notes import Note
    from bothost.store.reader import Key, LoggedHand

ID_SHOWN = 12
"""Least characters of an id that the list shows: the time at which the hand started, in milliseconds."""


def seat(hand: LoggedHand, counted: Mapping[Key, tuple[int, int]]) -> Json:
    """One of our seats at a hand. ``counted``: see ``decision_counts``."""
    game, end = hand.game, hand.end
    decisions, fallbacks = counted.get(hand.key, (0, 0))
    return {
        "id": game.game_id.hex(),
        "started": iso_time(game.started_us),
        "ended": None if end is None else iso_time(end.ended_us),
        "game": game.game,
        "lobby": game.lobby,
        "table": game.table,
        "hand": game.hand,
        "account": game.account,
        "seat": game.seat,
        "strategy": game.strategy,
        "decisions": decisions,
        "fallbacks": fallbacks,
        "state": "live" if end is None else end.reason,
        "score": hand.score,
        "scores": hand.scores,
        "players": _names(hand),
    }


def _names(hand: LoggedHand) -> list[str]:
    """The players by seat. A lobby need not report them: then our account, and the numbers of the other seats."""
    named: dict[int, Any] = {hand.game.seat: hand.game.account}
    for player in players_of(hand.game.players):
        named[player.get("seat") or 0] = player.get("name") or player.get("player")
    seats = max(len(hand.scores or ()), len(named), hand.game.seat + 1)
    return [str(named.get(at) or f"seat {at}") for at in range(seats)]


def joined(seats: Sequence[Json]) -> Json:
    """The hand at which these seats of ours sat."""
    items = sorted(seats, key=lambda item: item["seat"])
    first = items[0]
    # A seat that was handed to another host knows no score: the others do.
    whole = next((item for item in items if item["scores"] is not None), first)
    names, scores = list(whole["players"]), whole["scores"]
    for item in items:  # each of our seats knows who sits there
        names[item["seat"] : item["seat"] + 1] = item["players"][item["seat"] : item["seat"] + 1]
    won = [] if scores is None else [name for name, score in zip(names, scores, strict=False) if score > 0]
    return {
        **{key: first[key] for key in ("id", "started", "game", "lobby", "table", "hand")},
        "ended": whole["ended"],
        "state": whole["state"],
        "winners": won,
        "opponents": [name for name in names if name not in won],
        "players": names,
        "scores": scores,
        "decisions": sum(item["decisions"] for item in items),
        "fallbacks": sum(item["fallbacks"] for item in items),
        "seats": [
            {key: item[key] for key in ("id", "account", "seat", "strategy", "score", "decisions", "fallbacks")}
            for item in items
        ],
    }


def note_lines(noted: Sequence[Note]) -> list[str]:
    """Notes about opponents, for people."""
    return [printable(f"note about {note.player} at {note.lobby}: {note.text}") for note in noted]


def table(hands: Sequence[Json]) -> str:
    """Lines for people, one a hand."""
    rows = [
        (
            shown,
            item["started"][:16].replace("T", " "),
            item["game"],
            printable(", ".join(item["winners"]) or ("draw" if item["scores"] is not None else item["state"])),
            "" if item["scores"] is None else f"{max(item['scores']):+g}",
            printable(", ".join(item["opponents"])),
            item["decisions"],
            item["fallbacks"] or "",
        )
        for item, shown in zip(hands, _shown_ids(hands), strict=True)
    ]
    header = ("ID", "STARTED (UTC)", "GAME", "WINNER", "SCORE", "OPPONENTS", "DECISIONS", "FALLBACKS")
    optional, names = ("FALLBACKS", "DECISIONS", "STARTED (UTC)"), ("GAME", "WINNER", "OPPONENTS")
    return aligned(rows, header, optional=optional, names=names) if rows else "no hands"


def seat_table(seats: Sequence[Json]) -> str:
    """Lines for people, one a seat."""
    rows = [
        (
            shown,
            item["started"][:16].replace("T", " "),
            item["game"],
            f"{printable(item['lobby'])}/{printable(item['table'])}",
            printable(item["account"]),
            item["strategy"],
            item["decisions"],
            item["fallbacks"] or "",
            item["state"] if item["score"] is None else f"{item['score']:+g}",
        )
        for item, shown in zip(seats, _shown_ids(seats), strict=True)
    ]
    header = ("ID", "STARTED (UTC)", "GAME", "TABLE", "ACCOUNT", "STRATEGY", "DECISIONS", "FALLBACKS", "RESULT")
    optional = ("FALLBACKS", "DECISIONS", "TABLE", "STARTED (UTC)")
    names = ("GAME", "TABLE", "ACCOUNT", "STRATEGY")
    return aligned(rows, header, optional=optional, names=names) if rows else "no hands"


def _shown_ids(items: Sequence[Json]) -> list[str]:
    """The ids, as much of their beginnings as tells these hands apart. Every command takes a unique beginning."""

    def tells_apart(length: int) -> bool:
        hands: dict[str, tuple[str, ...]] = {}
        places = ((item["id"][:length], (item["lobby"], item["table"], item["hand"])) for item in items)
        return all(hands.setdefault(beginning, place) == place for beginning, place in places)

    length = next(filter(tells_apart, range(ID_SHOWN, 32)), 32)
    return [item["id"][:length] for item in items]


def named(store: Store, prefix: str) -> list[LoggedHand]:
    """Our seats at the one hand with this id prefix: each may have its own id. Empty if there is none.

    Raises UsageError if there are several, and for what is not an id.
    """
    from bothost.store.reader import is_same_hand, iter_hands

    ids_from(prefix)
    found: list[LoggedHand] = []
    for hand in iter_hands(store, HandQuery(game_id=prefix), page=20):
        found.append(hand)
        if not is_same_hand(hand, found[0]):
            names = ", ".join(seat.game.game_id.hex() for seat in (found[0], hand))  # not each seat of the first
            raise UsageError(f"the ids of several hands start with {prefix}: {names}, …", advice="give more of the id")
    return found


def of_same_hand(store: Store, hand: LoggedHand) -> list[LoggedHand]:
    """Our seats at the same hand of the same table, this one first."""
    from bothost.store.reader import TOGETHER_US, is_same_hand, iter_hands

    game = hand.game
    near = HandQuery(
        since_us=game.started_us - TOGETHER_US,
        until_us=game.started_us + TOGETHER_US,
        lobbies=(game.lobby,),
        games=(game.game,),
    )
    return [hand, *(other for other in iter_hands(store, near) if other.key != hand.key and is_same_hand(other, hand))]
