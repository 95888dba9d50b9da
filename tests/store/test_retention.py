"""Old hands are deleted with all that belongs to them, and nothing else is."""

import asyncio
import json
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from bothost.cli import main
from bothost.errors import StoreError, UsageError
from bothost.ladder.logged import LoggedOutcomes
from bothost.ladder.update import Ladder
from bothost.store import DecisionLog, Store, models, partitions, retention
from bothost.store.engine import make_engine, sqlite_path
from bothost.store.records import IMPORT_HOST
from bothost.testing.sample_rows import sample_hand

NOW = datetime.now(UTC)
TABLES = list(partitions.KEY_OF)


def at(moment, decisions, spread=timedelta(0)):
    """A hand that started at a moment; the decisions are spread over some time."""
    rng = random.Random(f"{moment}")
    hand = sample_hand(rng, decisions=decisions)
    started, ids = key(moment, rng), {}
    for record in hand:
        if hasattr(record, "game_id"):
            record.game_id = started
        if hasattr(record, "id"):
            ids[record.id] = record.id = key(moment + spread * len(ids) / decisions, rng)
        elif hasattr(record, "decision_id"):
            record.decision_id = list(ids.values())[-1]
    return hand


def key(moment, rng):
    return (partitions.least_key(moment).int | rng.getrandbits(74)).to_bytes(16, "big")


async def fill(settings, folder, hands):
    log = DecisionLog.open(settings, "host", folder / "spool")
    for hand in hands:
        await log.submit(hand)
    await log.aclose()


def rows(settings):
    engine = make_engine(settings)
    with engine.connect() as connection:
        found = {name: connection.execute(sa.text(f"SELECT count(*) FROM {name}")).scalar_one() for name in TABLES}
    engine.dispose()
    return found


async def test_hands_before_the_date_go_and_later_ones_stay(any_settings, tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "HANDS_AT_ONCE", 3)
    cut = NOW - timedelta(days=30)
    old = [at(cut - timedelta(hours=7 * n + 1), 3) for n in range(8)]
    crossing = at(cut - timedelta(minutes=1), 4, timedelta(minutes=4))
    young = [at(cut, 2), at(cut + timedelta(days=3), 5)]
    await fill(any_settings, tmp_path, [*young, crossing, *old])
    before = rows(any_settings)
    told = retention.prune(any_settings, cut, dry_run=True)
    assert rows(any_settings) == before, "a dry run deletes nothing"
    assert told.rows["games"] == 9 and told.rows["decisions"] == told.rows["outcomes"] == 8 * 3 + 4
    done = retention.prune(any_settings, cut)
    assert done.rows == told.rows
    left = rows(any_settings)
    assert left == {name: before[name] - told.rows[name] for name in TABLES}
    assert (left["games"], left["decisions"], left["outcomes"]) == (2, 7, 7)
    assert sum(retention.prune(any_settings, cut).rows.values()) == 0


async def test_the_ladder_forgets_which_of_the_deleted_hands_it_counted(any_settings, tmp_path):
    cut = NOW - timedelta(days=30)
    imported = at(cut - timedelta(days=200), 1)
    imported[0].host = IMPORT_HOST
    hands = [imported, *(at(cut - timedelta(days=days), 1) for days in (200, 90, 1, -1))]
    await fill(any_settings, tmp_path, hands)
    with Store.open(any_settings) as store:
        Ladder(store, "all").count(LoggedOutcomes(store, "all"))
        assert counted(store) >= {hand[0].game_id for hand in hands}
        retention.prune(any_settings, cut)
        left = counted(store)
        assert len(left) == 4 and left > {imported[0].game_id, hands[-1][0].game_id}
        assert list(LoggedOutcomes(store, "all")) == []


def counted(store):
    with store.begin() as connection:
        return set(connection.execute(sa.select(models.rated.c.key)).scalars())


async def test_what_stays_is_not_read(settings, tmp_path):
    """It may be all but a thousandth of a large log."""
    cut = NOW - timedelta(days=30)
    await fill(settings, tmp_path, [at(cut - timedelta(minutes=1), 4, timedelta(minutes=4)), at(cut, 2)])
    read = []

    def note(_connection, _cursor, statement, parameters, *_rest):
        if " decisions" in statement:
            read.append((statement, parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    retention.prune(settings, cut)
    sa.event.remove(sa.Engine, "before_cursor_execute", note)
    with closing(sqlite3.connect(sqlite_path(settings.url))) as database:
        plans = [database.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall() for query, values in read]
    steps = [step[-1] for plan in plans for step in plan if " decisions " in step[-1]]
    assert steps and not [step for step in steps if "(id>" in step or step.startswith("SCAN")]


def as_if_made_five_months_ago(settings):
    """Give the tables a partition for each month since then."""
    engine = make_engine(settings)
    with engine.begin() as connection:
        for table in TABLES:
            until = partitions.partitions(lambda query: connection.exec_driver_sql(query).all(), table)[0].name
            connection.exec_driver_sql(f"DROP TABLE {until}")

        def execute(statement):
            result = connection.exec_driver_sql(statement)
            return result.all() if result.returns_rows else ()

        for table in TABLES:
            for later in range(-5, 1):
                month, following = partitions.month_of(NOW, later), partitions.month_of(NOW, later + 1)
                name = f"{table}_{month:%Y_%m}"
                partitions.make(execute, table, name, partitions.least_key(month), partitions.least_key(following))
    engine.dispose()


async def test_partitions_that_are_old_as_a_whole_are_dropped(postgres_settings, tmp_path):
    as_if_made_five_months_ago(postgres_settings)
    months = [partitions.month_of(NOW, later) for later in range(-5, 0)]
    await fill(postgres_settings, tmp_path, [at(month + timedelta(days=9), 3) for month in months])
    with Store.open(postgres_settings) as store:
        Ladder(store, "all").count(LoggedOutcomes(store, "all"))
        done = retention.prune(postgres_settings, months[2] + timedelta(days=10))
        assert len(counted(store)) == 2 * 2
    assert set(done.partitions) == {f"{table}_{month:%Y_%m}" for table in TABLES for month in months[:2]}
    assert done.rows["games"] == 3 and rows(postgres_settings)["games"] == 2


async def test_hosts_can_write_while_a_long_read_keeps_partitions_from_being_dropped(
    postgres_settings, tmp_path, monkeypatch
):
    """As pg_dump does. Who waits for its lock keeps all others waiting."""
    monkeypatch.setattr(retention, "LOCK_WAIT_MS", 100)
    as_if_made_five_months_ago(postgres_settings)
    engine = make_engine(postgres_settings)
    with engine.begin() as reader:
        for table in TABLES:
            reader.exec_driver_sql(f"SELECT count(*) FROM {table}")
        with pytest.raises(StoreError, match="another process reads the log"):
            await asyncio.wait_for(asyncio.to_thread(retention.prune, postgres_settings, NOW - timedelta(days=99)), 30)
        await fill(postgres_settings, tmp_path, [at(NOW, 3)])
        assert rows(postgres_settings)["games"] == 1
    engine.dispose()
    assert retention.prune(postgres_settings, NOW - timedelta(days=99)).partitions


def test_hands_that_may_still_be_played_are_not_deleted(any_settings):
    for days in (-1.0, 0.0, 0.9):
        with pytest.raises(UsageError, match="may still be running"):
            retention.prune(any_settings, NOW - timedelta(days=days))


async def test_the_command_counts_until_it_is_told_to_delete(settings, tmp_path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_text(f'[store]\nurl = "{settings.url}"\n')
    monkeypatch.setenv("BOTHOST_CONFIG", str(tmp_path / "config.toml"))
    await fill(settings, tmp_path, [at(NOW - timedelta(days=400), 3), at(NOW, 2)])
    assert main(["db", "prune", "--before", "500d", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["games"] == 0
    assert main(["db", "prune", "--before", "500d"]) == 0
    told = capsys.readouterr().out
    assert "there is nothing to delete" in told and "--yes" not in told
    assert main(["db", "prune", "--before", "90d", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["games"] == 1
    date = f"{NOW - timedelta(days=300):%Y-%m-%d}"
    assert main(["db", "prune", "--before", date]) == 0
    assert "nothing was deleted" in capsys.readouterr().out
    assert rows(settings)["games"] == 2
    assert main(["db", "prune", "--before", date, "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["deleted"] and told["rows"]["decisions"] == 3
    assert rows(settings)["games"] == 1
    assert main(["db", "prune", "--before", "0001-01-01", "--yes", "--json"]) == 0
    assert not any(json.loads(capsys.readouterr().out)["rows"].values())
    assert main(["db", "prune", "--before", "2999-01-01", "--yes"]) == 2
    assert "may still be running" in capsys.readouterr().err
