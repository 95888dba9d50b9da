"""``bothost bench export``: decisions per second from SQLite to Parquet on one core, and the memory that it takes.

It logs real hands of Dou Dizhu, played at random and copied under new ids. A separate process exports them; its CPU
time and its peak of memory are reported. ``--copies`` multiplies the hands by SQL, which is much faster than logging.
Two limits are measured on the same rows: Python's sqlite3 returning them as tuples, which no export with a Python
object for each row can beat, and the export's own reader alone.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import uuid_utils

from bothost import rules
from bothost.bench.host_subject import peak_rss_mb
from bothost.config import StoreSettings
from bothost.errors import BothostError, printable
from bothost.export.job import PAGE_HANDS, export
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.export.rows import read_decisions
from bothost.store import DecisionRecord, OutcomeRecord, Record, Store, schema
from bothost.store.models import COLUMNS
from bothost.store.query import CLOSED_HANDS, HandQuery
from bothost.store.reader import iter_keys
from bothost.testing.sample_rows import played_hand, write_rows

PLAYED = 1000
"""Number of different hands at most. Fewer would compress too well and make the files too small."""
TABLES = 1000
"""Tables at a time. They determine how far apart a hand's decisions are in the database."""
SAMPLED = 50_000
_EXPORTED = {
    "games": ("game_id",),
    "game_ends": ("game_id",),
    "decisions": ("id", "game_id"),
    "outcomes": ("decision_id",),
}
"""Tables that an export reads, with their columns of ids."""


def command(
    decisions: Annotated[int, typer.Option(min=1, help="Approximate number of logged decisions.")] = 200_000,
    copies: Annotated[int, typer.Option(min=1, max=250, help="Times that they are in the database.")] = 1,
    view_json: Annotated[bool, typer.Option(help="Decode views into JSON, too.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Where the files are made; default: a temporary folder.")] = None,
) -> dict[str, Any]:
    """Measure. Rates are per CPU second of one thread."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        url = f"sqlite:///{made}/bothost.db"
        schema.upgrade(StoreSettings(url=url))
        write_rows(StoreSettings(url=url), Path(made), _interleaved(decisions))
        _multiply(Path(made) / "bothost.db", copies)
        child = [sys.executable, "-m", __name__, url, f"{made}/out", str(int(view_json))]
        done = subprocess.run(child, capture_output=True, text=True)
        if done.returncode:
            last = done.stderr.strip().rpartition("\n")[2]
            raise BothostError(f"the process that exports failed (exit code {done.returncode}): {printable(last)}")
        figures: dict[str, Any] = json.loads(done.stdout)
        tuples = _tuples(Path(made) / "bothost.db")
        return {**figures, "sqlite3_tuples_per_s": tuples, "ratio": round(figures["decisions_per_s"] / tuples, 3)}


def _interleaved(decisions: int) -> Iterator[list[Record]]:
    """Hands at many tables at a time, decision by decision, as a host logs them."""
    hands = _hands(decisions)
    rng = random.Random(2)
    tables = [iter(hand) for hand in islice(hands, TABLES)]
    while tables:
        number = rng.randrange(len(tables))
        rows = list(_up_to_a_decision(tables[number]))
        if rows:
            yield rows
        elif (hand := next(hands, None)) is not None:
            tables[number] = iter(hand)
        else:
            tables[number] = tables[-1]
            tables.pop()


def _up_to_a_decision(rows: Iterator[Record]) -> Iterator[Record]:
    for row in rows:
        yield row
        if isinstance(row, DecisionRecord):
            return


def _hands(decisions: int) -> Iterator[list[Record]]:
    """Copies of played hands under new ids, until there are enough decisions."""
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


def _multiply(database: Path, copies: int) -> None:
    """Add copies of all exported rows. The first byte of their ids puts each copy 34.8 years after the one before."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for table in _EXPORTED:
            connection.execute(f"CREATE TEMPORARY TABLE original_{table} AS SELECT * FROM {table}")
        for copy in range(1, copies):
            connection.execute("BEGIN")
            for table, ids in _EXPORTED.items():
                later = {name: f"CAST(:first || substr({name}, 2) AS BLOB)" for name in ids}
                values = ", ".join(later.get(name, f'"{name}"') for name in COLUMNS[table])
                copied = f"INSERT INTO {table} SELECT {values} FROM original_{table}"
                connection.execute(copied, {"first": bytes([1 + copy])})
            connection.execute("COMMIT")


def _tuples(database: Path) -> int:
    """Rows of ``decisions`` per second that sqlite3 returns as tuples, a thousand at a time."""
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
        info = export(store, HandQuery(closed=True), out, ParquetExporter(), options)
        seconds = time.process_time() - begin
        peak_mb = peak_rss_mb()
        reading = _reading(store)
    return {
        "decisions": info["rows"],
        "hands": info["hands"],
        "decisions_per_s": round(info["rows"] / seconds),
        "bytes_per_decision": round(sum(file["bytes"] for file in info["files"]) / info["rows"]),
        "peak_rss_mb": round(peak_mb),
        "reader_alone_per_s": reading,
    }


def _reading(store: Store) -> int:
    """Decisions per second of the export's reader, on a sample of the hands."""
    games = sorted({game_id for game_id, _ in islice(iter_keys(store, CLOSED_HANDS), SAMPLED)})
    begin, rows = time.process_time(), 0
    for at in range(0, len(games), PAGE_HANDS):
        rows += read_decisions(store, games[at : at + PAGE_HANDS], raw=False).num_rows
    return round(rows / (time.process_time() - begin))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measured(sys.argv[1], Path(sys.argv[2]), view_json=sys.argv[3] == "1")))
