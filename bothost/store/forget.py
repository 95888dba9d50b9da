"""Forget a player: delete all logged data of every hand that they played.

The whole hand is deleted, because its events and the other players' views show this player's moves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

import sqlalchemy as sa

from bothost.errors import UsageError
from bothost.store.models import chat, decisions, events, game_ends, games, outcomes, snapshots
from bothost.store.query import HandQuery
from bothost.store.reader import LoggedHand, iter_hands
from bothost.store.store import Store

HANDS_AT_ONCE = 200
DEAD_S = 86_400


def hands_of(store: Store, player: str) -> Iterator[LoggedHand]:
    """Yield the hands of a player, given by id, account or name."""
    return iter_hands(store, HandQuery(players=(player,)))


def check_ended(hands: Iterable[LoggedHand]) -> None:
    """Raise UsageError if one of the hands may still be running: a host may still write its rows."""
    youngest = time.time_ns() // 1000 - DEAD_S * 1_000_000
    for hand in hands:
        if hand.end is None and hand.game.started_us > youngest:
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
