"""Bulk inserts into PostgreSQL with psycopg's binary COPY.

COPY has no ``ON CONFLICT``, and after an outage a row may be written twice. Then the write is repeated through a
temporary table and ``INSERT … ON CONFLICT DO NOTHING``.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
import structlog
from psycopg import sql

from bothost.config import StoreSettings
from bothost.errors import StoreError
from bothost.store import partitions, schema
from bothost.store.engine import full_url, shown, storable, unavailable
from bothost.store.models import COLUMNS, Key, metadata
from bothost.store.postgres_connection import TimedConnection, connect
from bothost.store.sinks import BadRow, Chunk

_log = structlog.get_logger("bothost.store")
_TYPES: dict[type[Any], str] = {
    Key: "bytea",  # on the wire, a uuid is its 16 bytes
    sa.Text: "text",
    sa.SmallInteger: "int2",
    sa.Integer: "int4",
    sa.BigInteger: "int8",
    sa.Double: "float8",
    sa.LargeBinary: "bytea",
}
ANSWER_S = 60.0
"""Default limit for a server's answer, and for making partitions."""
PARTITIONS_S = 6 * 3600.0
"""How often the partitions of the coming months are made."""


class PostgresSink:
    """A PostgreSQL database."""

    def __init__(self, settings: StoreSettings) -> None:
        self._shown = shown(settings.url)
        self._dsn = full_url(settings).set(drivername="postgresql").render_as_string(hide_password=False)
        self._synchronous = settings.synchronous
        self._connection: TimedConnection | None = None
        self._wait_ms = -1
        self._partitions_at = 0.0

    def connect(self) -> None:
        try:
            connection = connect(self._dsn, ANSWER_S, autocommit=True)
        except psycopg.Error as error:
            raise unavailable(self._shown, error) from error
        try:
            schema.check(_revision(connection), self._shown)
        except psycopg.Error as error:
            connection.close()
            raise unavailable(self._shown, error) from error
        except StoreError:
            connection.close()
            raise
        self._connection, self._wait_ms = connection, -1
        self._make_partitions(connection)

    def _make_partitions(self, connection: psycopg.Connection[Any]) -> None:
        """Make the partitions of the coming months. Without one, rows go to the default partition."""
        self._partitions_at = time.monotonic() + PARTITIONS_S

        def execute(statement: str) -> Sequence[Sequence[Any]]:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else ()

        try:
            with connection.transaction():
                execute("SET LOCAL lock_timeout = 1000")
                for name in partitions.make_ahead(execute):
                    _log.info("partition_made", partition=name)
        except psycopg.Error as error:
            _log.warning("partitions_not_made", error=str(error), advice="bothost db upgrade makes them, too")

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int, answer_s: float = ANSWER_S) -> int:
        chunks = list(chunks)
        if self._connection is None:
            self.connect()
        connection = self._connection
        assert connection is not None
        connection.most_s = ANSWER_S
        if time.monotonic() >= self._partitions_at:
            self._make_partitions(connection)
        connection.most_s = answer_s
        try:
            if wait_ms != self._wait_ms:
                connection.execute(f"SET lock_timeout = {max(1, wait_ms):d}".encode())
                self._wait_ms = wait_ms
            try:
                return self._write(connection, chunks)
            except (psycopg.DataError, UnicodeError):
                return self._write(
                    connection, [(t, columns, list(map(_storable, rows))) for t, columns, rows in chunks]
                )
        except (psycopg.Error, OverflowError, UnicodeError, TypeError, ValueError) as error:
            raise self._translated(error) from error

    def displaced(self) -> str:
        return ""  # a connection ends with its server

    def _write(self, connection: psycopg.Connection[Any], chunks: list[Chunk]) -> int:
        try:
            with connection.transaction(), connection.cursor() as cursor:
                for chunk in chunks:
                    _copy(cursor, chunk[0], *chunk)
            return sum(len(rows) for _, _, rows in chunks)
        except psycopg.errors.UniqueViolation:
            with connection.transaction(), connection.cursor() as cursor:
                return sum(_insert(cursor, *chunk) for chunk in chunks)

    def _translated(self, error: Exception) -> StoreError:
        """Map an exception to the StoreError that ``write`` raises."""
        # psycopg itself raises errors without a code, for values that it cannot convert.
        of_row = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)
        if not isinstance(error, psycopg.Error) or isinstance(error, of_row) or type(error) is psycopg.ProgrammingError:
            return BadRow(f"{type(error).__name__}: {error}")
        if not isinstance(error, psycopg.errors.LockNotAvailable):
            self.close()
        return unavailable(self._shown, error)

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def _insert(cursor: psycopg.Cursor[Any], table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]) -> int:
    """Insert rows that may exist already, through a temporary table. Returns the number of new ones."""
    staged = f"staged_{table}"
    create = "CREATE TEMPORARY TABLE IF NOT EXISTS {} (LIKE {} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
    cursor.execute(sql.SQL(create).format(sql.Identifier(staged), sql.Identifier(table)))
    _copy(cursor, staged, table, columns, rows)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    insert = sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} ON CONFLICT DO NOTHING")
    cursor.execute(insert.format(sql.Identifier(table), names, sql.Identifier(staged)))
    return cursor.rowcount


def _storable(row: Sequence[Any]) -> list[Any]:
    return [storable(value) if isinstance(value, str) else value for value in row]


def _copy(
    cursor: psycopg.Cursor[Any], target: str, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]
) -> None:
    """Write rows of a log table to ``target``, a table with the same columns, with binary COPY."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(target), names)
    with cursor.copy(statement) as copy:
        copy.set_types(types_of(table, columns))
        for row in rows:
            copy.write_row(row)


@functools.cache
def types_of(table: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the PostgreSQL types of a log table's columns for COPY."""
    return tuple(_TYPES[type(metadata.tables[table].columns[name].type)] for name in columns)


def raw_copy(settings: StoreSettings, rows: Sequence[Sequence[Any]], batch: int) -> float:
    """Return the seconds that COPY of decisions into a plain table takes, in batches. For ``bothost bench log``."""
    columns = COLUMNS["decisions"]
    dsn = full_url(settings).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"CREATE UNLOGGED TABLE bench_raw (LIKE decisions) WITH ({partitions.SETTINGS_OF['decisions']})".encode()
        )
        start = time.perf_counter()
        for at in range(0, len(rows), batch):
            _copy(cursor, "bench_raw", "decisions", columns, rows[at : at + batch])
        taken = time.perf_counter() - start
        cursor.execute("DROP TABLE bench_raw")
    return taken


def _revision(connection: psycopg.Connection[Any]) -> str | None:
    row = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
    if row is None or row[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row is not None else None
