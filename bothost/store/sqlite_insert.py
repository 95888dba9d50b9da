"""Rows into SQLite, one transaction at a time, beside a busy event loop.

Natively a transaction holds the GIL only while the rows' values are looked at, a fraction of a microsecond each, and
not while they are written. Where SQLite's C interface is hidden (``sqlite_functions``) the sqlite3 module does it, at
twice the processor time.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from bothost.native import _native
from bothost.store.engine import bind_as_they_are
from bothost.store.sinks import Chunk
from bothost.store.sqlite_library import sqlite_functions

PATIENT_ROWS = 1000
"""A writer in the background that has more rows to write at once has fallen behind, and writes these as others do."""
ROWS_PER_STEP = 64
"""Most rows of one ``INSERT`` of the sqlite3 module."""


class Inserter(Protocol):
    """A connection that inserts. Every method raises sqlite3.Error."""

    def execute(self, statement: str, /) -> object:
        """Run a statement without parameters."""
        ...

    def insert(self, chunks: Iterable[Chunk]) -> int:
        """Insert rows in one transaction, or none of them; how many were new.

        Raises OverflowError, UnicodeError, TypeError and ValueError, too, for values that no column takes.
        """
        ...

    def close(self) -> None: ...


def inserter_of(path: Path, connection: sqlite3.Connection, *, background: bool) -> Inserter:
    """The fastest that there is; ``connection`` is used where nothing is faster than the sqlite3 module.

    ``background``: what happens without the GIL happens at the lowest priority, for nobody waits for the rows.
    """
    functions = sqlite_functions()
    if functions is None:
        return DriverInserter(connection)
    return NativeInserter(path, functions, background=background)


class NativeInserter:
    """Through SQLite's C interface, on a connection of its own."""

    def __init__(self, path: Path, functions: dict[str, int], *, background: bool = False) -> None:
        try:
            self._native: _native.SqliteWriter | None = _native.SqliteWriter(functions, str(path.resolve()))
        except RuntimeError as error:
            raise sqlite3.OperationalError(str(error)) from error
        self._background = background
        self._statements: dict[tuple[str, tuple[str, ...]], str] = {}

    def execute(self, statement: str, /) -> None:
        _raise(*self._open().execute(statement))

    def insert(self, chunks: Iterable[Chunk]) -> int:
        # [:] makes a list of what converts its rows as they are taken: they must live until they are written.
        pairs = [(self._statement(table, columns), rows[:]) for table, columns, rows in chunks]
        patient = self._background and sum(len(rows) for _, rows in pairs) <= PATIENT_ROWS
        return _raise(*self._open().insert(pairs, patient))

    def close(self) -> None:
        self._native = None

    def _open(self) -> _native.SqliteWriter:
        if self._native is None:
            raise sqlite3.OperationalError("the connection is closed")
        return self._native

    def _statement(self, table: str, columns: tuple[str, ...]) -> str:
        statement = self._statements.get((table, columns))
        if statement is None:
            statement = self._statements[table, columns] = _insert_of(table, columns, 1)
        return statement


def _raise(code: int, why: str, rows: int) -> int:
    """The rows; raises for a result code as the sqlite3 module would (https://sqlite.org/rescode.html)."""
    if code == sqlite3.SQLITE_OK:
        return rows
    error = _ERRORS.get(code & 0xFF, sqlite3.OperationalError)(why)
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_BUSY" if code & 0xFF == sqlite3.SQLITE_BUSY else f"SQLITE_{code}"
    raise error


_ERRORS: dict[int, type[sqlite3.Error]] = {
    sqlite3.SQLITE_CONSTRAINT: sqlite3.IntegrityError,
    sqlite3.SQLITE_MISMATCH: sqlite3.IntegrityError,
    sqlite3.SQLITE_TOOBIG: sqlite3.DataError,
    sqlite3.SQLITE_RANGE: sqlite3.InterfaceError,
    sqlite3.SQLITE_CORRUPT: sqlite3.DatabaseError,
    sqlite3.SQLITE_NOTADB: sqlite3.DatabaseError,
}


class DriverInserter:
    """Through the sqlite3 module.

    It gives up the GIL for every ``sqlite3_step``. Beside a busy event loop each return costs up to a switch interval
    (5 ms), and ``executemany`` takes a step per row: 224 rows/s were measured that way, against 18,000 with one
    ``INSERT … VALUES (…), (…), …`` per hundreds of rows, which is one step. On the other hand the module keeps the GIL
    while it binds: 64 rows take half a millisecond, which the event loop hardly notices. So the rows of a table go in
    steps of 64, and what is left in one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        bind_as_they_are()
        self._connection = connection
        self._statements: dict[tuple[str, tuple[str, ...], int], str] = {}

    def execute(self, statement: str, /) -> object:
        return self._connection.execute(statement)

    def insert(self, chunks: Iterable[Chunk]) -> int:
        connection = self._connection
        before = connection.total_changes
        try:
            connection.execute("BEGIN IMMEDIATE")
            for table, columns, rows in chunks:
                self._rows(table, columns, rows)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise
        return connection.total_changes - before

    def close(self) -> None:
        self._connection.close()

    def _rows(self, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]]) -> None:
        limit = self._connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        most = min(limit // len(columns), ROWS_PER_STEP)
        for at in range(0, len(rows), most):
            part = rows[at : at + most]
            self._connection.execute(self._statement(table, columns, len(part)), list(chain.from_iterable(part)))

    def _statement(self, table: str, columns: tuple[str, ...], rows: int) -> str:
        statement = self._statements.get((table, columns, rows))
        if statement is None:
            statement = self._statements[table, columns, rows] = _insert_of(table, columns, rows)
        return statement


def _insert_of(table: str, columns: tuple[str, ...], rows: int) -> str:
    """The ``INSERT`` of so many rows, which leaves those alone that are there."""
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join([f"({', '.join('?' * len(columns))})"] * rows)
    return f'INSERT INTO "{table}" ({names}) VALUES {marks} ON CONFLICT DO NOTHING'
