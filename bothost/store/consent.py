"""Who agreed that a strategy may be trained to imitate them.

Three voices: what an operator recorded here (granted, or revoked, with the reason), what the lobby told of a player at
a hand (``PlayerInfo.consents``), and what the configuration says of an account of ours, which the host writes into the
hands that it plays. What was recorded outweighs the others; where nothing was, a hand's own mark counts for that hand.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from bothost.errors import UsageError
from bothost.store.models import consents
from bothost.store.query import players_of
from bothost.store.records import GameRecord
from bothost.store.store import Store

Kind = Literal["granted", "revoked"]


class Consent(msgspec.Struct, frozen=True):
    """The last word on a player of a lobby; the fields are the columns of ``consents``."""

    lobby: str
    player: str
    """The lobby's id of the player, or the name of an account of ours."""
    number: int
    kind: Kind
    reason: str
    at_us: int

    @property
    def granted(self) -> bool:
        return self.kind == "granted"


def record(store: Store, lobby: str, player: str, *, granted: bool, reason: str = "") -> Consent:
    """Grant or revoke, from now on and for all hands of the player, those that are logged already included."""
    for name, text in (("lobby", lobby), ("player", player)):
        if not text or not text.isprintable():
            raise UsageError(f"{text!r} names no {name}")
    number = sa.select(sa.func.max(consents.c.number)).where(consents.c.lobby == lobby, consents.c.player == player)
    while True:
        try:
            with store.begin() as connection:
                last: int = connection.execute(number).scalar() or 0
                kind: Kind = "granted" if granted else "revoked"
                made = Consent(lobby, player, last + 1, kind, reason, time.time_ns() // 1000)
                connection.execute(consents.insert(), msgspec.to_builtins(made))
        except IntegrityError:  # somebody else recorded something at the same time: that comes first
            continue
        return made


def recorded(store: Store) -> dict[tuple[str, str], Consent]:
    """(lobby, player) → the last word on them, of all on whom anything was recorded."""
    query = sa.select(consents).order_by(consents.c.lobby, consents.c.player, consents.c.number)
    with store.begin() as connection:
        return {(row.lobby, row.player): Consent(**row._mapping) for row in connection.execute(query)}


def forget(store: Store, names: Iterable[str]) -> int:
    """Delete all that was recorded of players of these names, at every lobby; returns how many rows these were."""
    with store.begin() as connection:
        return connection.execute(consents.delete().where(consents.c.player.in_(sorted(names)))).rowcount


class Sitter(msgspec.Struct, frozen=True):
    """Somebody at a logged hand."""

    seat: int
    names: tuple[str, ...]
    """By which they are known there: our account's name where the seat is ours, then the lobby's id of the player."""
    shown: str
    """The name that the lobby shows; it may belong to several players."""
    consents: bool


def sitters(game: GameRecord, words: Mapping[tuple[str, str], Consent]) -> list[Sitter]:
    """Everybody at a hand of whom the log knows who they are, by seat; ``words`` is what ``recorded`` gave."""
    found: dict[int, Sitter] = {}
    for player in players_of(game.players):
        seat, name = player.get("seat"), player.get("player")
        if isinstance(seat, int) and isinstance(name, str) and name:
            names = (name,) if seat != game.seat or name == game.account else (game.account, name)
            marked = player.get("consents") is True
            found[seat] = Sitter(seat, names, str(player.get("name", "")), _given(game.lobby, names, marked, words))
    if game.seat not in found:
        own = (game.account,)
        found[game.seat] = Sitter(game.seat, own, "", _given(game.lobby, own, False, words))
    return [found[seat] for seat in sorted(found)]


def names_of(player: str, hands: Iterable[GameRecord]) -> set[str]:
    """By what names a player is known, who is named by id, by account, or by what the lobby shows, at these hands."""
    found = {player}
    for game in hands:
        for sitter in sitters(game, {}):
            if player in (*sitter.names, sitter.shown):
                found.update(sitter.names)
    return found


def _given(lobby: str, names: Iterable[str], marked: bool, words: Mapping[tuple[str, str], Consent]) -> bool:
    """No revocation stands, and one of the names was granted or the hand itself is marked."""
    said = [word for name in names if (word := words.get((lobby, name))) is not None]
    return all(word.granted for word in said) and (bool(said) or marked)
