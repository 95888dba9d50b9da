"""``bothost bench log``: rows per second of the decision log, compared with the raw database in the same run.

All three write the same full Dou Dizhu rows in the same batches:

- ``raw``: sqlite3 ``executemany`` into a bare table without any key or index, one transaction per batch;
- ``async``: ``DecisionLog.submit`` without waiting, until the queue is full; the end is awaited;
- ``before_send``: each batch is awaited before the next is submitted.

Rows are interleaved from 1,000 hands, as a host with 1,000 tables writes them.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bothost.config import StoreSettings
from bothost.store import DecisionLog, DecisionRecord, schema
from bothost.store.engine import set_up_sqlite
from bothost.store.models import COLUMNS
from bothost.testing.sample_rows import sample_decision, sample_game

HANDS = 1000
DECISIONS_PER_HAND = 15


def command(
    rows: Annotated[int, typer.Option(min=1, help="Rows of one measurement.")] = 60_000,
    batch: Annotated[int, typer.Option(min=1, help="Rows handed over at once.")] = 500,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of each kind; the median counts.")] = 3,
    folder: Annotated[
        Path | None, typer.Option(help="Where the databases are made; default: a temporary folder.")
    ] = None,
    postgresql: Annotated[str | None, typer.Option(help="URL of an empty PostgreSQL database to measure, too.")] = None,
) -> dict[str, Any]:
    """Measure; return the figures of each database."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        figures: dict[str, Any] = {"sqlite": measure(rows, batch, repeats, Path(made)), "postgresql": "absent"}
        if postgresql is not None:
            figures["postgresql"] = measure(rows, batch, repeats, Path(made), postgresql)
    records = list(sample_rows(min(rows, 1000)))
    mean = sum(len(r.view) + len(r.legal) + len(r.policy or b"") for r in records) / len(records)
    return {**figures, "rows": rows, "batch": batch, "blob_bytes_per_row": round(mean)}


def sample_rows(count: int) -> Iterator[DecisionRecord]:
    """Decisions of many live hands, interleaved."""
    rng = random.Random(1)
    live = [(sample_game(rng), 0) for _ in range(HANDS)]
    for _ in range(count):
        seat = rng.randrange(HANDS)
        game, step = live[seat]
        yield sample_decision(rng, game, 3 * step)
        live[seat] = (sample_game(rng), 0) if step + 1 == DECISIONS_PER_HAND else (game, step + 1)


def measure(count: int, batch: int, repeats: int, folder: Path, url: str | None = None) -> dict[str, float]:
    """Raw and logged in turns, so that a slow moment of the machine affects both. Without a URL: SQLite.

    PostgreSQL's raw figure is COPY in binary format into a bare table ``bench_raw``, which stays behind.
    """
    seconds: dict[str, list[float]] = {"raw": [], "async": [], "before_send": []}
    submits: list[float] = []
    for repeat in range(repeats):
        records = list(sample_rows(count))
        if url is None:
            seconds["raw"].append(_raw(records, batch, folder / f"raw{repeat}.db"))
        else:
            from bothost.store.postgres import raw_copy

            schema.upgrade(StoreSettings(url=url))
            rows = [msgspec.structs.astuple(record) for record in records]
            seconds["raw"].append(raw_copy(StoreSettings(url=url), rows, batch))
        for kind in ("async", "before_send"):
            settings = StoreSettings(url=url or f"sqlite:///{folder}/{kind}{repeat}.db")
            fresh = list(sample_rows(count))
            taken, submitting = _logged(settings, fresh, batch, folder / "spool", waiting=kind == "before_send")
            seconds[kind].append(taken)
            submits.append(submitting)
            _delete(folder / f"{kind}{repeat}.db")
    median = {kind: count / statistics.median(values) for kind, values in seconds.items()}
    return {
        "rows_per_s": round(median["async"]),
        "raw_rows_per_s": round(median["raw"]),
        "ratio": round(median["async"] / median["raw"], 3),
        "before_send_rows_per_s": round(median["before_send"]),
        "before_send_ratio": round(median["before_send"] / median["raw"], 3),
        "submit_us_per_row": round(statistics.median(submits) / count * 1e6, 3),
    }


def _raw(records: list[DecisionRecord], batch: int, path: Path) -> float:
    rows = [msgspec.structs.astuple(record) for record in records]
    columns = COLUMNS["decisions"]
    insert = f"INSERT INTO raw VALUES ({', '.join('?' * len(columns))})"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        set_up_sqlite(db)
        names = ", ".join(f'"{column}"' for column in columns)
        db.execute(f"CREATE TABLE raw ({names})")
        start = time.perf_counter()
        for at in range(0, len(rows), batch):
            db.execute("BEGIN")
            db.executemany(insert, rows[at : at + batch])
            db.execute("COMMIT")
        taken = time.perf_counter() - start
    _delete(path)
    return taken


def _logged(
    settings: StoreSettings, records: list[DecisionRecord], batch: int, spool: Path, *, waiting: bool
) -> tuple[float, float]:
    schema.upgrade(settings)

    async def run() -> tuple[float, float]:
        log = DecisionLog.open(settings, "bench", spool)
        before, submitting = log.stats.rows, 0.0
        start = time.perf_counter()
        for at in range(0, len(records), batch):
            if log.full:
                await log.room()
            part = records[at : at + batch]
            begin = time.perf_counter()
            durable = log.submit(part)
            submitting += time.perf_counter() - begin
            if waiting:
                await durable
        await durable
        taken = time.perf_counter() - start
        await log.aclose()
        if log.stats.rows - before != len(records) or log.stats.outages:
            raise RuntimeError(f"{log.stats} after {len(records)} rows")
        return taken, submitting

    return asyncio.run(run())


def _delete(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):  # also -wal and -shm
        file.unlink()
