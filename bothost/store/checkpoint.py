"""Checkpoint SQLite's write-ahead log in a thread, so that commits rarely wait for the disk.

By default the commit that makes the log too long copies it into the database and syncs both. That takes tens of
milliseconds, during which no decision becomes durable. Here a thread with its own connection copies the log instead.
The log can restart only when all of it is copied, but the writer appends meanwhile. So when it is longer than
``LOG_PAGES``, the writer itself copies the last pages, about ten.

SQLite syncs the database in the checkpoint that copies the last page, which is the writer's. So the thread syncs the
database before that.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

from bothost.children import lower_priority
from bothost.store.engine import open_sqlite, set_up_sqlite

ROWS = 2_048
"""Rows between two checkpoints. Fewer: pages that several transactions change are copied more often. More: a host with
one core waits longer for each checkpoint (16,384 rows take 13 ms, which raised the p99 of its answers)."""
LOG_PAGES = 32_768
"""Length at which the log should restart: 128 MiB."""
LOG_PAGES_AT_MOST = 4 * LOG_PAGES
"""Length at which a commit checkpoints the whole log, in case the thread has failed."""
NICENESS = 10
"""Niceness of the thread: on a busy core other threads run first."""


class Checkpointer:
    """Checkpoints a database in its own thread."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._rows = 0
        self.nearly_done = False
        """Whether the log is long and most of it has just been copied."""
        self._wanted = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
        self._thread.start()

    def written(self, rows: int) -> None:
        """Count rows committed since the last call; start a checkpoint after every ``ROWS``."""
        self._rows += rows
        if self._rows >= ROWS:
            self._rows = 0
            self._wanted.set()

    def before_write(self, connection: sqlite3.Connection) -> None:
        """Copy the last pages with the writer's connection before a transaction, so that the log can restart."""
        if self.nearly_done:
            with suppress(sqlite3.Error):
                self.nearly_done = _checkpoint(connection) is None

    def close(self) -> None:
        self._closing = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        if sys.platform == "linux":
            lower_priority(threading.get_native_id(), NICENESS)
        # Failures are harmless: the rows are in the log, and in the end the writer checkpoints it.
        with suppress(sqlite3.Error), closing(open_sqlite(self._path, isolation_level=None)) as connection:
            set_up_sqlite(connection, busy_ms=0)
            while self._wanted.wait() and not self._closing:
                self._wanted.clear()
                # Twice: the second copies what arrived during the first, so that less is left for the writer.
                if not self.nearly_done and self._turn(connection):
                    self.nearly_done = self._turn(connection)

    def _turn(self, connection: sqlite3.Connection) -> bool:
        """Copy and sync. Returns whether the log should restart."""
        with suppress(sqlite3.Error):
            pages = _checkpoint(connection)
            sync(self._path)
            return (pages or 0) > LOG_PAGES
        return False


def _checkpoint(connection: sqlite3.Connection) -> int | None:
    """Copy what can be copied without waiting. Returns the log's length in pages, or None if another process copies."""
    ((busy, pages, _),) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return None if busy else int(pages)


def sync(path: Path) -> None:
    """Sync a file that SQLite has open, through SQLite's file descriptor.

    Closing a second descriptor would release all of the process's locks on the file (fcntl).
    """
    with suppress(OSError):  # no /proc, or the file was closed: then the writer's checkpoint takes longer
        for name in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):
                if os.readlink(f"/proc/self/fd/{name}") == str(path):
                    os.fsync(int(name))
                    return
