"""The outcomes that the ladder counts: rankings of teams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa

from bothost.store.models import rated
from bothost.store.ratings import Contestant, Scope
from bothost.store.store import Store

LANDLORD = Contestant("role", "landlord")
"""Rated together with the landlord's player, because one landlord plays two peasants."""

KEYS_AT_ONCE = 1000
"""Keys of one query."""

Team = tuple[Contestant, ...]


class Outcome(msgspec.Struct, frozen=True):
    """A hand, or a deal of the arena. Contestants of a team win or lose together."""

    game: str
    teams: tuple[Team, ...]
    scores: tuple[float, ...]
    """One per team; higher is better."""
    at_us: int
    keys: tuple[bytes, ...]
    """Keys that mark it as counted, 16 bytes each."""

    @property
    def ranks(self) -> list[int]:
        """Rank of each team, from 1. Equal scores share a rank."""
        return [1 + sum(other > score for other in self.scores) for score in self.scores]


def marked(store: Store, scope: Scope, keys: Sequence[bytes]) -> set[bytes]:
    """Return those of the keys that are marked as counted."""
    query = sa.select(rated.c.key).where(rated.c.scope == scope)
    known: set[bytes] = set()
    with store.begin() as connection:
        for start in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[start : start + KEYS_AT_ONCE]
            known.update(connection.execute(query.where(rated.c.key.in_(some))).scalars())
    return known


def teams_of(
    game: str, seats: Mapping[int, Contestant], scores: Sequence[float]
) -> tuple[tuple[Team, ...], tuple[float, ...]] | None:
    """Return the teams of a hand with their scores; None if nothing can be compared.

    ``seats``: the known contestants. In Dou Dizhu the landlord plays two peasants. In other games each plays alone, and
    a contestant with several seats counts once, with their mean score.
    """
    if game == "doudizhu" and len(scores) == 3:
        return _landlord_and_peasants(seats, scores)
    found: dict[Contestant, list[float]] = {}
    for seat, who in seats.items():
        if seat < len(scores):
            found.setdefault(who, []).append(scores[seat])
    if len(found) < 2:
        return None
    return tuple((who,) for who in found), tuple(sum(own) / len(own) for own in found.values())


def _landlord_and_peasants(
    seats: Mapping[int, Contestant], scores: Sequence[float]
) -> tuple[tuple[Team, ...], tuple[float, ...]] | None:
    """The landlord is the seat whose score has the other sign than both others."""
    alone = [seat for seat in range(3) if all(scores[seat] * scores[other] < 0 for other in range(3) if other != seat)]
    if len(alone) != 1 or set(seats) != {0, 1, 2}:
        return None
    peasants = tuple(seats[seat] for seat in range(3) if seat != alone[0])
    landlord = seats[alone[0]]
    if landlord in peasants:  # the hand compares a contestant with itself
        return None
    return ((landlord, LANDLORD), peasants), (scores[alone[0]], -scores[alone[0]])
