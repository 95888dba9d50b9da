"""SQLite's write-ahead log moved into the database beside the writer, so that no commit waits for the disk.

By default the commit that makes the log too long copies it into the database and syncs both, 15 to 30 ms in which no
decision becomes durable. Here a thread with a connection of its own does that while the writer goes on. Only when the
log has reached ``LOG_PAGES`` does a commit copy what little is left, after which the log starts over.
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
LOG_PAGES = 8192


class Checkpointer:
    """Checkpoints a database from a thread of its own, when nudged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = 0
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
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
