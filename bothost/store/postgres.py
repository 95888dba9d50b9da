"""Bulk inserts into PostgreSQL: binary COPY into a temporary table, then one INSERT that leaves what is there.

COPY alone knows no ``ON CONFLICT``, and a row may come twice after an outage.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.store import schema
from bothost.store.engine import full_url, shown
from bothost.store.models import Key, metadata
from bothost.store.sinks import BadRow, Chunk

_TYPES: dict[type[Any], str] = {
    Key: "uuid",
    sa.Text: "text",
    sa.SmallInteger: "int2",
    sa.Integer: "int4",
    sa.BigInteger: "int8",
    sa.Double: "float8",
    sa.LargeBinary: "bytea",
}
CONNECT_TIMEOUT_S = 3


class PostgresSink:
    """A PostgreSQL database."""

    def __init__(self, settings: StoreSettings) -> None:
        self._shown = shown(settings.url)
        self._dsn = full_url(settings).set(drivername="postgresql").render_as_string(hide_password=False)
        self._synchronous = settings.synchronous
        self._connection: psycopg.Connection[Any] | None = None
        self._staged: set[str] = set()
        self._wait_ms = -1

    def connect(self) -> None:
        try:
            connection = psycopg.connect(self._dsn, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True)
        except psycopg.Error as error:
            raise StoreUnavailable(f"database {self._shown}: {error}") from error
        try:
            schema.check(_revision(connection), self._shown)
        except psycopg.Error as error:
            connection.close()
            raise StoreUnavailable(f"database {self._shown}: {error}") from error
        except StoreError:
            connection.close()
            raise
        self._connection, self._staged, self._wait_ms = connection, set(), -1

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int) -> int:
        if self._connection is None:
            self.connect()
        connection = self._connection
        assert connection is not None
        try:
            if wait_ms != self._wait_ms:
                connection.execute(f"SET lock_timeout = {max(1, wait_ms):d}".encode())
                self._wait_ms = wait_ms
            inserted = 0
            with connection.transaction(), connection.cursor() as cursor:
                for table, columns, rows in chunks:
                    inserted += self._insert(cursor, table, columns, rows)
            return inserted
        except (psycopg.Error, OverflowError, UnicodeError, TypeError, ValueError) as error:
            self._staged.clear()  # what this transaction made is gone with it
            raise self._told(error) from error

    def _told(self, error: Exception) -> StoreError:
        """What an exception means for the caller of ``write``."""
        gone = isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn)
        bad = psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError
        if not gone and (isinstance(error, bad) or not isinstance(error, psycopg.Error)):
            return BadRow(f"{type(error).__name__}: {error}")
        if not isinstance(error, psycopg.errors.LockNotAvailable):
            self.close()
        return StoreUnavailable(f"database {self._shown}: {error}")

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _insert(
        self, cursor: psycopg.Cursor[Any], table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]
    ) -> int:
        staged = f"staged_{table}"
        if staged not in self._staged:
            create = "CREATE TEMPORARY TABLE IF NOT EXISTS {} (LIKE {} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
            cursor.execute(sql.SQL(create).format(sql.Identifier(staged), sql.Identifier(table)))
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        kinds = [_TYPES[type(metadata.tables[table].columns[name].type)] for name in columns]
        keys = [place for place, kind in enumerate(kinds) if kind == "uuid"]
        with cursor.copy(
            sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(staged), names)
        ) as copy:
            copy.set_types(kinds)
            for row in rows:
                values = list(row)
                for place in keys:
                    values[place] = uuid.UUID(bytes=values[place])
                copy.write_row(values)
        insert = sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} ON CONFLICT DO NOTHING")
        cursor.execute(insert.format(sql.Identifier(table), names, sql.Identifier(staged)))
        self._staged.add(staged)
        return cursor.rowcount


def _revision(connection: psycopg.Connection[Any]) -> str | None:
    row = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
    if row is None or row[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row is not None else None
