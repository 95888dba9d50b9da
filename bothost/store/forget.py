"""Forget a player: delete all logged data of every hand that they played.

The whole hand is deleted, because its events and the other players' views show this player's moves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice

import msgspec
import sqlalchemy as sa

from bothost.errors import UsageError
from bothost.store.consent import sitters
from bothost.store.models import chat, decisions, events, game_ends, games, outcomes, snapshots
from bothost.store.query import HandQuery
from bothost.store.reader import LoggedHand, iter_hands, together
from bothost.store.store import Store

HANDS_AT_ONCE = 200
DEAD_S = 86_400


class Traces(msgspec.Struct, frozen=True):
    """What the log has of a player. It grows by 16 bytes a hand, and so may cover a log of years."""

    hands: int
    """How many hands the player sat at."""
    ids: set[bytes]
    """Ids of those hands. Each of our seats may have its own."""
    names: set[str]
    """Accounts and ids of the player."""
    shown: set[str]
    """Names that lobbies showed for the player, and ``names``."""


def traces_of(store: Store, player: str, *, ended: bool = False) -> Traces:
    """Find the hands and names of a player, given by id, account or displayed name.

    ``ended``: raise UsageError if one of the hands may still be running: a host may still write its rows.
    """
    hands, ids, names, shown = 0, set(), {player}, {player}
    for seats in together(iter_hands(store, HandQuery(players=(player,)))):
        hands += 1
        for seat in seats:
            if ended:
                _check_ended(seat)
            ids.add(seat.game.game_id)
            for sitter in sitters(seat.game, {}):
                if player in (*sitter.names, sitter.shown):
                    names.update(sitter.names)
                    shown.update(sitter.names, filter(None, (sitter.shown,)))
    return Traces(hands, ids, names, shown)


def _check_ended(hand: LoggedHand) -> None:
    if hand.end is None and hand.game.started_us > time.time_ns() // 1000 - DEAD_S * 1_000_000:
        raise UsageError(
            f"hand {hand.game.game_id.hex()} has not ended",
            advice="wait until it ends; a hand that started more than a day ago counts as ended",
        )


def delete_hands(store: Store, ids: Iterable[bytes]) -> set[bytes]:
    """Delete all logged data of these hands, at all of our seats. Returns their ids."""
    deleted: set[bytes] = set()
    waiting = iter(ids)
    while page := sorted(set(islice(waiting, HANDS_AT_ONCE))):
        of_hands = sa.select(decisions.c.id).where(decisions.c.game_id.in_(page))
        with store.begin() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete = ON")
            connection.execute(outcomes.delete().where(outcomes.c.decision_id.in_(of_hands)))
            for table in (chat, decisions, events, snapshots, game_ends, games):
                connection.execute(table.delete().where(table.c.game_id.in_(page)))
        deleted.update(page)
    return deleted
