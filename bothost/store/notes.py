"""What an operator noted about opponents. A note is for people: nothing in the host reads it."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec
import sqlalchemy as sa

from bothost.errors import UsageError
from bothost.store.models import notes
from bothost.store.store import Store

LONGEST = 2_000


class Note(msgspec.Struct, frozen=True):
    """One note. The fields are the columns of ``notes``."""

    lobby: str
    player: str
    """The opponent's id or name at the lobby."""
    number: int
    """From 1, for each opponent."""
    text: str
    at_us: int


def add(store: Store, lobby: str, player: str, text: str) -> Note:
    """Note something about an opponent. Raises UsageError for an empty text or name, or one that is too long."""
    for what, value in (("lobby", lobby), ("opponent", player), ("note", text)):
        if not value.strip() or len(value) > LONGEST:
            raise UsageError(f"the {what} has {len(value):,} characters", advice=f"write 1 to {LONGEST:,} characters")

    def made(number: int) -> Note:
        return Note(lobby, player, number, text.strip(), time.time_ns() // 1000)

    return store.insert_next(notes, lobby, player, made)


def listed(store: Store, *, lobbies: Iterable[str] = (), players: Iterable[str] = ()) -> list[Note]:
    """The notes about these players at these lobbies, the oldest of each player first; empty: about all, at all."""
    query = sa.select(notes).order_by(notes.c.lobby, notes.c.player, notes.c.number)
    if wanted := sorted(set(lobbies)):
        query = query.where(notes.c.lobby.in_(wanted))
    if wanted := sorted(set(players)):
        query = query.where(notes.c.player.in_(wanted))
    with store.begin() as connection:
        return [Note(**row._mapping) for row in connection.execute(query)]


def delete(store: Store, lobby: str, player: str, number: int) -> None:
    """Delete one note. Raises UsageError where there is none of this number."""
    one = (notes.c.lobby == lobby) & (notes.c.player == player) & (notes.c.number == number)
    with store.begin() as connection:
        if not connection.execute(notes.delete().where(one)).rowcount:
            raise UsageError(f"there is no note {number} about {player}", advice="see: bothost opponent list")


def forget(store: Store, names: Iterable[str]) -> int:
    """Delete all notes about players with these names, at every lobby. Returns the number of notes."""
    with store.begin() as connection:
        return connection.execute(notes.delete().where(notes.c.player.in_(sorted(names)))).rowcount
