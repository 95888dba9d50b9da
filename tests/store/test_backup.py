"""Backups: complete while others write, and nothing is ever overwritten."""

import asyncio
import random
import sqlite3
from contextlib import closing

import pytest

from bothost.config import StoreSettings
from bothost.errors import SchemaOutdated, StoreError, StoreUnavailable
from bothost.store import DecisionLog, schema
from bothost.store.backup import back_up, restore
from bothost.testing.sample_rows import sample_hand


def counted(path) -> int:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return db.execute("SELECT count(*) FROM decisions").fetchone()[0]


async def test_a_backup_of_a_database_in_use_holds_what_was_committed_before(settings, tmp_path):
    rng = random.Random(1)
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    for _ in range(30):
        await log.submit(sample_hand(rng, decisions=10))
    copying = asyncio.create_task(asyncio.to_thread(back_up, settings, tmp_path / "copy.db"))
    while not copying.done():
        await log.submit(sample_hand(rng, decisions=10))
    await log.aclose()
    assert await copying == (tmp_path / "copy.db").stat().st_size
    assert counted(tmp_path / "copy.db") >= 300
    assert not list(tmp_path.glob("*.partial"))
    again = StoreSettings(url=f"sqlite:///{tmp_path}/again.db")
    restore(again, tmp_path / "copy.db")
    schema.check_database(again)
    assert counted(tmp_path / "again.db") == counted(tmp_path / "copy.db")


def test_nothing_is_overwritten(settings, tmp_path):
    kept = tmp_path / "kept.db"
    kept.write_text("precious")
    with pytest.raises(StoreError, match="exists already"):
        back_up(settings, kept)
    assert kept.read_text() == "precious"
    back_up(settings, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="exists already") as caught:
        restore(settings, tmp_path / "copy.db")
    assert caught.value.advice


def test_what_is_no_backup_is_refused(settings, tmp_path):
    target = StoreSettings(url=f"sqlite:///{tmp_path}/new.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to look at " * 10)
    for source in (tmp_path / "text.db", tmp_path / "missing.db"):
        with pytest.raises(StoreError, match="no backup"):
            restore(target, source)
    with closing(sqlite3.connect(tmp_path / "newer.db")) as db:
        db.execute("CREATE TABLE alembic_version AS SELECT '9999' AS version_num")
        db.commit()
    with pytest.raises(SchemaOutdated):
        restore(target, tmp_path / "newer.db")
    with pytest.raises(StoreUnavailable):
        back_up(target, tmp_path / "copy.db")
    assert not (tmp_path / "new.db").exists()
