"""kill -9 at random moments, with a database that comes and goes: every acknowledged row is there, once."""

import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from bothost.store import DecisionLog
from bothost.store.engine import sqlite_path

KILLS = 5
ROWS = 50
"""Rows that are acknowledged in each life, at least."""


def test_every_acknowledged_row_survives_exactly_once(settings, tmp_path: Path):
    rng = random.Random(3)
    spool = tmp_path / "spool"
    acknowledged: list[bytes] = []
    for _ in range(KILLS):
        acknowledged += one_life(settings.url, spool, rng)
    log = DecisionLog.open(settings, "crash", spool)
    log.close()
    assert log.stats.spool_depth == 0
    with closing(sqlite3.connect(sqlite_path(settings.url))) as db:
        found = Counter(row[0] for row in db.execute("SELECT id FROM decisions"))
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert len(acknowledged) >= ROWS * KILLS
    assert not [key for key in acknowledged if found[key] != 1]
    assert max(found.values()) == 1


def one_life(url: str, spool: Path, rng: random.Random) -> list[bytes]:
    """Start a writer, lock its database now and then, kill it; return the ids that it saw acknowledged."""
    acknowledged = spool.parent / f"acknowledged-{rng.random()}"
    command = [sys.executable, str(Path(__file__).with_name("crash_writer.py")), url, str(spool), str(acknowledged)]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as writer,
        closing(sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=60)) as db,
    ):
        while writer.poll() is None and (not acknowledged.exists() or acknowledged.stat().st_size < 16 * ROWS):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.1))
        if rng.random() < 0.7:
            db.execute("BEGIN IMMEDIATE")
            time.sleep(rng.uniform(0, 0.6))
            if rng.random() < 0.5:
                db.execute("ROLLBACK")
                time.sleep(rng.uniform(0, 0.2))
        assert writer.poll() is None
        writer.kill()
    output = acknowledged.read_bytes()
    return [output[i : i + 16] for i in range(0, len(output) - 15, 16)]
