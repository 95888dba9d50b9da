"""Bulk inserts into SQLite: every value comes back, a bad row keeps out its transaction, few turns of the GIL."""

import random
import sqlite3
import sys
import threading
import time
from contextlib import closing

import pytest

from bothost.store.sqlite import insert

COLUMNS = ("id", "whole", "part", "text", "data")


@pytest.fixture
def path(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "CREATE TABLE t (id INTEGER NOT NULL UNIQUE, whole INTEGER, part REAL, text TEXT, data BLOB,"
            " CHECK (whole IS NULL OR whole <> 13))"
        )
        connection.execute("CREATE TABLE u (id INTEGER)")
    return tmp_path / "x.db"


@pytest.fixture
def connection(path):
    made = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    yield made
    made.close()


def rows_of(path, table="t"):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()


def chunk(*rows):
    return "t", COLUMNS, rows


def some_row(rng, number):
    text = "".join(chr(rng.choice((0, 10, 65, 233, 0x4E2D, 0x1F0A1))) for _ in range(rng.randrange(40)))
    options = (rng.choice((0, -1, 2**63 - 1, -(2**63), True)), rng.choice((0.0, -1.5, 1e300)), text, rng.randbytes(9))
    return (number, *(None if rng.random() < 0.2 else value for value in options))


def test_every_value_comes_back(connection, path):
    rng = random.Random(3)
    rows = [some_row(rng, number) for number in range(200)] + [(200, None, None, "", b"")]
    halves = ("t", COLUMNS, rows[:70]), ("u", ("id",), [[5], [6]]), ("t", COLUMNS, [list(row) for row in rows[70:]])
    assert insert(connection, halves) == len(rows) + 2
    assert rows_of(path) == rows
    assert rows_of(path, "u") == [(5,), (6,)]


def test_rows_that_are_there_are_left_alone(connection, path):
    insert(connection, [chunk((1, 10, None, "first", None))])
    assert insert(connection, [chunk((1, 11, None, "second", None), (2, None, None, None, None))]) == 1
    assert insert(connection, []) == 0
    assert [row[3] for row in rows_of(path)] == ["first", None]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ((2, 13, None, None, None), sqlite3.IntegrityError),
        ((None, 1, None, None, None), sqlite3.IntegrityError),
        ((2, 2**63, None, None, None), OverflowError),
        ((2, 1, None, "\ud800", None), UnicodeError),
        ((2, 1, None, {}, None), (TypeError, sqlite3.Error)),
        ((2, 1, None, None), (ValueError, sqlite3.Error)),
    ],
)
def test_one_bad_row_keeps_all_of_its_transaction_out(connection, path, row, error):
    with pytest.raises(error):
        insert(connection, [chunk((1, 1, None, None, None), row)])
    assert rows_of(path) == []
    assert insert(connection, [chunk((1, 1, None, None, None))]) == 1


def test_rows_of_another_width_than_the_columns_are_refused(connection, path):
    with pytest.raises((sqlite3.Error, ValueError)):
        insert(connection, [chunk((1, 1, None, None))])
    with pytest.raises((sqlite3.Error, ValueError)):
        insert(connection, [chunk((1, 1, None, None, None, 7))])
    assert rows_of(path) == []


def test_a_locked_database_is_busy(connection, path):
    connection.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as caught:
            insert(connection, [chunk((1, 1, None, None, None))])
        assert caught.value.sqlite_errorname == "SQLITE_BUSY"
        other.execute("ROLLBACK")
    assert insert(connection, [chunk((1, 1, None, None, None))]) == 1


def test_a_table_that_is_missing_is_an_outage(connection):
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        insert(connection, [("missing", ("id",), [(1,)])])
    with pytest.raises(sqlite3.OperationalError, match="syntax"):
        connection.execute("PRAGMA (")


def test_a_transaction_takes_few_turns_of_the_gil(connection, path):
    """Beside a thread that computes, each turn costs a switch interval."""
    rows = [(number, None, None, None, None) for number in range(1000)]
    done, before = threading.Event(), sys.getswitchinterval()

    def compute():
        while not done.is_set():
            pass

    thread = threading.Thread(target=compute)
    sys.setswitchinterval(0.02)
    thread.start()
    try:
        began = time.monotonic()
        insert(connection, [("t", COLUMNS, rows)])
        took = time.monotonic() - began
    finally:
        done.set()
        sys.setswitchinterval(before)
        thread.join()
    assert took < 0.02 * len(rows) / 4  # a turn for every row: 20 s
    assert len(rows_of(path)) == 1000
