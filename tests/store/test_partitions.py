"""On PostgreSQL the log is partitioned by month, made ahead of time, and nothing is ever refused for want of one."""

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from bothost.store import DecisionLog, partitions
from bothost.store.engine import make_engine
from bothost.store.postgres import PostgresSink
from bothost.testing.sample_rows import sample_hand

RNG = random.Random(4)
NOW = datetime.now(UTC)
FAR = partitions.month_of(NOW, 7)


@given(st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_keys_are_in_the_order_of_their_moments(moment):
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    bound = partitions.least_key(moment)
    assert partitions.least_key(moment - timedelta(milliseconds=1)) < bound
    assert abs((bound.int >> 80) - moment.timestamp() * 1000) < 1
    month = partitions.month_of(moment)
    assert month <= moment < partitions.month_of(moment, 1) and month.day == 1


@pytest.fixture
def engine(postgres_settings):
    made = make_engine(postgres_settings)
    yield made
    made.dispose()


def run(engine, now=None):
    with engine.begin() as connection:
        return partitions.make_ahead(execute_in(connection), now)


def execute_in(connection):
    def execute(statement):
        result = connection.exec_driver_sql(statement)
        return result.all() if result.returns_rows else ()

    return execute


def names(engine, table):
    with engine.begin() as connection:
        return [part.name for part in partitions.partitions(execute_in(connection), table)]


def held_by(engine, table="decisions"):
    with engine.begin() as connection:
        query = sa.text(f"SELECT tableoid::regclass::text, count(*) FROM {table} GROUP BY 1")
        return {name: count for name, count in connection.execute(query)}


def moved(records, moment):
    """A hand as if it had been played at another moment."""
    shift = partitions.least_key(moment).int - (int.from_bytes(records[0].game_id, "big") >> 80 << 80)

    def key(old):
        return (int.from_bytes(old, "big") + shift).to_bytes(16, "big")

    for record in records:
        for field in ("game_id", "decision_id", "id"):
            if hasattr(record, field):
                setattr(record, field, key(getattr(record, field)))
    return records


def test_an_upgraded_database_has_the_months_to_come(engine):
    expected = [f"_{partitions.month_of(NOW, later):%Y_%m}" for later in range(1, partitions.MONTHS_AHEAD + 1)]
    for table in partitions.KEY_OF:
        until, *months = names(engine, table)
        assert until == f"{table}_until_{partitions.month_of(NOW, 1):%Y_%m}"
        assert months == [table + month for month in expected]
    assert run(engine) == [], "once is enough"


async def test_rows_go_to_their_month_and_others_to_the_default_until_it_is_made(engine, postgres_settings, tmp_path):
    log = DecisionLog.open(postgres_settings, "host", tmp_path / "spool")
    for moment in (NOW, partitions.month_of(NOW, 2), FAR):
        await log.submit(moved(sample_hand(RNG, decisions=4), moment))
    again = moved(sample_hand(RNG, decisions=4), FAR)
    await log.submit(again)
    await log.submit(again)
    await log.aclose()
    assert log.stats.duplicates == len(again) and log.stats.rejected == 0
    until, second = names(engine, "decisions")[0], f"decisions_{partitions.month_of(NOW, 2):%Y_%m}"
    assert held_by(engine) == {until: 4, second: 4, "decisions_default": 8}
    made = run(engine, FAR - timedelta(days=40))
    assert f"decisions_{FAR:%Y_%m}" in made
    assert held_by(engine) == {until: 4, second: 4, f"decisions_{FAR:%Y_%m}": 8}
    assert held_by(engine, "outcomes")[f"outcomes_{FAR:%Y_%m}"] == 8


def test_a_clock_that_was_years_ahead_keeps_no_month_from_being_made(engine):
    run(engine, NOW + timedelta(days=2000))
    assert f"decisions_{FAR:%Y_%m}" in run(engine, FAR)
    assert run(engine, FAR) == []


def test_a_host_makes_the_months_to_come_and_lives_without_the_right_to(engine, postgres_settings):
    with engine.begin() as connection:
        for table in partitions.KEY_OF:
            connection.exec_driver_sql(f"DROP TABLE {names(engine, table)[-1]}")
    sink = PostgresSink(postgres_settings)
    sink.connect()
    assert [f"_{partitions.month_of(NOW, partitions.MONTHS_AHEAD):%Y_%m}" in name for name in names(engine, "events")][
        -1
    ]
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {names(engine, 'events')[-1]}")
        connection.exec_driver_sql("CREATE ROLE writer LOGIN")
        connection.exec_driver_sql("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO writer")
    sink.close()
    as_writer = msgspec.structs.replace(postgres_settings, url=f"{postgres_settings.url}&options=-crole%3Dwriter")
    sink = PostgresSink(as_writer)
    sink.connect()
    assert sink.write([], wait_ms=100) == 0, "the connection is as good as before"
    sink.close()
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP OWNED BY writer")
        connection.exec_driver_sql("DROP ROLE writer")


def test_every_partition_of_decisions_takes_rows_cheaply(engine):
    """Also those that were made after the migration: ids by BRIN, wide rows as they are."""
    run(engine, FAR)
    with engine.begin() as connection:
        execute = execute_in(connection)
        kinds = execute(
            "SELECT i.indrelid::regclass::text, a.amname, c.reloptions FROM pg_index i JOIN pg_class c ON "
            "c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam JOIN pg_inherits p ON p.inhrelid = i.indrelid "
            "WHERE p.inhparent = 'decisions'::regclass AND NOT i.indisunique AND i.indpred IS NULL"
        )
        options = dict(
            execute(
                "SELECT c.relname, c.reloptions FROM pg_class c JOIN pg_inherits p ON p.inhrelid = c.oid "
                "WHERE p.inhparent = 'decisions'::regclass"
            )
        )
    assert len(options) == len(kinds) > partitions.MONTHS_AHEAD
    for partition, method, settings in kinds:
        assert (method, set(settings)) == ("brin", {"pages_per_range=32", "autosummarize=on"})
        assert options[partition] == ["toast_tuple_target=8160"]
