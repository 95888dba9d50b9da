"""Rows into a SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from bothost.errors import StoreError, StoreUnavailable
from bothost.store import schema
from bothost.store.checkpoint import LOG_PAGES_AT_MOST, Checkpointer
from bothost.store.engine import set_up_sqlite
from bothost.store.sinks import BadRow, Chunk
from bothost.store.sqlite_insert import Inserter, inserter_of

STATEMENTS = 512
"""Prepared statements that the sqlite3 module keeps: one per table and number of rows, where it inserts them."""
_CREATE = "Create it with: bothost db upgrade"


class SqliteSink:
    """A SQLite file."""

    def __init__(self, path: Path, *, synchronous: str = "normal", background: bool = False) -> None:
        """``background``: nobody waits for the rows; see ``inserter_of``."""
        self._path = path
        self._synchronous = synchronous
        self._background = background
        self._connection: sqlite3.Connection | None = None
        """For all but the rows."""
        self._inserter: Inserter | None = None
        self._checkpointer: Checkpointer | None = None
        self._identity = (0, 0)
        self._wait_ms = -1

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
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES_AT_MOST}")
            inserter = inserter_of(self._path, connection, background=self._background)
            set_up_sqlite(inserter, synchronous=self._synchronous, busy_ms=1000)
            inserter.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES_AT_MOST}")
        except sqlite3.Error as error:
            connection.close()
            raise StoreUnavailable(f"database {self._path}: {error}") from error
        except StoreError:
            connection.close()
            raise
        self._connection, self._inserter = connection, inserter
        self._checkpointer = Checkpointer(self._path)
        self._wait_ms = 1000

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int, answer_s: float = 60.0) -> int:
        if self._connection is None:
            self.connect()
        connection, inserter, checkpointer = self._connection, self._inserter, self._checkpointer
        assert connection is not None
        assert inserter is not None
        assert checkpointer is not None
        try:
            if wait_ms != self._wait_ms:
                inserter.execute(f"PRAGMA busy_timeout = {wait_ms:d}")
                self._wait_ms = wait_ms
            checkpointer.before_write(connection)
            new = inserter.insert(chunks)
            if self._file() != self._identity:
                raise sqlite3.OperationalError("the file was moved or deleted while open")
            checkpointer.written(new)
            return new
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError) as error:
            raise BadRow(str(error)) from error
        except (OverflowError, UnicodeError, TypeError, ValueError) as error:
            raise BadRow(f"{type(error).__name__}: {error}") from error
        except (sqlite3.Error, OSError) as error:
            if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                self.close()
            raise StoreUnavailable(f"database {self._path}: {error}") from error

    def close(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None
        for connection in (self._inserter, self._connection):
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        self._inserter = self._connection = None

    def _file(self) -> tuple[int, int]:
        status = os.stat(self._path)
        return status.st_dev, status.st_ino


def _revision(connection: sqlite3.Connection) -> str | None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row is not None else None
