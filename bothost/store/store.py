"""Small synchronous reads and writes of the database. Bulk goes elsewhere: in by ``DecisionLog``, out by ``reader``."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import sqlalchemy as sa

from bothost.config import StoreSettings
from bothost.store import models, schema
from bothost.store.engine import make_engine, reaching
from bothost.store.records import GameRecord, LoggedMove

Json = dict[str, Any]


class Store:
    """A database whose schema was checked. Thread-safe; every call is one short transaction.

    All methods raise StoreUnavailable while the database cannot be reached.
    """

    def __init__(self, settings: StoreSettings, engine: sa.Engine) -> None:
        self._settings = settings
        self.engine = engine

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        """Raises ConfigError, StoreUnavailable and SchemaOutdated."""
        schema.check_database(settings)
        return cls(settings, make_engine(settings))

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A transaction; what the driver says about a database that is away becomes StoreUnavailable."""
        with reaching(self._settings), self.engine.begin() as connection:
            yield connection

    def insert(self, table: sa.Table) -> Any:
        """An INSERT that knows ``ON CONFLICT``, of this database's dialect: the other one is not even imported."""
        return importlib.import_module(f"sqlalchemy.dialects.{self.engine.dialect.name}").insert(table)

    def find_game(self, lobby: str, account: str, table: str, hand: str) -> GameRecord | None:
        """The hand of that name which has begun last and has not ended, None where there is none."""
        games, ends = models.games, models.game_ends
        ended = sa.exists().where(ends.c.game_id == games.c.game_id, ends.c.seat == games.c.seat)
        query = (
            sa.select(games)
            .where(
                games.c.lobby == lobby, games.c.account == account, games.c.table == table, games.c.hand == hand, ~ended
            )
            .order_by(games.c.game_id.desc())
            .limit(1)
        )
        with self.begin() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else GameRecord(**row._mapping)

    def decisions_of(self, game_id: bytes, seat: int) -> list[LoggedMove]:
        """The live decisions of a seat, in order; several of one request are the steps of a composite move."""
        d = models.decisions
        columns = (d.c.request_id, d.c.id, d.c.seq, d.c.substep, d.c.attempt, d.c.action, d.c.notation)
        query = (
            sa.select(*columns)
            .where(d.c.game_id == game_id, d.c.seat == seat, d.c.role == "live")
            .order_by(d.c.seq, d.c.substep, d.c.attempt)
        )
        with self.begin() as connection:
            return [LoggedMove(*row) for row in connection.execute(query)]

    def rejected(self, game_id: bytes, seat: int) -> set[bytes]:
        """Ids of the live decisions of a seat that the lobby refused."""
        d, o = models.decisions, models.outcomes
        query = (
            sa.select(d.c.id)
            .join(o, o.c.decision_id == d.c.id)
            .where(d.c.game_id == game_id, d.c.seat == seat, d.c.role == "live", o.c.kind == "rejected")
        )
        with self.begin() as connection:
            return set(connection.execute(query).scalars())

    def memo(self, lobby: str, account: str) -> Json:
        """What the account's adapter asked to remember, {} where it did not."""
        memos = models.memos
        query = sa.select(memos.c.memo).where(memos.c.lobby == lobby, memos.c.account == account)
        with self.begin() as connection:
            text = connection.execute(query).scalar()
        return {} if text is None else dict(json.loads(text))

    def remember(self, lobby: str, account: str, memo: Json) -> None:
        """Replace the memo of an account, durably."""
        values = {"lobby": lobby, "account": account, "memo": json.dumps(memo), "at_us": time.time_ns() // 1000}
        insert = self.insert(models.memos)
        new = {name: insert.excluded[name] for name in ("memo", "at_us")}
        statement = insert.values(values).on_conflict_do_update(index_elements=["lobby", "account"], set_=new)
        with self.begin() as connection:
            connection.execute(statement)
