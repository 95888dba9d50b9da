"""The write-ahead log is copied beside the writer, and starts over."""

import os
import random
import time
from pathlib import Path

import pytest

from bothost.config import StoreSettings
from bothost.store import checkpoint, schema
from bothost.store.decision_log import chunks_of
from bothost.store.sqlite import SqliteSink
from bothost.testing.sample_rows import sample_decision, sample_game

RNG = random.Random(11)


@pytest.fixture
def sink(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LOG_PAGES", 64)
    monkeypatch.setattr(checkpoint, "ROWS", 100)
    schema.upgrade(StoreSettings(url=f"sqlite:///{tmp_path / 'log.db'}"))
    sink = SqliteSink(tmp_path / "log.db")
    sink.connect()
    yield sink
    sink.close()


def decisions(count):
    game = sample_game(RNG)
    return chunks_of(sample_decision(RNG, game, seq) for seq in range(count))


def test_the_log_starts_over_while_rows_keep_coming(sink):
    starts = 0
    for _ in range(1000):
        before = log_pages(sink)
        sink.write(decisions(20), wait_ms=1000)
        starts += log_pages(sink) < before
        if starts == 3:
            return
        time.sleep(0.002)  # the thread's turn
    raise AssertionError("the log only grew")


def test_a_long_log_is_finished_by_the_next_write(sink):
    """The thread says that the log is long: what is left is copied before the transaction, and the log starts over."""
    while not sink._checkpointer._nearly_done:
        sink.write(decisions(20), wait_ms=1000)
        time.sleep(0.002)
    long = log_pages(sink)
    sink.write(decisions(1), wait_ms=1000)
    assert log_pages(sink) < long


def log_pages(sink):
    """Pages of the log that count, read from its index: frames since it last started over."""
    return int.from_bytes(Path(f"{sink._path}-shm").read_bytes()[16:20], "little")


def test_the_thread_finds_the_descriptor_of_the_database(sink, monkeypatch):
    """Without one of its own: closing that would drop SQLite's locks."""
    synced = []
    monkeypatch.setattr(checkpoint.os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    checkpoint._sync(sink._path.resolve())
    assert synced == ([str(sink._path.resolve())] if os.path.isdir("/proc/self/fd") else [])
    checkpoint._sync(sink._path.with_name("other"))
    assert len(synced) <= 1
