"""A log of ten million decisions: starting, playing and looking hands up stay fast."""

import asyncio
import json
import os
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from bothost import cli
from bothost.config import StoreSettings
from bothost.store import DecisionLog, Store, erase, schema
from bothost.store.decision_log import chunks_of
from bothost.testing.sample_rows import sample_decision, sample_game, sample_hand

DECISIONS = int(os.environ.get("BOTHOST_TEST_ROWS", "10_000_000"))
PER_HAND = 20
ACCOUNTS = 50
DAY_US = 86_400_000_000

MOST_S = {
    "open": 1.0,  # the log of a starting host
    "resume": 0.2,  # its open hands, by name
    "commit p50": 0.02,
    "games list": 3.0,
    "games show": 3.0,
}
"""Bounds for the figures that an operator or a table waits for, seconds."""


def key(ms: int, number: int) -> bytes:
    return ms.to_bytes(6, "big") + (0x7000 << 64 | number).to_bytes(10, "big")


def fill(path: Path, decisions: int) -> None:
    """Closed hands, one a second, the newest of them two days old."""
    rng = random.Random(1)
    hands = decisions // PER_HAND
    begin_us = time.time_ns() // 1000 - 2 * DAY_US - hands * 1_000_000
    sample = sample_hand(rng, decisions=1, started_us=begin_us)
    rows = {table: (columns, list(values[0])) for table, columns, values in chunks_of(sample)}

    def made(table: str, per_hand: int):
        columns, row = rows[table]
        at = {name: columns.index(name) for name in columns}
        for hand in range(hands):
            game_us = begin_us + hand * 1_000_000
            game = key(game_us // 1000, hand)
            for n in range(per_hand):
                decision = key(game_us // 1000, hand * PER_HAND + n)
                new = {"game_id": game, "id": decision, "decision_id": decision, "seq": 1 + 3 * n, "table": f"t{hand}"}
                new |= {"request_id": f"t{hand}-{n}", "account": f"bot-{hand % ACCOUNTS}", "started_us": game_us}
                for name, value in new.items():
                    if name in at:
                        row[at[name]] = value
                yield tuple(row)

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        for table, per_hand in (("games", 1), ("game_ends", 1), ("decisions", PER_HAND), ("outcomes", PER_HAND)):
            columns = ", ".join(f'"{name}"' for name in rows[table][0])
            marks = ", ".join("?" * len(rows[table][0]))
            db.execute("BEGIN")
            db.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", made(table, per_hand))
            db.execute("COMMIT")


@pytest.mark.long
def test_a_log_of_ten_million_decisions_stays_usable(tmp_path, capsys):
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/log.db")
    schema.upgrade(settings)
    fill(tmp_path / "log.db", DECISIONS)
    config = tmp_path / "config.toml"
    config.write_text('[store]\nurl = "sqlite:///log.db"\n[host]\ndata_dir = "var"\n')
    figures = {"decisions": DECISIONS, "bytes": (tmp_path / "log.db").stat().st_size}

    def measured(name, call):
        began = time.perf_counter()
        value = call()
        figures[name] = round(time.perf_counter() - began, 4)
        return value

    def run(*words):
        return lambda: cli.main([*words, "--config", str(config)])

    log = measured("open", lambda: DecisionLog.open(settings, "test", tmp_path / "spool"))
    figures |= asyncio.run(commits(log))
    with Store.open(settings) as store:
        hands = {(f"t{n}", "1") for n in range(20)}
        measured("resume", lambda: store.open_hands("home", "bot-1", hands))
        measured("lost hands", lambda: store.unfinished_hands("home", "bot-1", time.time_ns() // 1000))
    assert measured("games list", run("games", "list", "-n", "20", "--json")) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 20
    assert measured("games show", run("games", "show", listed[0]["id"], "--json")) == 0
    assert measured("db status", run("db", "status")) == 0
    measured("rewrite", lambda: erase.rewrite_database(settings))
    (tmp_path / "log.db").unlink()
    if folder := os.environ.get("BOTHOST_TEST_OUT"):
        Path(folder).write_text(json.dumps(figures) + "\n")
    assert {name: figures[name] for name, most in MOST_S.items() if figures[name] > most} == {}


async def commits(log):
    """Seconds until one decision is saved, of 500."""
    rng = random.Random(2)
    took = []
    for _ in range(500):
        game = sample_game(rng)
        began = time.perf_counter()
        await log.submit([game, sample_decision(rng, game, 1)])
        took.append(time.perf_counter() - began)
    await log.aclose()
    took.sort()
    return {"commit p50": round(took[250], 5), "commit p99": round(took[494], 5)}
