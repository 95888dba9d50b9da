"""The ladder's ratings in the database. ``bothost.ladder`` computes them.

A *contestant* is one version and level of our strategies, or a player at a lobby. The *scope* ``others`` excludes hands
among our own accounts; ``all`` includes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Literal, get_args

import msgspec
import sqlalchemy as sa

from bothost.store.models import games, rated, rating_history, rating_pairs, ratings
from bothost.store.reader import TOGETHER_US
from bothost.store.records import IMPORT_HOST
from bothost.store.store import Store

MU, SIGMA = 25.0, 25.0 / 3.0
"""OpenSkill's initial rating."""

Scope = Literal["others", "all"]
Kind = Literal["strategy", "player", "role"]


class Contestant(msgspec.Struct, frozen=True, order=True, array_like=True):
    """The subject of a rating. Its JSON is the key of its rows."""

    kind: Kind
    name: str
    """The strategy, the lobby's id of the player, or the role."""
    lobby: str = ""
    """For players only."""
    version: str = ""
    """For strategies: the beginning of the model's sha256, or the strategy's version."""
    level: str = ""

    @property
    def key(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def label(self) -> str:
        """Readable name: ``deep-mc:level-2 (3f9c21aa)``, ``guest-17 at home``."""
        if self.kind == "player":
            return f"{self.name} at {self.lobby}"
        if self.kind == "role":
            return f"being {self.name}"
        return self.name + (f":{self.level}" if self.level else "") + (f" ({self.version})" if self.version else "")


class Rating(msgspec.Struct, frozen=True):
    """OpenSkill's estimate of a skill: a normal distribution with this mean and standard deviation."""

    mu: float = MU
    sigma: float = SIGMA
    hands: int = 0
    """Number of hands or arena deals in the rating."""
    last_us: int = 0
    """End of the last one, microseconds since 1970, UTC."""

    @property
    def ci95(self) -> tuple[float, float]:
        """95 % credible interval of the skill."""
        return self.mu - 1.96 * self.sigma, self.mu + 1.96 * self.sigma


_contestant = msgspec.json.Decoder(Contestant).decode


def key_of(*parts: object) -> bytes:
    """Hash these parts to a 16-byte key, which marks what the ladder has counted."""
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=16).digest()


def hand_key(lobby: str, table: str, hand: str, game: str, started_us: int) -> bytes:
    """The key of a hand by its place and minute. The rows of all our seats share it, or a neighbouring one."""
    return key_of(lobby, table, hand, game, started_us // TOGETHER_US)


def forget_hands(connection: sa.Connection, which: sa.ColumnElement[bool]) -> None:
    """Delete the marks of logged hands, before they are deleted. ``which``: a condition on ``games``.

    Marks of imported hands stay: who imports them again must not count them twice.
    """
    g = games.c
    query = sa.select(g.game_id, g.lobby, g.table, g.hand, g.game, g.started_us).where(g.host != IMPORT_HOST, which)
    for page in connection.execute(query.execution_options(yield_per=1000)).partitions():
        keys = [key for game_id, *place in page for key in (game_id, hand_key(*place))]
        connection.execute(rated.delete().where(rated.c.scope.in_(get_args(Scope)), rated.c.key.in_(keys)))


def rating_of(store: Store, lobby: str, player: str, game: str, *, scope: Scope = "others") -> Rating | None:
    """Return a player's rating, by the lobby's id of the player; None if they are not rated.

    ``bothost ladder`` updates ratings. Raises StoreUnavailable.
    """
    key = Contestant("player", player, lobby).key
    columns = (ratings.c.mu, ratings.c.sigma, ratings.c.hands, ratings.c.last_us)
    query = sa.select(*columns).where(ratings.c.scope == scope, ratings.c.game == game, ratings.c.contestant == key)
    with store.begin() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else Rating(*row)


def all_ratings(
    store: Store, *, scope: Scope = "others", game: str | None = None
) -> dict[str, dict[Contestant, Rating]]:
    """Return game → contestant → rating, highest first."""
    query = sa.select(ratings).where(ratings.c.scope == scope).order_by(ratings.c.game, ratings.c.mu.desc())
    if game is not None:
        query = query.where(ratings.c.game == game)
    found: dict[str, dict[Contestant, Rating]] = {}
    with store.begin() as connection:
        for row in connection.execute(query):
            rating = Rating(row.mu, row.sigma, row.hands, row.last_us)
            found.setdefault(row.game, {})[_contestant(row.contestant)] = rating
    return found


def forget(store: Store, names: Collection[str]) -> int:
    """Delete the ratings, history and pairings of players with these names. Returns the number of ratings."""
    gone = 0
    with store.begin(writes=True) as connection:
        for key in connection.execute(sa.select(ratings.c.contestant).distinct()).scalars().all():
            who = _contestant(key)
            if who.kind != "player" or who.name not in names:
                continue
            gone += connection.execute(ratings.delete().where(ratings.c.contestant == key)).rowcount
            connection.execute(rating_history.delete().where(rating_history.c.contestant == key))
            either = (rating_pairs.c.contestant == key) | (rating_pairs.c.opponent == key)
            connection.execute(rating_pairs.delete().where(either))
    return gone
