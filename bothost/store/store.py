"""Small synchronous reads and writes. Bulk writes use ``DecisionLog``, bulk reads ``bothost.store.reader``."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from bothost.config import StoreSettings
from bothost.messages import Json
from bothost.store import models, schema
from bothost.store.engine import WRITES, make_engine, reaching, storable
from bothost.store.records import GameRecord, LoggedMove

T = TypeVar("T")


class Store:
    """A database with a checked schema. Thread-safe; every call is one short transaction.

    All methods raise StoreUnavailable while the database cannot be reached.
    """

    def __init__(self, settings: StoreSettings, engine: sa.Engine) -> None:
        self._settings = settings
        self.engine = engine
        self._writing = engine.execution_options(**{WRITES: True})

    @classmethod
    def open(cls, settings: StoreSettings, *, answer_s: float | None = None) -> Self:
        """Open a database. ``answer_s``: how long to wait for a server's answer in seconds; None: no limit.

        Raises ConfigError, StoreUnavailable and SchemaOutdated.
        """
        schema.check_database(settings)
        return cls(settings, make_engine(settings, answer_s=answer_s))

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def begin(self, *, writes: bool = False) -> Iterator[sa.Connection]:
        """A transaction. Driver errors become StoreUnavailable. ``writes``: needed if it reads before it writes."""
        with reaching(self._settings), (self._writing if writes else self.engine).begin() as connection:
            yield connection

    def insert(self, table: sa.Table) -> Any:
        """Return an INSERT with ``ON CONFLICT`` support. Imports only this database's dialect."""
        return importlib.import_module(f"sqlalchemy.dialects.{self.engine.dialect.name}").insert(table)

    def insert_next(self, table: sa.Table, lobby: str, player: str, make: Callable[[int], T]) -> T:
        """Insert ``make(number)``, a struct of the table's columns, with the player's next number, and return it."""
        newest = sa.select(sa.func.max(table.c.number)).where(table.c.lobby == lobby, table.c.player == player)
        while True:
            try:
                with self.begin(writes=True) as connection:
                    made = make((connection.execute(newest).scalar() or 0) + 1)
                    connection.execute(table.insert(), msgspec.to_builtins(made))
                return made
            except IntegrityError:  # another process took this number
                continue

    def open_hands(
        self, lobby: str, account: str, hands: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], GameRecord]:
        """Return those of the hands (table, hand) that have not ended. If names repeat, the newest hand counts."""
        c = models.games.c
        logged = storable if self.engine.dialect.name == "postgresql" else str
        named = {(logged(table), logged(hand)): (table, hand) for table, hand in hands}
        conditions = (c.table.in_({table for table, _ in named}), c.hand.in_({hand for _, hand in named}))
        found = self._live(lobby, account, *conditions)
        return {named[name]: game for game in found if (name := (game.table, game.hand)) in named}

    def unfinished_hands(self, lobby: str, account: str, before_us: int) -> list[GameRecord]:
        """Return the account's hands that started before this time and have not ended, oldest first."""
        return self._live(lobby, account, models.games.c.started_us < before_us)

    def _live(self, lobby: str, account: str, *conditions: sa.ColumnElement[bool]) -> list[GameRecord]:
        """The account's hands that have not ended and meet the conditions, oldest first."""
        games, ends = models.games, models.game_ends
        ended = sa.exists().where(ends.c.game_id == games.c.game_id, ends.c.seat == games.c.seat)
        query = (
            sa.select(games)
            .where(games.c.lobby == lobby, games.c.account == account, ~ended, *conditions)
            .order_by(games.c.game_id)
        )
        with self.begin() as connection:
            return [GameRecord(**row._mapping) for row in connection.execute(query)]

    def moves_of(self, game_ids: Collection[bytes]) -> dict[tuple[bytes, int], list[LoggedMove]]:
        """Return (game_id, seat) → live decisions, in order. Several with one request id form a composite move."""
        d = models.decisions
        columns = (d.c.game_id, d.c.seat, d.c.request_id, d.c.id, d.c.seq, d.c.substep, d.c.attempt, d.c.action)
        query = (
            sa.select(*columns, d.c.notation)
            .where(d.c.game_id.in_(game_ids), d.c.role == "live")
            .order_by(d.c.seq, d.c.substep, d.c.attempt)
        )
        moves: dict[tuple[bytes, int], list[LoggedMove]] = {}
        with self.begin() as connection:
            for game_id, seat, *move in connection.execute(query):
                moves.setdefault((game_id, seat), []).append(LoggedMove(*move))
        return moves

    def rejected(self, game_ids: Collection[bytes]) -> set[bytes]:
        """Return the ids of the live decisions of these hands that the lobby rejected."""
        d, o = models.decisions, models.outcomes
        query = (
            sa.select(d.c.id)
            .join(o, o.c.decision_id == d.c.id)
            .where(d.c.game_id.in_(game_ids), d.c.role == "live", o.c.kind == "rejected")
        )
        with self.begin() as connection:
            return set(connection.execute(query).scalars())

    def memo(self, lobby: str, account: str) -> Json:
        """Return what the account's adapter stored; {} if nothing."""
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

    def remember_first(self, lobby: str, account: str, memo: Json) -> Json:
        """Store a memo unless the account has one. Returns the stored memo."""
        values = {"lobby": lobby, "account": account, "memo": json.dumps(memo), "at_us": time.time_ns() // 1000}
        with self.begin() as connection:
            connection.execute(self.insert(models.memos).values(values).on_conflict_do_nothing())
        return self.memo(lobby, account)
