"""Bulk inserts, one transaction at a time: what stands between the writer thread and a database.

Rows that are already there are left alone, so that whatever is uncertain can simply be written again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.store import schema
from bothost.store.checkpoint import LOG_PAGES_AT_MOST, Checkpointer
from bothost.store.engine import bind_as_they_are, parse_url, set_up_sqlite

ROWS_PER_STEP = 64
"""Most rows of one ``INSERT``."""
STATEMENTS = 512
"""Prepared statements that are kept: one per table and number of rows."""

Chunk = tuple[str, tuple[str, ...], Sequence[Sequence[Any]]]
"""Table, columns, rows."""


class BadRow(StoreError):
    """A row of this write is nothing that the database can hold; nothing of the write was kept."""


class Sink(Protocol):
    """A database that takes rows. Belongs to one thread, but may be made in another."""

    def connect(self) -> None:
        """Connect and check the schema. Raises StoreUnavailable, SchemaOutdated."""
        ...

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int) -> int:
        """Insert the rows in one transaction and return how many were new; connects where needed.

        Waits at most ``wait_ms`` for a lock. Raises StoreUnavailable or SchemaOutdated (try again later: nothing of
        the write was kept, or all of it) and BadRow (do not).
        """
        ...

    def close(self) -> None: ...


def make_sink(settings: StoreSettings) -> Sink:
    """The sink of a database URL."""
    url = parse_url(settings.url)
    if url.get_backend_name() == "sqlite":
        return SqliteSink(Path(url.database or ""), synchronous=settings.synchronous)
    from bothost.store.postgres import PostgresSink

    return PostgresSink(settings)


class SqliteSink:
    """A SQLite file.

    The sqlite3 module gives up the GIL for every ``sqlite3_step``. Beside a busy event loop each return costs up to a
    switch interval (5 ms), and ``executemany`` takes a step per row: 224 rows/s were measured that way, against
    18,000 with one ``INSERT … VALUES (…), (…), …`` per hundreds of rows, which is one step. On the other hand the
    module keeps the GIL while it binds: 64 rows take half a millisecond, which the event loop hardly notices. So the
    rows of a table go in steps of 64, and what is left in one.
    """

    def __init__(self, path: Path, *, synchronous: str = "normal") -> None:
        self._path = path
        self._synchronous = synchronous
        self._connection: sqlite3.Connection | None = None
        self._checkpointer: Checkpointer | None = None
        self._identity = (0, 0)
        self._wait_ms = -1
        self._statements: dict[tuple[str, tuple[str, ...], int], str] = {}

    def connect(self) -> None:
        try:
            self._identity = self._file()
            uri = f"file:{quote(str(self._path.resolve()))}?mode=rw"
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=STATEMENTS
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable(f"database {self._path}: {error}", advice=_CREATE) from error
        try:
            set_up_sqlite(connection, synchronous=self._synchronous, busy_ms=1000)
            schema.check(_revision(connection), str(self._path))
        except sqlite3.Error as error:
            connection.close()
            raise StoreUnavailable(f"database {self._path}: {error}") from error
        except StoreError:
            connection.close()
            raise
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES_AT_MOST}")
        bind_as_they_are()
        self._connection = connection
        self._checkpointer = Checkpointer(self._path)
        self._wait_ms = 1000

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int) -> int:
        if self._connection is None:
            self.connect()
        connection = self._connection
        assert connection is not None
        try:
            if wait_ms != self._wait_ms:
                connection.execute(f"PRAGMA busy_timeout = {wait_ms:d}")
                self._wait_ms = wait_ms
            if self._checkpointer is not None:
                self._checkpointer.before_write(connection)
            before = connection.total_changes
            connection.execute("BEGIN IMMEDIATE")
            for table, columns, rows in chunks:
                self._insert(connection, table, columns, rows)
            connection.execute("COMMIT")
            if self._file() != self._identity:
                raise sqlite3.OperationalError("the file was moved or deleted while open")
            new = connection.total_changes - before
            if self._checkpointer is not None:
                self._checkpointer.written(new)
            return new
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError) as error:
            self._roll_back(connection)
            raise BadRow(str(error)) from error
        except (OverflowError, UnicodeError, TypeError, ValueError) as error:
            self._roll_back(connection)
            raise BadRow(f"{type(error).__name__}: {error}") from error
        except (sqlite3.Error, OSError) as error:
            locked = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            self._roll_back(connection)
            if not locked:
                self.close()
            raise StoreUnavailable(f"database {self._path}: {error}") from error

    def close(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _insert(
        self, connection: sqlite3.Connection, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]
    ) -> None:
        most = min(connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(columns), ROWS_PER_STEP)
        for at in range(0, len(rows), most):
            part = rows[at : at + most]
            connection.execute(self._statement(table, columns, len(part)), list(chain.from_iterable(part)))

    def _statement(self, table: str, columns: tuple[str, ...], rows: int) -> str:
        """The ``INSERT`` of so many rows."""
        statement = self._statements.get((table, columns, rows))
        if statement is None:
            names = ", ".join(f'"{name}"' for name in columns)
            marks = ", ".join([f"({', '.join('?' * len(columns))})"] * rows)
            statement = f'INSERT INTO "{table}" ({names}) VALUES {marks} ON CONFLICT DO NOTHING'
            self._statements[table, columns, rows] = statement
        return statement

    def _file(self) -> tuple[int, int]:
        status = os.stat(self._path)
        return status.st_dev, status.st_ino

    @staticmethod
    def _roll_back(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")


_CREATE = "Create it with: bothost db upgrade"


def _revision(connection: sqlite3.Connection) -> str | None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row is not None else None
