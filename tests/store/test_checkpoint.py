"""The write-ahead log is copied beside the writer, and starts over."""

import os
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from bothost.config import StoreSettings
from bothost.store import checkpoint, schema
from bothost.store.checkpoint import Checkpointer
from bothost.store.decision_log import chunks_of
from bothost.store.engine import set_up_sqlite
from bothost.store.sqlite import SqliteSink, insert
from bothost.testing.sample_rows import sample_decision, sample_game

RNG = random.Random(11)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LOG_PAGES", 64)
    monkeypatch.setattr(checkpoint, "ROWS", 100)
    monkeypatch.setattr(checkpoint, "NICENESS", 0)  # else its thread waits for other tests
    schema.upgrade(StoreSettings(url=f"sqlite:///{tmp_path / 'log.db'}"))
    return tmp_path / "log.db"


@pytest.fixture
def sink(path):
    sink = SqliteSink(path)
    sink.connect()
    yield sink
    sink.close()


def decisions(count):
    game = sample_game(RNG)
    return chunks_of(sample_decision(RNG, game, seq) for seq in range(count))


def test_the_log_starts_over_while_rows_keep_coming(sink, path):
    starts = 0
    for _ in range(1000):
        before = log_pages(path)
        sink.write(decisions(20), wait_ms=1000)
        starts += log_pages(path) < before
        if starts == 3:
            return
        time.sleep(0.002)  # the thread's turn
    raise AssertionError("the log only grew")


def test_a_long_log_is_finished_before_the_next_write(path):
    """The thread says that the log is long: what is left is copied before the transaction, and the log starts over."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        set_up_sqlite(connection)
        checkpointer = Checkpointer(path)
        while not checkpointer.nearly_done:
            checkpointer.written(insert(connection, decisions(20)))
            time.sleep(0.002)
        long = log_pages(path)
        checkpointer.before_write(connection)
        insert(connection, decisions(1))
        assert log_pages(path) < long
        checkpointer.close()


def log_pages(path):
    """Pages of the log that count, read from its index: frames since it last started over."""
    return int.from_bytes(Path(f"{path}-shm").read_bytes()[16:20], "little")


def test_the_thread_finds_the_descriptor_of_the_database(sink, path, monkeypatch):
    """Without one of its own: closing that would drop SQLite's locks."""
    synced = []
    monkeypatch.setattr(checkpoint.os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    checkpoint.sync(path.resolve())
    assert synced == ([str(path.resolve())] if os.path.isdir("/proc/self/fd") else [])
    checkpoint.sync(path.with_name("other"))
    assert len(synced) <= 1
