"""SQLite's write-ahead log moved into the database beside the writer, so that commits hardly wait for the disk.

By default the commit that makes the log too long copies it into the database and syncs both, 15 to 30 ms in which no
decision becomes durable. Here a thread with a connection of its own does that while the writer goes on. The log can
start over only when all of it was copied, and meanwhile the writer has added to it: so once it is longer than
``LOG_PAGES``, the writer copies what came since the thread's last turn, a few hundred pages, before it goes on.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from bothost.store.engine import set_up_sqlite

ROWS = 4096
"""Rows between two checkpoints: about as many KiB."""
LOG_PAGES = 16_384
"""Length at which the log should start over, 64 MiB."""
LOG_PAGES_AT_MOST = 4 * LOG_PAGES
"""Length at which a commit does it all, should the thread have failed."""


class Checkpointer:
    """Checkpoints a database from a thread of its own, when nudged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = 0
        self._nearly_done = False
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
        """The writer, on its own connection, is about to begin a transaction: let the log start over where it can."""
        if self._nearly_done:
            with suppress(sqlite3.Error):
                self._nearly_done = _checkpoint(connection) is None

    def close(self) -> None:
        self._closing = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        # A failure costs nothing: the rows are in the log, and the writer checkpoints by itself in the end.
        uri = f"file:{quote(str(self._path.resolve()))}?mode=rw"
        with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            set_up_sqlite(connection, busy_ms=0)
            while self._wanted.wait() and not self._closing:
                self._wanted.clear()
                with suppress(sqlite3.Error):
                    self._nearly_done = (_checkpoint(connection) or 0) > LOG_PAGES


def _checkpoint(connection: sqlite3.Connection) -> int | None:
    """Copy what can be copied without waiting for anybody; the length of the log in pages, None if another does it."""
    ((busy, pages, _),) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return None if busy else int(pages)
