"""Checkpoints SQLite's write-ahead log in a thread, so that commits hardly wait for the disk.

By default the commit that makes the log too long copies it into the database and syncs both. That takes tens of
milliseconds in which no decision becomes durable. Here a thread with its own connection does it beside the writer. The
log can restart only when all of it is copied, but the writer adds to it meanwhile. So when it is longer than
``LOG_PAGES``, the writer itself copies the last pages, about ten.

SQLite syncs the database in the checkpoint that copies the last page, which would be the writer's. So the thread syncs
the database itself, before that.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from bothost.store.engine import set_up_sqlite

ROWS = 2_048
"""Rows between two checkpoints. With fewer, pages that several transactions change are copied more often. With more, a
host that has one core waits longer behind each: 16,384 rows are 13 ms of work, and one answer in 100 was later."""
LOG_PAGES = 32_768
"""Length at which the log should start over, 128 MiB."""
LOG_PAGES_AT_MOST = 4 * LOG_PAGES
"""Length at which a commit does all of it, if the thread has failed."""
NICENESS = 10
"""Of the thread: on a busy core other threads go first."""


class Checkpointer:
    """Checkpoints a database from a thread of its own, when nudged."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._rows = 0
        self.nearly_done = False
        """The log is long, and most of it was copied just now."""
        self._wanted = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
        self._thread.start()

    def written(self, rows: int) -> None:
        """So many rows were committed since the last call."""
        self._rows += rows
        if self._rows >= ROWS:
            self._rows = 0
            self._wanted.set()

    def before_write(self, connection: sqlite3.Connection) -> None:
        """Called before a transaction of the writer, with its connection: let the log restart if it can."""
        if self.nearly_done:
            with suppress(sqlite3.Error):
                self.nearly_done = _checkpoint(connection) is None

    def close(self) -> None:
        self._closing = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        # A failure costs nothing: the rows are in the log, and the writer checkpoints by itself in the end.
        uri = f"file:{quote(str(self._path))}?mode=rw"
        with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            set_up_sqlite(connection, busy_ms=0)
            while self._wanted.wait() and not self._closing:
                self._wanted.clear()
                # Twice, for what came during a long turn: the less is left for the writer, whose turn it is then.
                if not self.nearly_done and self._turn(connection):
                    self.nearly_done = self._turn(connection)

    def _turn(self, connection: sqlite3.Connection) -> bool:
        """Copy and sync; whether the log should start over."""
        with suppress(sqlite3.Error):
            pages = _checkpoint(connection)
            sync(self._path)
            return (pages or 0) > LOG_PAGES
        return False


def _checkpoint(connection: sqlite3.Connection) -> int | None:
    """Copy what can be copied without waiting; the length of the log in pages, None if another does it."""
    ((busy, pages, _),) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return None if busy else int(pages)


def sync(path: Path) -> None:
    """Sync a file that SQLite has open, by SQLite's own descriptor.

    One of our own would have to be closed some time, and with it go all of the process's locks on the file (fcntl).
    """
    with suppress(OSError):  # no /proc, or just closed: then the writer's checkpoint takes longer
        for name in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):
                if os.readlink(f"/proc/self/fd/{name}") == str(path):
                    os.fsync(int(name))
                    return
