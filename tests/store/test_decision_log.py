"""The decision log: what it acknowledges is there once, through every outage of its database."""

import asyncio
import gc
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
import structlog.testing

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.store import DecisionLog, DecisionRecord, OutcomeRecord, decision_log, schema
from bothost.store.engine import set_up_sqlite, sqlite_path
from bothost.store.models import COLUMNS
from bothost.store.spool import Spool
from bothost.testing.sample_rows import sample_decision, sample_game, sample_hand

RNG = random.Random(7)


def rows_of(settings: StoreSettings, table: str = "decisions") -> list[tuple]:
    columns = ", ".join(f'"{c}"' for c in COLUMNS[table])
    with closing(sqlite3.connect(sqlite_path(settings.url))) as db:
        return db.execute(f"SELECT {columns} FROM {table}").fetchall()


def ids_of(settings: StoreSettings) -> list[bytes]:
    return [row[0] for row in rows_of(settings)]


def some_decisions(count: int) -> list[DecisionRecord]:
    game = sample_game(RNG)
    return [sample_decision(RNG, game, seq) for seq in range(count)]


@contextmanager
def locked(settings: StoreSettings) -> Iterator[None]:
    """Another process holds the write lock."""
    with closing(sqlite3.connect(sqlite_path(settings.url), isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield
        db.execute("ROLLBACK")


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the writer thread has no event for it
            await asyncio.sleep(0.01)


@pytest.fixture
async def log(settings: StoreSettings, tmp_path: Path):
    made = DecisionLog.open(settings, "host/1", tmp_path / "spool")
    yield made
    await made.aclose()


async def test_every_field_of_every_record_is_read_back(settings, log):
    records = sample_hand(RNG, decisions=30)
    await log.submit(records)
    assert [DecisionRecord(**dict(zip(COLUMNS["decisions"], row, strict=True))) for row in rows_of(settings)] == [
        r for r in records if isinstance(r, DecisionRecord)
    ]
    assert [OutcomeRecord(*row) for row in rows_of(settings, "outcomes")] == [
        r for r in records if isinstance(r, OutcomeRecord)
    ]
    assert len(rows_of(settings, "games")) == len(rows_of(settings, "game_ends")) == 1
    assert len(rows_of(settings, "events")) == 30
    assert log.stats.rows == len(records)


async def test_durable_means_committed(settings, log):
    for records in ([r] for r in some_decisions(20)):
        await log.submit(records)
        assert records[0].id in ids_of(settings)


async def test_no_rows_are_durable_at_once(log):
    await asyncio.wait_for(asyncio.shield(log.submit([])), 60)


async def test_what_queues_meanwhile_shares_a_commit(settings, log):
    records = some_decisions(500)
    futures = [log.submit([r]) for r in records]
    await asyncio.gather(*(asyncio.shield(f) for f in futures))
    assert ids_of(settings) == [r.id for r in records]
    assert log.stats.commits < 20


async def test_a_cancelled_waiter_cancels_nobody_else(settings, log):
    futures = [log.submit([r]) for r in some_decisions(2)]
    waiters = [asyncio.ensure_future(wait(f)) for f in futures]
    await asyncio.sleep(0)
    waiters[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiters[0]
    await waiters[1]
    assert len(ids_of(settings)) == 2


async def wait(future: asyncio.Future) -> None:
    await future


async def test_equal_rows_are_kept_once(settings, log):
    records = some_decisions(10)
    await log.submit(records)
    await log.submit(records[:4])
    assert ids_of(settings) == [r.id for r in records]
    assert log.stats.duplicates == 4


async def test_a_full_queue_says_so_and_has_room_again(settings, tmp_path):
    log = DecisionLog.open(settings, "h", tmp_path / "spool", queue_rows=100)
    records = some_decisions(1000)
    waited = 0
    with locked(settings):
        for start in range(0, 1000, 50):
            if log.full:
                waited += 1
                await log.room()
            log.submit(records[start : start + 50])
            assert log.stats.queue_depth <= 300
    await log.aclose()
    assert waited
    assert sorted(ids_of(settings)) == sorted(r.id for r in records)


async def test_rows_submitted_under_a_lock_are_spooled_and_replayed_in_order(settings, log, tmp_path):
    records = some_decisions(400)
    with locked(settings):
        for start in range(0, 400, 40):
            await log.submit(records[start : start + 40])
        assert log.stats.spool_depth == 400
        assert list((tmp_path / "spool").rglob("*.spool"))
    await until(lambda: log.stats.spool_depth == 0)
    assert ids_of(settings) == [r.id for r in records]
    assert log.stats.outages == 1
    await log.submit(some_decisions(1))
    assert len(ids_of(settings)) == 401


class Unreachable:
    """A database that takes its time to be unreachable, until ``back``."""

    def __init__(self):
        self.rows, self.asked, self.back = [], threading.Event(), threading.Event()

    def write(self, chunks, *, wait_ms, answer_s):
        if not self.rows:
            self.rows.append("the first write fails at once")
            raise StoreUnavailable("gone")
        self.asked.set()
        assert self.back.wait(30)
        self.rows += [row for _, _, rows in chunks for row in rows]
        return sum(len(rows) for _, _, rows in chunks)

    def close(self):
        pass


async def test_nobody_waits_while_a_database_is_looked_for(tmp_path):
    """A server out of reach takes seconds to be found so, again and again: rows are durable in the spool meanwhile."""
    sink = Unreachable()
    log = DecisionLog(sink, Spool(tmp_path / "spool", COLUMNS))
    records = some_decisions(40)
    await log.submit(records[:10])
    assert await asyncio.to_thread(sink.asked.wait, 30)
    for record in records[10:]:
        await log.submit([record])
    assert log.stats.spool_depth == 40 and not sink.back.is_set()
    sink.back.set()
    await until(lambda: log.stats.spool_depth == 0)
    await log.aclose()
    assert [row[0] for row in sink.rows[1:]] == [record.id for record in records]


async def test_a_log_that_ends_while_a_database_is_looked_for_keeps_its_rows(tmp_path):
    sink = Unreachable()
    log = DecisionLog(sink, Spool(tmp_path / "spool", COLUMNS))
    log.submit(some_decisions(10))
    assert await asyncio.to_thread(sink.asked.wait, 30)
    log.submit(some_decisions(5))
    closing = asyncio.create_task(log.aclose())
    sink.back.set()
    await asyncio.wait_for(closing, 30)
    assert len(sink.rows) == 1 + 15


async def test_a_database_that_was_deleted_is_noticed_before_anything_is_acknowledged(settings, log):
    before, after = some_decisions(5), some_decisions(5)
    await log.submit(before)
    for path in sqlite_path(settings.url).parent.glob("bothost.db*"):
        path.unlink()
    await log.submit(after)
    assert log.stats.spool_depth == 5
    assert not sqlite_path(settings.url).exists()
    schema.upgrade(settings)
    await until(lambda: log.stats.spool_depth == 0)
    assert ids_of(settings) == [r.id for r in after]


async def test_an_idle_log_knows_that_its_database_was_moved_or_replaced(settings, log, tmp_path):
    path = sqlite_path(settings.url)
    await log.submit(some_decisions(1))
    assert log.displaced == ""
    for file in path.parent.glob("bothost.db*"):  # also the write-ahead log, or the next database would get its rows
        file.rename(file.with_name(f"away-{file.name}"))
    assert log.displaced == f"{path} was moved or deleted"
    schema.upgrade(msgspec.structs.replace(settings, url=f"sqlite:///{tmp_path / 'other.db'}"))
    (tmp_path / "other.db").rename(path)
    assert log.displaced == f"{path} was replaced while open"
    await log.submit(after := some_decisions(3))
    await until(lambda: log.stats.spool_depth == 0)
    assert log.displaced == "" and ids_of(settings) == [row.id for row in after]


async def test_a_full_disk_loses_nothing(settings, tmp_path, monkeypatch):
    """The first connection meets a limit of the file's size; the next one finds room again."""
    limits = ["PRAGMA max_page_count = {}"]

    def set_up(connection, **options):
        set_up_sqlite(connection, **options)
        if limits:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(limits.pop().format(pages + 4))

    monkeypatch.setattr("bothost.store.sqlite.set_up_sqlite", set_up)
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    records = some_decisions(300)
    await log.submit(records)
    assert log.stats.spool_depth == 300
    await until(lambda: log.stats.spool_depth == 0)
    assert ids_of(settings) == [r.id for r in records]
    await log.aclose()


async def test_an_outage_of_database_and_spool_is_one_and_ends_once(settings, log, monkeypatch):
    attempts = []

    def append(_spool, groups):
        attempts.append(groups)
        raise OSError("No space left on device")

    monkeypatch.setattr(Spool, "append", append)
    with structlog.testing.capture_logs() as logs:
        with locked(settings):
            durable = log.submit(some_decisions(3))
            await until(lambda: len(attempts) == 3)
            assert [entry["event"] for entry in logs] == ["database_away", "spool_failed"]
        await durable
    events = [entry["event"] for entry in logs]
    assert events.count("database_away") == events.count("database_back") == log.stats.outages == 1


async def test_rows_that_are_lost_at_the_end_are_counted_once(settings, tmp_path, monkeypatch):
    """Nobody waits for these rows. The error of ``aclose`` is all that an operator should see besides the log."""
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))

    def append(_spool, groups):
        raise OSError("No space left on device")

    monkeypatch.setattr(Spool, "append", append)
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    with locked(settings):
        log.submit(some_decisions(3))
        with pytest.raises(StoreUnavailable, match="3 rows could be written neither") as caught:
            await log.aclose()
    assert "host.data_dir" in caught.value.advice
    await asyncio.sleep(0)  # the loop sets the exception
    gc.collect()
    assert complaints == []


async def test_another_reason_of_the_same_outage_is_reported(settings, log, tmp_path):
    """The operator must learn that waiting does not help."""
    path, away = sqlite_path(settings.url), tmp_path / "away.db"
    with structlog.testing.capture_logs() as logs:
        path.rename(away)
        await log.submit(some_decisions(3))
        path.touch()  # an empty database
        await until(lambda: len(logs) == 2)
        away.rename(path)
        await until(lambda: log.stats.spool_depth == 0)
    assert [entry["event"] for entry in logs] == ["database_away", "database_away", "database_back"]
    assert "No such file" in logs[0]["error"] and "no schema yet" in logs[1]["error"]
    assert log.stats.outages == 1


async def test_what_is_spooled_at_the_end_is_in_the_database_when_the_next_log_opens(settings, tmp_path):
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    records = some_decisions(50)
    with locked(settings):
        await log.submit(records)
        await log.aclose()
    assert ids_of(settings) == []
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    assert ids_of(settings) == [r.id for r in records]
    await log.aclose()


async def test_a_log_that_opens_before_its_spool_is_replayed_knows_it(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("bothost.store.decision_log.RECOVER_S", 0.05)
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    assert log.recovered
    with locked(settings):
        await log.submit(some_decisions(50))
        await log.aclose()
        log = DecisionLog.open(settings, "h", tmp_path / "spool")
        assert not log.recovered
    await until(lambda: log.recovered)
    assert len(ids_of(settings)) == 50
    await log.aclose()


async def test_a_row_that_no_database_takes_costs_only_itself(settings, log, tmp_path):
    records = some_decisions(9)
    records[4].seed = 2**70
    records[6].notation = None
    await log.submit(records)
    assert sorted(ids_of(settings)) == sorted(r.id for i, r in enumerate(records) if i not in (4, 6))
    assert log.stats.rejected == 2
    text = next((tmp_path / "spool").rglob("rejected.log")).read_text()
    assert str(2**70) in text


async def test_a_closed_log_refuses_rows(settings, tmp_path):
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    await log.aclose()
    with pytest.raises(StoreError, match="closed"):
        log.submit(some_decisions(1))


async def test_many_rows_that_keep_coming_share_commits_and_few_do_not_wait(settings, log, monkeypatch):
    monkeypatch.setattr(decision_log, "PACE_S", 0.2)
    began = time.monotonic()
    records = some_decisions(600)
    for at in range(0, 600, 20):
        durable = log.submit(records[at : at + 20])
        await asyncio.sleep(0.005)
    await durable
    assert log.stats.commits <= (time.monotonic() - began) / 0.2 + 2
    assert ids_of(settings) == [r.id for r in records]

    commits = log.stats.commits
    monkeypatch.setattr(decision_log, "PACE_S", 60.0)
    async with asyncio.timeout(50):
        for record in some_decisions(5):
            await log.submit([record])
    assert log.stats.commits == commits + 5


def test_the_log_survives_without_anybody_waiting(settings, tmp_path):
    """The event loop is gone before the rows are durable: they are written all the same."""
    records = some_decisions(50)

    async def submit() -> DecisionLog:
        log = DecisionLog.open(settings, "h", tmp_path / "spool")
        log.submit(records)
        return log

    log = asyncio.run(submit())
    log.close()
    assert ids_of(settings) == [r.id for r in records]


async def test_what_is_no_record_fails_alone_and_the_writer_lives_on(settings, log):
    with pytest.raises(TypeError):
        await log.submit(["not a record"])
    await log.submit(some_decisions(3))
    assert len(ids_of(settings)) == 3


async def test_a_damaged_spool_is_set_aside_and_the_rest_replayed(settings, tmp_path):
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    records = some_decisions(20)
    with locked(settings):
        await log.submit(records)
        await log.aclose()
    slot = next((tmp_path / "spool").rglob("*.spool")).parent
    (slot / "0000000000000000.spool").write_bytes(b"something else entirely, and longer than the magic")
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    await log.aclose()
    assert ids_of(settings) == [r.id for r in records]
    assert [path.name for path in slot.glob("*.damaged")] == ["0000000000000000.damaged"]


async def test_rows_that_are_not_the_logs_are_set_aside_and_not_tried_for_ever(settings, tmp_path):
    """A segment of a forger, or of another version: what is in front of them and behind them is replayed."""
    foreign = [
        {'decisions" SELECT 1; --': ("id",)},
        {"leases": ("lobby", "account", "holder", "expires_us")},
        {"decisions": (*COLUMNS["decisions"], "mood")},
    ]
    for columns in foreign:
        spool = Spool(tmp_path / "spool" / "h", columns)
        ((table, names),) = columns.items()
        spool.append({table: [["x"] * len(names)]})
        spool.close()
    records = some_decisions(3)
    spool = Spool(tmp_path / "spool" / "h", COLUMNS)
    spool.append({"decisions": [msgspec.structs.astuple(record) for record in records]})
    spool.close()
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    await log.aclose()
    assert ids_of(settings) == [r.id for r in records]
    assert len(list((tmp_path / "spool").rglob("*.damaged"))) == len(foreign)
