"""``bothost bench export``: decisions per second from SQLite to Parquet on one core, and the memory that it takes.

Hands of Dou Dizhu that were really played (at random), copied under new ids, are logged and exported by a process of
its own, whose processor time counts and whose peak of memory is told. In the same run, on the same rows: how fast
Python's sqlite3 hands them over as tuples, which no export that sees every row in Python can beat.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import uuid_utils

from bothost import rules
from bothost.config import StoreSettings
from bothost.export.job import export
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.store import DecisionLog, DecisionRecord, OutcomeRecord, Record, Store, schema
from bothost.store.models import COLUMNS
from bothost.store.query import HandQuery
from bothost.testing.sample_rows import played_hand

PLAYED = 1000
"""Different hands, at most: fewer would make the files smaller than they are."""


def command(
    decisions: Annotated[int, typer.Option(help="About so many are exported.")] = 200_000,
    view_json: Annotated[bool, typer.Option(help="Decode views into JSON, too.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Where the files are made; default: a temporary folder.")] = None,
) -> dict[str, Any]:
    """Measure; rates are per second of the processor time of one thread."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        url = f"sqlite:///{made}/bothost.db"
        asyncio.run(_fill(StoreSettings(url=url), decisions, Path(made)))
        child = [sys.executable, "-m", __name__, url, f"{made}/out", str(int(view_json))]
        figures: dict[str, Any] = json.loads(subprocess.run(child, check=True, capture_output=True).stdout)
        tuples = _tuples(Path(made) / "bothost.db")
        return {**figures, "sqlite3_tuples_per_s": tuples, "ratio": round(figures["decisions_per_s"] / tuples, 3)}


async def _fill(settings: StoreSettings, decisions: int, folder: Path) -> None:
    schema.upgrade(settings)
    log = DecisionLog.open(settings, "bench", folder / "spool")
    for rows in _hands(decisions):
        if log.full:
            await log.room()
        log.submit(rows)
    await log.aclose()


def _hands(decisions: int) -> Iterator[list[Record]]:
    """Copies of played hands under ids of their own, until there are so many decisions."""
    game = rules.game("doudizhu")
    played = [played_hand(game, seed, seat=seed % 3) for seed in range(min(PLAYED, 1 + decisions // 20))]
    rng = random.Random(1)
    while decisions > 0:
        game_id, ids = uuid_utils.uuid7().bytes, dict[bytes, bytes]()
        copies: list[Record] = []
        for row in rng.choice(played):
            if isinstance(row, OutcomeRecord):
                copies.append(msgspec.structs.replace(row, decision_id=ids[row.decision_id]))
            elif isinstance(row, DecisionRecord):
                ids[row.id] = uuid_utils.uuid7().bytes
                copies.append(msgspec.structs.replace(row, id=ids[row.id], game_id=game_id))
            else:
                copies.append(msgspec.structs.replace(row, game_id=game_id))
        decisions -= len(ids)
        yield copies


def _tuples(database: Path) -> int:
    """Rows of ``decisions`` per second that sqlite3 gives as tuples, a thousand at a time."""
    columns = ", ".join(f'"{name}"' for name in COLUMNS["decisions"] if name != "raw")
    with closing(sqlite3.connect(database)) as connection:
        begin, rows = time.process_time(), 0
        cursor = connection.execute(f"SELECT {columns} FROM decisions ORDER BY game_id, seat, seq")
        while some := cursor.fetchmany(1000):
            rows += len(some)
        return round(rows / (time.process_time() - begin))


def _measured(url: str, out: Path, *, view_json: bool) -> dict[str, Any]:
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    options = ExportOptions(view_json=view_json)
    with Store.open(StoreSettings(url=url)) as store:
        begin = time.process_time()
        info = export(store, HandQuery(closed=True), out, ParquetExporter(), options, make_game=rules.game)
        seconds = time.process_time() - begin
    return {
        "decisions": info["rows"],
        "hands": info["hands"],
        "decisions_per_s": round(info["rows"] / seconds),
        "bytes_per_decision": round(sum(file["bytes"] for file in info["files"]) / info["rows"]),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measured(sys.argv[1], Path(sys.argv[2]), view_json=sys.argv[3] == "1")))
