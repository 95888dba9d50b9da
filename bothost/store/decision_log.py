"""The decision log: the event loop submits records, and one thread writes them durably, many per commit.

``submit`` costs the event loop a lock and a list ``extend``, about half a microsecond. The writer thread converts,
groups and writes the rows. Submit many records at once and add one callback to the returned future: all submissions
since the writer last took records share it.

While the database is unavailable, rows go to the spool (:mod:`bothost.store.spool`), which counts as durable. Later
they are moved into the database in order (:mod:`bothost.store.writer`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.store.engine import parse_url
from bothost.store.models import COLUMNS, TABLE_OF
from bothost.store.records import Record
from bothost.store.sinks import Chunk, Sink
from bothost.store.spool import Spool
from bothost.store.writer import Writer, log_safely

QUEUE_ROWS = 20_000
PACE_S = 0.004
"""Minimum time between two commits of a busy host. A commit costs more page writes and GIL switches than its rows, so
rows wait to share one."""
BUSY_ROWS = 5
"""After a commit of fewer rows the next one starts at once, so that an idle host does not wait."""
RECOVER_S = 60.0
"""How long ``open`` waits for rows that an earlier process left in the spool to reach the database."""

_NAME_OF = {kind: str(table.name) for kind, table in TABLE_OF.items()}
_astuple = msgspec.structs.astuple


class LogStats(msgspec.Struct, frozen=True):
    """Counters since the log was opened, and the current queue lengths."""

    rows: int
    """New rows committed to the database."""
    commits: int
    queue_depth: int
    """Rows submitted but not yet durable."""
    spool_depth: int
    """Rows in the spool and not yet in the database."""
    duplicates: int
    """Rows that the database already had."""
    rejected: int
    """Rows that the database refuses (a bug): kept as text in ``rejected.log`` beside the spool."""
    outages: int


class Durable(asyncio.Future[None]):
    """A future that is done when the rows are durable. Several waiters share it, so it cannot be cancelled."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


class _Batch:
    """The records submitted since the writer last took some."""

    __slots__ = ("durable", "records", "room")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.durable: Durable | None = None
        self.room: asyncio.Event | None = None


class DecisionLog:
    """Writes records durably, in order of submission, for one event loop. Create it with :meth:`open`."""

    def __init__(self, sink: Sink, spool: Spool, *, queue_rows: int = QUEUE_ROWS) -> None:
        self._writer = Writer(sink, spool)
        self._queue_rows = queue_rows
        self._loop: asyncio.AbstractEventLoop | None = None
        self._mutex = threading.Lock()
        self._filling = _Batch()  # guarded by _mutex, as are the next three
        self._idle = False
        self._closing = False
        self._writing = 0
        self._given_up = 0
        self._wake = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name="decision-log", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        settings: StoreSettings,
        host: str,
        spool_dir: Path,
        *,
        others: Sequence[Path] = (),
        queue_rows: int = QUEUE_ROWS,
    ) -> Self:
        """Open the log of ``settings``; its spool is the folder ``spool_dir/host``.

        ``others``: other spool folders, whose rows of ended processes are written to the database, too.
        Raises SchemaOutdated and StoreUnavailable: a host needs the database to start, but later survives its loss.
        """
        sink = make_sink(settings)
        sink.connect()
        folder = spool_dir / _file_name(host)
        try:
            spool = Spool(folder, COLUMNS, others=others, sync=settings.synchronous == "full")
        except OSError as error:
            sink.close()
            raise StoreUnavailable(f"spool {folder}: {error}", advice="check host.data_dir") from error
        log = cls(sink, spool, queue_rows=queue_rows)
        log._writer.recovered.wait(RECOVER_S)
        return log

    def submit(self, records: Sequence[Record]) -> asyncio.Future[None]:
        """Queue records and return a future that is done when all of them are durable.

        Call it from one event loop only. It accepts records even when the queue is ``full``. Raises StoreError after
        ``close``.
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
    def recovered(self) -> bool:
        """Whether all rows that an earlier process left in the spool are in the database."""
        return self._writer.recovered.is_set()

    @property
    def displaced(self) -> str:
        """Why the open database is no longer the one at its address; empty if it is. Costs a look at its file."""
        return self._writer.displaced()

    @property
    def full(self) -> bool:
        """Whether the queue is full. If so, take no new work until ``room`` returns."""
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
        writer = self._writer
        return LogStats(
            rows=writer.rows,
            commits=writer.commits,
            queue_depth=len(self._filling.records) + self._writing,
            spool_depth=writer.waiting,
            duplicates=writer.duplicates,
            rejected=writer.rejected,
            outages=writer.outages,
        )

    async def aclose(self) -> None:
        """Write everything durably, then stop. Raises StoreUnavailable if rows were lost."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Like ``aclose``, for callers outside the event loop."""
        with self._mutex:
            self._closing = True
            self._idle = False
        self._wake.release()
        self._thread.join()
        self._writer.close()
        if self._given_up:
            message = f"{self._given_up} rows could be written neither to the database nor to the spool"
            raise StoreUnavailable(message, advice="check the disks of both, and host.data_dir")

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
            if (wait := resting_until - time.monotonic()) > 0.0:
                time.sleep(wait)
            batch = self._take()
            if batch is not None:
                if len(batch.records) >= BUSY_ROWS:
                    resting_until = time.monotonic() + PACE_S
                self._report(batch, self._try(batch))
            elif self._closing and not self._filling.records:
                return

    def _try(self, batch: _Batch) -> Exception | None:
        """Write the rows durably. A failure is logged and returned, because the thread must survive."""
        rows = len(batch.records)
        try:
            if not self._writer.write(chunks_of(batch.records), lambda: self._closing):
                self._given_up += rows
                raise StoreUnavailable("the log was closed before these rows could be written")
        except Exception as error:
            log_safely("error", "rows_lost", rows=rows, error=f"{type(error).__name__}: {error}")
            return error
        finally:
            self._writing = 0
        return None

    def _take(self) -> _Batch | None:
        """Return the filled batch. None: it waited for one, or the log is closing."""
        with self._mutex:
            batch = self._filling
            if batch.durable is not None:
                self._filling = _Batch()
                self._writing = len(batch.records)
                if batch.room is not None and self._loop is not None:
                    self._call(batch.room.set)
                return batch
            if self._closing:
                return None
            self._idle = True
        self._wake.acquire()
        return None

    def _report(self, batch: _Batch, failure: Exception | None) -> None:
        if batch.durable is not None:
            if failure is not None:
                self._call(_fail, batch.durable, failure)
            else:
                self._call(batch.durable.set_result, None)

    def _call(self, function: Any, *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for the result
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, *args)


def _fail(durable: Durable, failure: Exception) -> None:
    """Set the exception. It was logged, so asyncio need not complain if it is not awaited."""
    durable.set_exception(failure)
    durable.exception()


def make_sink(settings: StoreSettings) -> Sink:
    """Make the sink for a database URL. Imports only the driver that it needs."""
    url = parse_url(settings.url)
    if url.get_backend_name() == "sqlite":
        from bothost.store.sqlite import SqliteSink

        return SqliteSink(Path(url.database or ""), synchronous=settings.synchronous)
    from bothost.store.postgres import PostgresSink

    return PostgresSink(settings)


def chunks_of(records: Iterable[Record]) -> list[Chunk]:
    """Convert records to rows, grouped by table, in order of submission. Raises TypeError for other types."""
    groups: dict[type[Record], list[Record]] = defaultdict(list)
    for record in records:
        groups[type(record)].append(record)
    if unknown := groups.keys() - _NAME_OF.keys():
        raise TypeError(f"not records of the log: {', '.join(sorted(kind.__name__ for kind in unknown))}")
    return [
        (name, COLUMNS[name], list(map(_astuple, groups[kind]))) for kind, name in _NAME_OF.items() if kind in groups
    ]


def _file_name(host: str) -> str:
    """Escape a host's name to one safe path component."""
    return "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):02x}" for c in host) or "%"
