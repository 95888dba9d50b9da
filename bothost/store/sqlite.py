"""Write rows to a SQLite file: SQLAlchemy compiles the statements, the sqlite3 module runs them.

``executemany`` would step once per row, and the module releases the GIL for each step. Beside a busy event loop,
getting it back takes up to a switch interval. A multi-row ``INSERT`` is one step, but the module holds the GIL while it
binds the values. ``ROWS_PER_STEP`` rows take about half a millisecond to bind.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite as dialect

from bothost.errors import StoreError
from bothost.store import schema
from bothost.store.checkpoint import LOG_PAGES_AT_MOST, Checkpointer
from bothost.store.engine import bind_without_adapters, file_at, file_identity, open_sqlite, set_up_sqlite, unavailable
from bothost.store.sinks import BadRow, Chunk

ROWS_PER_STEP = 64
"""Most rows of one ``INSERT``."""
STATEMENTS = 512
"""Prepared statements that the sqlite3 module keeps: one per table and number of rows."""
_CREATE = "create it with: bothost db upgrade"


class SqliteSink:
    """A SQLite file. Implements ``Sink``."""

    def __init__(self, path: Path, *, synchronous: str = "normal") -> None:
        self._path = path
        self._synchronous = synchronous
        self._connection: sqlite3.Connection | None = None
        self._checkpointer: Checkpointer | None = None
        self._opened: tuple[int, int] | None = None
        """The file that is or was open."""
        self._wait_ms = -1

    def connect(self) -> None:
        try:
            self._opened = file_identity(self._path)
            connection = open_sqlite(
                self._path, isolation_level=None, check_same_thread=False, cached_statements=STATEMENTS
            )
        except (OSError, sqlite3.Error) as error:
            missing = isinstance(error, FileNotFoundError)
            raise unavailable(self._path, error, advice=_CREATE if missing else "") from error
        try:
            set_up_sqlite(connection, synchronous=self._synchronous, busy_ms=1000)
            schema.check(_revision(connection), str(self._path))
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES_AT_MOST}")
        except sqlite3.Error as error:
            connection.close()
            raise unavailable(self._path, error) from error
        except StoreError:
            connection.close()
            raise
        bind_without_adapters()
        self._connection = connection
        self._checkpointer = Checkpointer(self._path)
        self._wait_ms = 1000

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int, answer_s: float = 60.0) -> int:
        if self._connection is None:
            self.connect()
        connection, checkpointer = self._connection, self._checkpointer
        assert connection is not None
        assert checkpointer is not None
        try:
            if wait_ms != self._wait_ms:
                connection.execute(f"PRAGMA busy_timeout = {wait_ms:d}")
                self._wait_ms = wait_ms
            checkpointer.before_write(connection)
            new = insert(connection, chunks)
            if file_identity(self._path) != self._opened:
                raise sqlite3.OperationalError("the file was replaced while open")
            checkpointer.written(new)
            return new
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError) as error:
            raise BadRow(str(error)) from error
        except (OverflowError, UnicodeError, TypeError, ValueError) as error:
            raise BadRow(f"{type(error).__name__}: {error}") from error
        except (sqlite3.Error, OSError) as error:
            if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                self.close()
            raise unavailable(self._path, error) from error

    def close(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def displaced(self) -> str:
        match file_at(self._path):
            case None:
                return f"{self._path} was moved or deleted"
            case found if found != self._opened and self._connection is not None:
                return f"{self._path} was replaced while open"
        return ""


def insert(connection: sqlite3.Connection, chunks: Iterable[Chunk]) -> int:
    """Insert all rows in one transaction. Returns the number of new ones.

    Raises sqlite3.Error, and for invalid values OverflowError, UnicodeError, TypeError and ValueError.
    """
    before = connection.total_changes
    try:
        connection.execute("BEGIN IMMEDIATE")
        for table, columns, rows in chunks:
            for at in range(0, len(rows), ROWS_PER_STEP):
                part = rows[at : at + ROWS_PER_STEP]
                connection.execute(_statement(table, columns, len(part)), list(chain.from_iterable(part)))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
    return connection.total_changes - before


@functools.cache
def _statement(table: str, columns: tuple[str, ...], rows: int) -> str:
    """Compile the ``INSERT … ON CONFLICT DO NOTHING`` of this many rows."""
    empty: list[dict[str, Any]] = [dict.fromkeys(columns)] * rows
    into = sa.table(table, *map(sa.column, columns))
    statement = dialect.insert(into).values(empty).on_conflict_do_nothing()
    return str(statement.compile(dialect=dialect.dialect()))


def _revision(connection: sqlite3.Connection) -> str | None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row is not None else None
