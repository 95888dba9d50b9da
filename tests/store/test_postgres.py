"""The decision log on PostgreSQL: the same promises as on SQLite."""

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter

import msgspec
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from bothost.errors import StoreUnavailable
from bothost.store import DecisionLog, DecisionRecord, Store, schema, writer
from bothost.store.engine import make_engine
from bothost.store.models import COLUMNS, decisions, metadata
from bothost.testing.sample_rows import sample_decision, sample_game, sample_hand

RNG = random.Random(23)


@pytest.fixture(autouse=True)
def _a_busy_server_may_answer_later(monkeypatch):
    monkeypatch.setattr(writer, "ANSWER_S", 60.0)


@pytest.fixture
async def log(postgres_settings, tmp_path):
    made = DecisionLog.open(postgres_settings, "host", tmp_path / "spool")
    yield made
    await made.aclose()


def logged(settings) -> list[DecisionRecord]:
    engine = make_engine(settings)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(decisions).order_by(decisions.c.game_id, decisions.c.seq)).all()
    engine.dispose()
    return [DecisionRecord(**dict(zip(COLUMNS["decisions"], row, strict=True))) for row in rows]


def some_decisions(count: int) -> list[DecisionRecord]:
    game = sample_game(RNG)
    return [sample_decision(RNG, game, seq) for seq in range(count)]


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the writer thread has no event for it
            await asyncio.sleep(0.02)


async def test_names_that_postgresql_cannot_hold_lose_no_row(log, postgres_settings):
    """A lobby chooses the ids of tables and hands."""
    game = sample_game(RNG)
    game = msgspec.structs.replace(game, table="t\0one", hand="h\ud800")
    made = [sample_decision(RNG, game, seq) for seq in range(3)]
    for _ in range(2):  # the second time as after a commit of which it is unknown whether it took effect
        await log.submit([game, *made])
    assert len(logged(postgres_settings)) == len(made)
    assert (log.stats.rows, log.stats.duplicates, log.stats.rejected) == (4, 4, 0)
    with Store.open(postgres_settings) as store, store.begin() as connection:
        assert connection.execute(sa.text('SELECT "table", hand FROM games')).one() == ("t\ufffdone", "h?")


def test_models_equal_migrations(postgres_settings):
    assert schema.differences(postgres_settings) == []


def test_every_released_schema_upgrades_with_its_data(postgres_url):
    from bothost.config import StoreSettings
    from bothost.testing.postgres import new_database

    for revision in schema.REVISIONS:
        settings = StoreSettings(url=new_database(postgres_url, f"upgrade{revision}"))
        schema.upgrade(settings, revision)
        engine = make_engine(settings)
        rows = {"games": sample_game(RNG), "decisions": sample_decision(RNG, sample_game(RNG), 1)}
        for name, record in rows.items():
            table = metadata.tables[name]
            with engine.begin() as connection:
                connection.execute(table.insert(), [{c: getattr(record, c) for c in COLUMNS[name]}])
        schema.upgrade(settings)
        engine.dispose()
        assert schema.differences(settings) == []
        assert len(logged(settings)) == 1


async def test_every_field_is_read_back(postgres_settings, log):
    records = sample_hand(RNG, decisions=20)
    await log.submit(records)
    assert logged(postgres_settings) == [r for r in records if isinstance(r, DecisionRecord)]
    assert log.stats.rows == len(records)


async def test_equal_rows_are_kept_once(postgres_settings, log):
    records = some_decisions(10)
    await log.submit(records[:6])
    await log.submit(records)
    assert logged(postgres_settings) == records
    assert log.stats.duplicates == 6


async def test_a_row_that_the_database_does_not_take_costs_only_itself(postgres_settings, log):
    records = some_decisions(7)
    records[2].seed = -(2**70)
    records[5].seed = 2**70
    await log.submit(records)
    assert logged(postgres_settings) == [r for i, r in enumerate(records) if i not in (2, 5)]
    assert log.stats.rejected == 2


async def test_a_name_that_no_index_takes_costs_only_its_row(postgres_settings, log):
    """Were it retried like an unreachable database, all later rows would wait behind it for ever."""
    game = msgspec.structs.replace(sample_game(RNG), table=RNG.randbytes(8000).hex())
    await log.submit([game, *(made := some_decisions(2))])
    await log.submit(later := some_decisions(2))
    assert logged(postgres_settings) == sorted(made + later, key=lambda row: (row.game_id, row.seq))
    assert (log.stats.rejected, log.stats.spool_depth, log.stats.outages) == (1, 0, 0)


async def test_rows_that_a_role_may_not_write_wait_in_the_spool(postgres_settings, tmp_path):
    engine = make_engine(postgres_settings)

    def run(*statements):
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    run("CREATE ROLE reader LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    as_reader = msgspec.structs.replace(postgres_settings, url=f"{postgres_settings.url}&options=-crole%3Dreader")
    log = DecisionLog.open(as_reader, "host", tmp_path / "spool")
    await log.submit(made := some_decisions(3))
    assert (log.stats.rejected, log.stats.spool_depth) == (0, 3)
    run("GRANT INSERT ON ALL TABLES IN SCHEMA public TO reader")
    await until(lambda: log.stats.spool_depth == 0)
    await log.aclose()
    assert logged(postgres_settings) == made
    run("DROP OWNED BY reader", "DROP ROLE reader")
    engine.dispose()


async def test_a_lost_connection_costs_nothing(postgres_settings, postgres_url, log):
    before, during, after = some_decisions(5), some_decisions(200), some_decisions(5)
    await log.submit(before)
    name = make_url(postgres_settings.url).database
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        for at in range(0, 200, 20):
            await log.submit(during[at : at + 20])
        assert log.stats.spool_depth == 200
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())
    await until(lambda: log.stats.spool_depth == 0)
    await log.submit(after)
    found = Counter(record.id for record in logged(postgres_settings))
    assert found == Counter(record.id for record in before + during + after)


def backends(settings) -> list[int]:
    """The server's processes that serve this database."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with Store.open(settings) as store, store.begin() as connection:
        return list(connection.exec_driver_sql(query).scalars())


@contextlib.contextmanager
def frozen(*backends: int):
    """Server processes that do not answer, while their connections stand."""
    for backend in backends:
        os.kill(backend, signal.SIGSTOP)
    try:
        yield
    finally:
        for backend in backends:
            os.kill(backend, signal.SIGCONT)


async def test_a_server_that_is_silent_counts_as_away(postgres_settings, log, monkeypatch):
    """Frozen, its disk hanging, its network gone: TCP would wait for a quarter of an hour, and the moves with it."""
    before, during = some_decisions(3), some_decisions(30)
    await log.submit(before)
    monkeypatch.setattr(writer, "ANSWER_S", 0.2)
    with frozen(*backends(postgres_settings)):
        async with asyncio.timeout(60):
            await log.submit(during)
        assert log.stats.outages == 1
        await until(lambda: log.stats.spool_depth == 0)
    found = Counter(record.id for record in logged(postgres_settings))
    assert found == Counter(record.id for record in before + during)


def in_time(ask):
    """What is asked, once a busy machine has answered within the limit."""
    for _ in range(100):
        with contextlib.suppress(StoreUnavailable):
            return ask()
    raise TimeoutError


def test_a_host_does_not_wait_for_ever_for_what_it_asks(postgres_settings):
    with Store.open(postgres_settings, answer_s=0.2) as store:
        with store.begin() as connection:
            backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        with frozen(backend):
            in_time(lambda: store.remember("home", "ada", {"a": 1}))  # on another connection: this one is found dead
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.2 s"), store.begin() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(30)")
        assert in_time(lambda: store.memo("home", "ada")) == {"a": 1}


def test_a_store_reads_and_remembers(postgres_settings):
    with Store.open(postgres_settings) as store:
        store.remember("home", "ada", {"a": 1})
        store.remember("home", "ada", {"a": 2})
        assert store.memo("home", "ada") == {"a": 2}
