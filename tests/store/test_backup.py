"""Backups: complete while others write, and nothing is ever overwritten."""

import asyncio
import errno
import os
import random
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest

from bothost.config import StoreSettings
from bothost.errors import SchemaOutdated, StoreError, StoreUnavailable
from bothost.store import DecisionLog, backup, schema
from bothost.store.backup import back_up, restore
from bothost.store.engine import sqlite_path
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


def test_a_full_disk_leaves_nothing_behind(settings, tmp_path, monkeypatch):
    folder = tmp_path / "full"
    folder.mkdir()

    def connect(path):
        (copy := sqlite3.connect(path)).execute("PRAGMA max_page_count = 4")
        path.with_name(f"{path.name}-journal").touch()
        return copy

    monkeypatch.setattr(backup, "sqlite3", SimpleNamespace(connect=connect, Error=sqlite3.Error))
    with pytest.raises(StoreError, match="database or disk is full") as caught:
        back_up(settings, folder / "copy.db")
    assert "make room" in caught.value.advice and list(folder.iterdir()) == []


async def test_a_backup_ends_however_often_others_write(settings, tmp_path, monkeypatch):
    """SQLite begins a copy again when another process has written between two of its steps: a busy host always has."""
    rng, steps = random.Random(2), []
    log = DecisionLog.open(settings, "h", tmp_path / "spool")
    for _ in range(10):
        await log.submit(sample_hand(rng, decisions=10))
    monkeypatch.setattr(backup, "PAGES_PER_STEP", 8)
    with closing(sqlite3.connect(sqlite_path(settings.url), isolation_level=None)) as other:

        def write(_done, total):
            steps.append(total)
            if len(steps) < 200:
                other.execute("INSERT INTO memos VALUES ('home', ?, '{}', 0)", (f"player-{len(steps)}",))

        back_up(settings, tmp_path / "copy.db", progress=write)
    await log.aclose()
    assert len(steps) <= steps[0] // 8 + 2
    assert counted(tmp_path / "copy.db") == 100


def test_a_file_system_without_hard_links_can_hold_a_backup(settings, tmp_path, monkeypatch):
    def link(*_paths):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    back_up(settings, tmp_path / "copy.db")
    assert counted(tmp_path / "copy.db") == 0


def test_nothing_is_overwritten(settings, tmp_path):
    kept = tmp_path / "kept.db"
    kept.write_text("precious")
    with pytest.raises(StoreError, match="exists already"):
        back_up(settings, kept)
    assert kept.read_text() == "precious"
    with pytest.raises(StoreError, match=r"to .*/missing/copy\.db failed: unable to open") as caught:
        back_up(settings, tmp_path / "missing" / "copy.db")
    assert "its folder exists" in caught.value.advice
    back_up(settings, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="exists already") as caught:
        restore(settings, tmp_path / "copy.db")
    assert caught.value.advice


def test_an_empty_database_has_no_backup(tmp_path):
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/log.db")
    sqlite3.connect(tmp_path / "log.db").close()
    with pytest.raises(SchemaOutdated, match="has no schema yet") as caught:
        back_up(settings, tmp_path / "copy.db")
    assert "bothost db upgrade" in caught.value.advice and not (tmp_path / "copy.db").exists()


def test_what_is_no_backup_is_refused(settings, tmp_path):
    target = StoreSettings(url=f"sqlite:///{tmp_path}/new.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to look at " * 10)
    for source in (tmp_path / "text.db", tmp_path / "missing.db"):
        with pytest.raises(StoreError, match=r"(no|not a) backup"):
            restore(target, source)
    with closing(sqlite3.connect(tmp_path / "newer.db")) as db:
        db.execute("CREATE TABLE alembic_version AS SELECT '9999' AS version_num")
        db.commit()
    with pytest.raises(SchemaOutdated):
        restore(target, tmp_path / "newer.db")
    with pytest.raises(StoreUnavailable):
        back_up(target, tmp_path / "copy.db")
    assert not (tmp_path / "new.db").exists()
