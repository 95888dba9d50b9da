"""The decision log: rows go in from the event loop, one thread makes them durable, many per commit.

What ``submit`` costs the event loop is a lock and a list ``extend``, about half a microsecond per call: rows are
converted, grouped and written by the writer thread. Cheapest for the caller is one ``submit`` with all records of a
frame, and one callback on the returned future for everything that waits for it: the future is shared by all that was
submitted since the writer last came for rows.

While the database is away the rows go to the spool (:mod:`bothost.store.spool`), which counts as durable, and back
from there in order once it is there again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import structlog

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.store.models import COLUMNS, TABLE_OF
from bothost.store.records import Record
from bothost.store.sinks import BadRow, Chunk, Sink, make_sink
from bothost.store.spool import Spool, SpoolDamaged, frames_of

QUEUE_ROWS = 20_000
PACE_S = 0.004
"""Least time between the beginnings of two commits of a busy host: rows wait for one another, and share the pages and
the turns of the GIL that a commit costs, more than its rows."""
BUSY_ROWS = 16
"""After a commit of fewer rows the next one begins at once."""
LOCK_WAIT_MS = 250
"""How long a commit waits for another process's write lock before its rows go to the spool."""
REPLAY_WAIT_MS = 20
"""The same while rows are replayed, for meanwhile new ones wait."""
RETRY_S = (0.05, 2.0)
"""First and longest pause between attempts to reach a database that is away."""
RECOVER_S = 60.0
"""How long ``open`` waits for rows that an earlier process left in the spool to reach the database."""
CLOSE_PATIENCE_S = 5.0
"""How long ``aclose`` tries where neither the database nor the spool takes rows."""

_NAME_OF = {kind: str(table.name) for kind, table in TABLE_OF.items()}
_log = structlog.get_logger("bothost.store")
_astuple = msgspec.structs.astuple


class LogStats(msgspec.Struct, frozen=True):
    """What the log did since it was opened, and what waits now."""

    rows: int
    """Rows committed to the database, new ones only."""
    commits: int
    queue_depth: int
    """Rows submitted and not yet durable."""
    spool_depth: int
    """Rows durable in the spool, not yet in the database."""
    duplicates: int
    """Rows that were already there."""
    rejected: int
    """Rows that no database takes (a bug): kept as text in ``rejected.log`` beside the spool."""
    outages: int


class Durable(asyncio.Future[None]):
    """Done when the rows are durable. Shared by several waiters, so that none of them can cancel it for the others."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


class _Batch:
    """What was submitted since the writer last took rows."""

    __slots__ = ("durable", "records", "room")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.durable: Durable | None = None
        self.room: asyncio.Event | None = None


class DecisionLog:
    """Writes records durably, in order of submission, for one event loop. Make it with :meth:`open`."""

    def __init__(self, sink: Sink, spool: Spool, *, queue_rows: int = QUEUE_ROWS) -> None:
        self._sink = sink
        self._spool = spool
        self._queue_rows = queue_rows
        self._loop: asyncio.AbstractEventLoop | None = None
        self._mutex = threading.Lock()
        self._filling = _Batch()  # guarded by _mutex, as are the next three
        self._idle = False
        self._closing = False
        self._writing = 0
        self._wake = threading.Semaphore(0)
        # Everything below belongs to the writer thread.
        self._away = spool.rows > 0  # what an earlier process left comes first
        self._retry_s = RETRY_S[0]
        self._retry_at = 0.0
        self._rows = self._commits = self._duplicates = self._rejected = self._outages = 0
        self._recovered = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decision-log", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, settings: StoreSettings, host: str, spool_dir: Path, *, queue_rows: int = QUEUE_ROWS) -> Self:
        """Open the log of ``settings``; its spool is the folder ``spool_dir/host``.

        Raises SchemaOutdated and StoreUnavailable: a host does not start without its database, it survives its loss.
        """
        sink = make_sink(settings)
        sink.connect()
        folder = spool_dir / _file_name(host)
        try:
            spool = Spool(folder, COLUMNS, sync=settings.synchronous == "full")
        except OSError as error:
            sink.close()
            raise StoreUnavailable(f"spool {folder}: {error}", advice="Check host.data_dir.") from error
        log = cls(sink, spool, queue_rows=queue_rows)
        # A restarted host asks the database for its live hands: what was spooled must be there.
        log._recovered.wait(RECOVER_S)
        return log

    def submit(self, records: Sequence[Record]) -> asyncio.Future[None]:
        """Queue records and return a future that is done when all of them are durable.

        Must be called from one event loop. Takes rows even when the queue is full: see ``full``.
        """
        mutex = self._mutex
        with mutex:
            batch = self._filling
            durable = batch.durable
            if durable is None:
                durable = self._begin(batch)
            batch.records.extend(records)
            wake, self._idle = self._idle, False
        if wake:
            self._wake.release()
        return durable

    @property
    def full(self) -> bool:
        """Whether the queue holds as much as it should: stop taking work until there is ``room``."""
        return len(self._filling.records) >= self._queue_rows

    async def room(self) -> None:
        """Wait until the queue is not full."""
        while self.full:
            with self._mutex:
                batch = self._filling
                if batch.room is None:
                    batch.room = asyncio.Event()
                event = batch.room
            await event.wait()

    @property
    def stats(self) -> LogStats:
        return LogStats(
            rows=self._rows,
            commits=self._commits,
            queue_depth=len(self._filling.records) + self._writing,
            spool_depth=self._spool.rows,
            duplicates=self._duplicates,
            rejected=self._rejected,
            outages=self._outages,
        )

    async def aclose(self) -> None:
        """Make everything durable, then stop. Raises StoreUnavailable when rows had to be given up."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """As ``aclose``, from outside the event loop."""
        with self._mutex:
            self._closing = True
            self._idle = False
        self._wake.release()
        self._thread.join()
        self._sink.close()
        self._spool.close()
        if self._writing:
            raise StoreUnavailable(f"{self._writing} rows could be written neither to the database nor to the spool")

    def _begin(self, batch: _Batch) -> Durable:
        if self._closing:
            raise StoreError("the decision log is closed")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        batch.durable = Durable(loop=self._loop)
        return batch.durable

    # ------------------------------------------------------------------------------------------- the writer thread

    def _run(self) -> None:
        resting_until = -math.inf
        while True:
            if not self._away:
                self._recovered.set()
            if (wait := resting_until - time.monotonic()) > 0.0:
                time.sleep(wait)
            batch = self._take()
            if batch is not None:
                if len(batch.records) >= BUSY_ROWS:
                    resting_until = time.monotonic() + PACE_S
                failure = self._try(self._make_durable, batch)
                self._tell(batch, failure)
            if self._away and time.monotonic() >= self._retry_at:
                self._try(self._replay_segment)
            if batch is None and self._closing and not self._filling.records:
                self._retry_at = 0.0  # a last attempt
                while self._away and self._retry_at <= 0.0:
                    self._try(self._replay_segment)
                return

    def _try(self, step: Callable[..., None], *args: Any) -> Exception | None:
        """Do a step; a failure that nobody foresaw is logged and returned, for the thread must live."""
        try:
            step(*args)
        except Exception as error:
            _say("error", "log_step_failed", step=step.__name__, error=f"{type(error).__name__}: {error}")
            self._pause()
            return error
        return None

    def _take(self) -> _Batch | None:
        """The filled batch; waits for one, but while the spool waits for its database no longer than to its retry."""
        with self._mutex:
            batch = self._filling
            if batch.records:
                self._filling = _Batch()
                self._writing = len(batch.records)
                if batch.room is not None and self._loop is not None:
                    self._call(batch.room.set)
                return batch
            if self._closing:
                return None
            self._idle = True
        timeout = max(0.0, self._retry_at - time.monotonic()) if self._away else None
        if not self._wake.acquire(timeout=timeout):
            with self._mutex:
                self._idle = False
            self._wake.acquire(blocking=False)  # whoever submitted in between has released it
        return None

    def _make_durable(self, batch: _Batch) -> None:
        """Write to the database, or while that is away to the spool; while both fail, wait."""
        chunks = chunks_of(batch.records)
        give_up = time.monotonic() + CLOSE_PATIENCE_S
        while True:
            if not self._away:
                try:
                    return self._commit(chunks, LOCK_WAIT_MS)
                except Exception as error:  # whatever it is, the rows must not go down with it
                    self._lost(error)
            try:
                return self._keep(chunks)
            except OSError as error:
                _say("error", "spool_failed", error=str(error), rows=len(batch.records))
            if self._closing and time.monotonic() > give_up:
                return None
            time.sleep(RETRY_S[0])
            give_up = give_up if self._closing else time.monotonic() + CLOSE_PATIENCE_S
            self._away = self._spool.rows > 0

    def _commit(self, chunks: list[Chunk], wait_ms: int) -> None:
        try:
            new = self._sink.write(chunks, wait_ms=wait_ms)
        except BadRow as error:
            self._commit_apart(chunks, wait_ms, error)
            return
        total = sum(len(rows) for _, _, rows in chunks)
        self._rows += new
        self._duplicates += total - new
        self._commits += 1
        self._writing = 0

    def _commit_apart(self, chunks: list[Chunk], wait_ms: int, error: BadRow) -> None:
        """One row of these is bad: write halves until it stands alone, and keep it as text."""
        rows = [(table, columns, row) for table, columns, many in chunks for row in many]
        if len(rows) == 1:
            self._reject(rows[0][0], rows[0][2], error)
            self._writing = 0
            return
        half = len(rows) // 2
        for part in (rows[:half], rows[half:]):
            self._commit([(table, columns, [row]) for table, columns, row in part], wait_ms)

    def _keep(self, chunks: list[Chunk]) -> None:
        groups = {table: rows for table, _, rows in chunks}
        try:
            self._spool.append(groups)
        except (TypeError, ValueError, OverflowError) as error:
            # Not even msgpack takes it: keep what it takes, row by row.
            for table, rows in groups.items():
                for row in rows:
                    try:
                        self._spool.append({table: [row]})
                    except (TypeError, ValueError, OverflowError):
                        self._reject(table, row, error)
        self._writing = 0

    def _reject(self, table: str, row: Sequence[Any], error: Exception) -> None:
        _say("error", "row_rejected", table=table, error=str(error))
        self._spool.keep_rejected([f"{table} {error}: {row!r}"])
        self._rejected += 1

    def _replay_segment(self) -> None:
        """Move the oldest segment of the spool into the database; with none left, the database is back."""
        path = self._spool.oldest()
        if path is None:
            self._away = False
            self._retry_s = RETRY_S[0]
            _say("info", "database_back", rows=self._rows)
            return
        chunks: list[Chunk] = []
        damage: SpoolDamaged | None = None
        try:
            chunks.extend(frames_of(path))
        except SpoolDamaged as error:
            damage = error
        total = sum(len(rows) for _, _, rows in chunks)
        writing = self._writing
        try:
            self._commit(chunks, REPLAY_WAIT_MS)
        except StoreError:
            self._pause()
            return
        finally:
            self._writing = writing
        if damage is None:
            self._spool.drop(path, total)
        else:
            _say("error", "spool_damaged", error=str(damage), kept=str(path.with_suffix(".damaged")))
            self._spool.set_aside(path, total)

    def _lost(self, error: Exception) -> None:
        self._away = True
        self._outages += 1
        _say("error", "database_away", error=str(error), advice=getattr(error, "advice", ""))
        self._pause()

    def _pause(self) -> None:
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, RETRY_S[1])

    def _tell(self, batch: _Batch, failure: Exception | None) -> None:
        durable = batch.durable
        if durable is None:
            return
        if failure is not None:
            self._writing = 0
            self._call(durable.set_exception, failure)
        elif self._writing:
            error = StoreUnavailable("the log was closed before these rows could be written")
            self._call(durable.set_exception, error)
        else:
            self._call(durable.set_result, None)

    def _call(self, function: Any, *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, *args)


class _Rows(Sequence[Any]):
    """Records of one table as rows. They are converted when they are taken: the database works on those before then."""

    __slots__ = ("_records",)

    def __init__(self, records: list[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(map(_astuple, self._records[index]))
        return _astuple(self._records[index])


def chunks_of(records: Iterable[Record]) -> list[Chunk]:
    """Records as rows, grouped by table, each table's in order of submission. Raises TypeError for anything else."""
    groups: dict[type[Record], list[Record]] = {}
    for record in records:
        kind = type(record)
        group = groups.get(kind)
        if group is None:
            group = groups[kind] = []
        group.append(record)
    if not groups.keys() <= _NAME_OF.keys():
        raise TypeError(
            f"no records of the log: {', '.join(sorted(k.__name__ for k in groups.keys() - _NAME_OF.keys()))}"
        )
    return [(name, COLUMNS[name], _Rows(groups[kind])) for kind, name in _NAME_OF.items() if kind in groups]


def _say(level: str, event: str, **fields: Any) -> None:
    """Log; but a log that fails (a closed pipe, a full disk) must not stop the writer."""
    with contextlib.suppress(Exception):
        getattr(_log, level)(event, **fields)


def _file_name(host: str) -> str:
    """A host's name as one harmless path component."""
    return "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):02x}" for c in host) or "%"
