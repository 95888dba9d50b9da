"""Write rows durably: to the database, or to the spool while the database is unavailable.

The caller's thread writes to the database until a write fails. Then a second thread owns the database: it reconnects
and replays the spool, while the caller's rows go to the spool. When the spool is empty, the caller's thread owns the
database again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from bothost.errors import StoreError
from bothost.store.sinks import BadRow, Chunk, Sink
from bothost.store.spool import Spool, SpoolDamaged

LOCK_WAIT_MS = 250
"""How long a commit waits for another process's write lock before its rows go to the spool."""
ANSWER_S = 2.0
"""How long a commit waits for a server's answer before its rows go to the spool."""
REPLAY_ANSWER_S = 20.0
"""How long a replay waits for a server's answer. No move waits for a replay."""
RETRY_S = (0.05, 2.0)
"""First and longest pause between attempts to reach the database or write the spool."""
REMIND_S = 60.0
"""How often the log repeats that rows can be written nowhere."""
CLOSE_PATIENCE_S = 5.0
"""How long a closing log retries to write rows that neither the database nor the spool accepts."""
SPOOL_ADVICE = "Free space for the database or for host.data_dir. No move is sent until its row is saved."

_log = structlog.get_logger("bothost.store")


class Writer:
    """Owns the sink and the spool. ``write`` is for one thread."""

    def __init__(self, sink: Sink, spool: Spool) -> None:
        self._sink = sink
        self._spool = spool
        self._mutex = threading.RLock()  # guards the spool, and changes of ``_away`` to False
        self._away = spool.rows > 0  # rows of an earlier process must come first
        self._reason = ""  # why the database is away, as it was logged; empty after a commit
        self._replay = threading.Event()
        """Set while the second thread has work: the database is away, or the writer closes."""
        self._ending = threading.Event()
        self.recovered = threading.Event()
        """Whether all rows that an earlier process left in the spool are in the database."""
        self._retry_s = RETRY_S[0]
        self._retry_at = 0.0
        self.rows = self.commits = self.duplicates = self.rejected = self.outages = 0
        self._thread = threading.Thread(target=self._run, name="decision-replay", daemon=True)
        if self._away:
            self._replay.set()
        else:
            self.recovered.set()
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows in the spool."""
        return self._spool.rows

    def displaced(self) -> str:
        """See ``Sink``."""
        return self._sink.displaced()

    def write(self, chunks: list[Chunk], closing: Callable[[], bool]) -> bool:
        """Write the rows durably; retry while neither the database nor the spool accepts them.

        Returns False if it gave up, ``CLOSE_PATIENCE_S`` after ``closing`` became true.
        """
        pause_s = RETRY_S[0]
        closes_at: float | None = None
        remind_at = 0.0
        while True:
            try:
                if self._written(chunks):
                    return True
            except OSError as error:
                if time.monotonic() >= remind_at:
                    remind_at = time.monotonic() + REMIND_S
                    rows = sum(len(rows) for _, _, rows in chunks)
                    log_safely("error", "spool_failed", error=str(error), rows=rows, advice=SPOOL_ADVICE)
            if closing():
                closes_at = closes_at or time.monotonic() + CLOSE_PATIENCE_S
                if time.monotonic() > closes_at:
                    return False
                pause_s = RETRY_S[0]
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S[1] / 2)

    def close(self) -> None:
        """Try once more to empty the spool, then close everything."""
        self._ending.set()
        self._replay.set()
        self._thread.join()
        self._sink.close()
        self._spool.close()

    # ------------------------------------------------------------------------------------------ the caller's thread

    def _written(self, chunks: list[Chunk]) -> bool:
        """Write to the database or the spool. False: the database is back, try again. Raises OSError."""
        if not self._away:
            try:
                self._commit(chunks, ANSWER_S)
                self._retry_s = RETRY_S[0]
                return True
            except Exception as error:  # after any error the rows must go to the spool
                self._lost(error)
        with self._mutex:
            if self._away:
                self._keep(chunks)
                return True
        return False

    def _lost(self, error: Exception) -> None:
        self._away = True
        self._report(error)
        self._pause()
        self._replay.set()

    def _keep(self, chunks: list[Chunk]) -> None:
        groups = {table: rows for table, _, rows in chunks}
        try:
            self._spool.append(groups)
        except (TypeError, ValueError, OverflowError) as error:
            # msgpack cannot encode some row: append the others one by one.
            for table, rows in groups.items():
                for row in rows:
                    try:
                        self._spool.append({table: [row]})
                    except (TypeError, ValueError, OverflowError):
                        self._reject(table, row, error)

    # ------------------------------------------------------------------------------ the thread that owns the database

    def _commit(self, chunks: list[Chunk], answer_s: float) -> None:
        try:
            new = self._sink.write(chunks, wait_ms=LOCK_WAIT_MS, answer_s=answer_s)
        except BadRow as error:
            self._commit_apart(chunks, answer_s, error)
            return
        total = sum(len(rows) for _, _, rows in chunks)
        self.rows += new
        self.duplicates += total - new
        self.commits += 1
        if self._reason:
            self._reason = ""
            log_safely("info", "database_back", rows=self.rows)

    def _report(self, error: Exception) -> None:
        """Log why the database is away, once for each reason: a server that is back may have another schema."""
        if (reason := str(error)) != self._reason:
            self.outages += not self._reason
            self._reason = reason
            log_safely("error", "database_away", error=reason, advice=getattr(error, "advice", ""))

    def _commit_apart(self, chunks: list[Chunk], answer_s: float, error: BadRow) -> None:
        """Bisect the rows to find the bad one, and keep it as text."""
        rows = [(table, columns, row) for table, columns, many in chunks for row in many]
        if len(rows) == 1:
            self._reject(rows[0][0], rows[0][2], error)
            return
        half = len(rows) // 2
        for part in (rows[:half], rows[half:]):
            self._commit([(table, columns, [row]) for table, columns, row in part], answer_s)

    def _reject(self, table: str, row: Sequence[Any], error: Exception) -> None:
        log_safely("error", "row_rejected", table=table, error=str(error))
        with self._mutex:
            self._spool.keep_rejected([f"{table} {error}: {row!r}"])
            self.rejected += 1

    # ------------------------------------------------------------------------------------------- the second thread

    def _run(self) -> None:
        while True:
            self._replay.wait()
            if self._ending.is_set():
                break
            if (wait := self._retry_at - time.monotonic()) > 0.0:
                self._ending.wait(wait)
            else:
                self._try()
        while self._away and self._try():
            continue

    def _try(self) -> bool:
        """Replay a segment; False if it failed. Unexpected errors are logged, because the thread must survive."""
        try:
            return self._replay_segment()
        except Exception as error:
            log_safely("error", "replay_failed", error=f"{type(error).__name__}: {error}")
            self._pause()
            return False

    def _replay_segment(self) -> bool:
        """Move the oldest segment of the spool into the database. If none is left, leave the outage state."""
        with self._mutex:
            path = self._spool.oldest()
            if path is None:
                self._replay.clear()
                if self._ending.is_set():
                    self._replay.set()
                self._away = False
                self.recovered.set()
        if path is None:
            return True
        chunks: list[Chunk] = []
        damage: SpoolDamaged | None = None
        try:
            chunks.extend(self._spool.frames(path))
        except SpoolDamaged as error:
            damage = error
        total = sum(len(rows) for _, _, rows in chunks)
        try:
            self._commit(chunks, CLOSE_PATIENCE_S if self._ending.is_set() else REPLAY_ANSWER_S)
        except StoreError as error:
            self._report(error)
            self._pause()
            return False
        with self._mutex:
            if damage is None:
                self._spool.drop(path, total)
            else:
                log_safely("error", "spool_damaged", error=str(damage), kept=str(path.with_suffix(".damaged")))
                self._spool.set_aside(path, total)
        return True

    def _pause(self) -> None:
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, RETRY_S[1])


def log_safely(level: str, event: str, **fields: Any) -> None:
    """Log, ignoring errors: a closed pipe or full disk must not stop the writer."""
    with contextlib.suppress(Exception):
        getattr(_log, level)(event, **fields)
