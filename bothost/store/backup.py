"""Back up a live SQLite database, and restore it. PostgreSQL has its own tools."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.store import schema
from bothost.store.engine import advice_on, open_sqlite, sqlite_path

PAGES_PER_STEP = 2048
"""Pages copied in one step. Other processes can write between steps."""

Progress = Callable[[int, int], None]
"""Called with the number of copied pages and the total."""


def back_up(settings: StoreSettings, target: Path, *, progress: Progress | None = None) -> int:
    """Copy the database to a new file, and return its size in bytes. Others may write to it meanwhile.

    The file appears under its name once it is complete and synced. Raises StoreError if the file exists and for
    PostgreSQL, StoreUnavailable if there is no database, SchemaOutdated if there is nothing in it.
    """
    source = _file(settings)
    if not source.exists():
        raise StoreUnavailable(f"no database at {source}", advice="create it with: bothost db upgrade")
    if _is_without_tables(source):
        schema.check(None, str(source))
    return _copy(source, target, "choose another name for the backup, or move that file away", progress)


def restore(settings: StoreSettings, source: Path, *, progress: Progress | None = None) -> int:
    """Create the database from a backup, and return its size in bytes.

    Raises StoreError if the backup is invalid or the database exists: nothing is overwritten.
    """
    target = _file(settings)
    if not source.is_file():
        raise StoreError(f"no backup at {source}", advice="name the file that bothost db backup wrote")
    try:
        with closing(open_sqlite(source, timeout=10, isolation_level=None)) as backup:
            row = backup.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{source} is not a backup of a bothost database: {error}") from error
    if row is None or row[0] not in schema.REVISIONS:
        schema.check(row and str(row[0]), str(source))
    target.parent.mkdir(parents=True, exist_ok=True)
    advice = "stop every host, move the database and its -wal and -shm files away, then restore again"
    return _copy(source, target, advice, progress)


def _copy(source: Path, target: Path, advice: str, progress: Progress | None) -> int:
    leftovers = [path for path in _files_of(target) if path.exists()]
    if leftovers:
        raise StoreError(f"{leftovers[0]} exists already", advice=advice)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")

    def on_step(_status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    try:
        with (
            closing(open_sqlite(source, timeout=10, isolation_level=None)) as live,
            closing(sqlite3.connect(partial)) as copy,
        ):
            # A read transaction fixes the state that is copied. Without it SQLite would start again whenever others
            # write between two steps, and never finish beside a busy host.
            live.execute("BEGIN")
            live.execute("SELECT count(*) FROM sqlite_master").fetchone()
            live.backup(copy, pages=PAGES_PER_STEP, progress=on_step, sleep=0.001)
            copy.execute("PRAGMA journal_mode = DELETE")  # a single file, without -wal and -shm
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        _name(partial, target)
    except sqlite3.Error as error:
        raise StoreError(f"copying {source} to {target} failed: {error}", advice=advice_on(str(error))) from error
    except FileExistsError as error:
        raise StoreError(f"{target} exists already", advice=advice) from error
    finally:
        for path in _files_of(partial):  # a full disk leaves its journal
            path.unlink(missing_ok=True)
    return target.stat().st_size


def _is_without_tables(database: Path) -> bool:
    try:
        with closing(open_sqlite(database, timeout=10, isolation_level=None)) as opened:
            return opened.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    except sqlite3.Error:
        return False  # the copy says what is wrong


def _files_of(database: Path) -> list[Path]:
    """A SQLite database, and the files that SQLite makes beside it."""
    return [database, *(Path(f"{database}{end}") for end in ("-wal", "-shm", "-journal"))]


def _name(partial: Path, target: Path) -> None:
    """Give the file its name. Raises FileExistsError if another file got that name meanwhile."""
    try:
        os.link(partial, target)  # a rename would replace the other file
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links, as on most memory sticks
        partial.rename(target)


def _file(settings: StoreSettings) -> Path:
    path = sqlite_path(settings.url)
    if path is None:
        raise StoreError("bothost copies SQLite databases only", advice="use pg_dump and pg_restore for PostgreSQL")
    return path
