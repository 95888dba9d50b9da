"""Which players agreed that a strategy may be trained to imitate them.

There are two sources. An operator records that a player agreed or revoked, with a reason. A hand has a mark
(``PlayerInfo.consents``): the lobby reported consent, or the configuration gives it for one of our accounts. A record
takes precedence over the mark. The mark applies to its hand only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
import sqlalchemy as sa

from bothost.errors import UsageError
from bothost.store.models import consents
from bothost.store.query import players_of
from bothost.store.records import GameRecord
from bothost.store.store import Store

Kind = Literal["granted", "revoked"]


class Consent(msgspec.Struct, frozen=True):
    """The last record of a player at a lobby. The fields are the columns of ``consents``."""

    lobby: str
    player: str
    """The lobby's id of the player, or the name of one of our accounts."""
    number: int
    kind: Kind
    reason: str
    at_us: int

    @property
    def granted(self) -> bool:
        return self.kind == "granted"


def record(store: Store, lobby: str, player: str, *, granted: bool, reason: str = "") -> Consent:
    """Record that a player agreed or revoked. It applies to all of the player's hands, including logged ones.

    Raises UsageError if ``lobby`` or ``player`` is empty or not printable.
    """
    for name, text in (("lobby", lobby), ("player", player)):
        if not text or not text.isprintable():
            raise UsageError(f"{text!r} is not a valid {name} name", advice="use printable characters")
    kind: Kind = "granted" if granted else "revoked"

    def made(number: int) -> Consent:
        return Consent(lobby, player, number, kind, reason, time.time_ns() // 1000)

    return store.insert_next(consents, lobby, player, made)


def recorded(store: Store) -> dict[tuple[str, str], Consent]:
    """Return (lobby, player) → last record."""
    query = sa.select(consents).order_by(consents.c.lobby, consents.c.player, consents.c.number)
    with store.begin() as connection:
        return {(row.lobby, row.player): Consent(**row._mapping) for row in connection.execute(query)}


def forget(store: Store, names: Iterable[str]) -> int:
    """Delete all records of players with these names, at every lobby. Returns the number of rows."""
    with store.begin() as connection:
        return connection.execute(consents.delete().where(consents.c.player.in_(sorted(names)))).rowcount


class Sitter(msgspec.Struct, frozen=True):
    """A player at a logged hand."""

    seat: int
    names: tuple[str, ...]
    """Our account's name if the seat is ours, then the lobby's id of the player."""
    shown: str
    """The name that the lobby shows. Several players may have it."""
    consents: bool


def sitters(game: GameRecord, records: Mapping[tuple[str, str], Consent]) -> list[Sitter]:
    """Return the known players of a hand, by seat. ``records``: the result of ``recorded``."""
    found: dict[int, Sitter] = {}
    for player in players_of(game.players):
        seat, name = player.get("seat"), player.get("player")
        if isinstance(seat, int) and isinstance(name, str) and name:
            names = (name,) if seat != game.seat or name == game.account else (game.account, name)
            marked = player.get("consents") is True
            found[seat] = Sitter(
                seat, names, str(player.get("name", "")), bool(holds(game.lobby, names, marked, records))
            )
    if game.seat not in found:
        own = (game.account,)
        found[game.seat] = Sitter(game.seat, own, "", bool(holds(game.lobby, own, False, records)))
    return [found[seat] for seat in sorted(found)]


def holds(
    lobby: str, names: Iterable[str], mark: bool | None, records: Mapping[tuple[str, str], Consent]
) -> bool | None:
    """Whether a player with these names agrees now. ``mark``: the hand's mark, used if there is no record."""
    granted = [found.granted for name in names if (found := records.get((lobby, name))) is not None]
    return all(granted) if granted else mark
