"""Small reads and writes: live hands found again, memos, and StoreUnavailable while the database is away."""

import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from other_writer import another_writer

from bothost.config import StoreSettings
from bothost.errors import StoreUnavailable, UsageError
from bothost.store import DecisionLog, Store, consent, models, notes, ratings, retention, schema
from bothost.store.engine import make_engine, reaching, sqlite_path
from bothost.store.erase import delete_memos
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands
from bothost.testing.sample_rows import sample_decision, sample_game, sample_hand

RNG = random.Random(5)


@pytest.fixture
def store(any_settings: StoreSettings):
    with Store.open(any_settings) as opened:
        yield opened


async def log_rows(settings, tmp_path, records) -> None:
    log = DecisionLog.open(settings, "test", tmp_path / "spool")
    await log.submit(records)
    await log.aclose()


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        ("consuming input failed: server closed the connection unexpectedly", "check that the server runs"),
        ("terminating connection due to administrator command", "check that the server runs"),
        ("FATAL: the database system is starting up", "check that the server runs"),
        ("permission denied for table games", "let the role in store.url"),
        ("attempt to write a readonly database", "write to the file and to its folder"),
        ("database is locked", "wait until it has ended"),
        ("disk I/O error", "make room on its disk"),
        ("database or disk is full", "make room on its disk"),
    ],
)
def test_a_database_that_cannot_be_written_says_what_to_do(cause, advice):
    with pytest.raises(StoreUnavailable, match=cause) as caught, reaching(StoreSettings(url="sqlite:///a.db")):
        raise sa.exc.OperationalError("SELECT 1", {}, sqlite3.OperationalError(cause))
    assert advice in caught.value.advice


def test_a_text_that_the_database_cannot_hold_is_no_outage(store):
    with pytest.raises(UsageError, match=r"cannot hold this value.*surrogates not allowed"):
        notes.listed(store, players=["a\udcff"])
    if store.engine.dialect.name == "postgresql":
        with pytest.raises(UsageError, match=r"cannot hold this value.*NUL"):
            list(iter_hands(store, HandQuery(lobbies=("a\0",))))


def test_a_server_that_does_not_run_is_said_in_one_line(tmp_path):
    settings = StoreSettings(url=f"postgresql+psycopg://nobody@/log?host={tmp_path}")
    for reach in (lambda: Store.open(settings), lambda: DecisionLog.open(settings, "host", tmp_path)):
        with pytest.raises(StoreUnavailable, match="No such file or directory Is the server running") as caught:
            reach()
        assert str(caught.value).isprintable() and "check that the server runs" in caught.value.advice


@pytest.mark.parametrize(("start", "words"), [(4096, "malformed"), (0, "not a database")])
def test_a_damaged_database_is_said_to_be_so(settings, start, words):
    path = sqlite_path(settings.url)
    content = bytearray(path.read_bytes())
    content[start:] = b"\xff" * (len(content) - start)
    path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=words) as caught:
        Store.open(settings)
    assert "bothost db restore" in caught.value.advice


def test_a_database_whose_connections_are_all_in_use_is_unavailable(settings):
    engine = sa.create_engine(
        make_engine(settings).url, poolclass=sa.QueuePool, pool_size=1, max_overflow=0, pool_timeout=0.01
    )
    with Store(settings, engine) as store, store.begin(), pytest.raises(StoreUnavailable), store.begin():
        raise AssertionError("unreachable")


async def test_a_live_hand_is_found_and_an_ended_one_is_not(store, any_settings, tmp_path):
    live, ended = sample_hand(RNG, ended=False), sample_hand(RNG)
    await log_rows(any_settings, tmp_path, live + ended)
    names = {(live[0].table, "1"), (ended[0].table, "1"), (live[0].table, "2"), ("elsewhere", "1")}
    assert store.open_hands("home", "ada", names) == {(live[0].table, "1"): live[0]}
    assert store.open_hands("home", "bob", names) == store.open_hands("away", "ada", names) == {}
    assert store.open_hands("home", "ada", []) == {}


async def test_a_hand_is_found_under_a_name_that_postgresql_cannot_store(store, any_settings, tmp_path):
    """The lobby chooses it. One such hand must not stop the lookup of all others."""
    odd, plain = sample_hand(RNG, ended=False), sample_hand(RNG, ended=False)
    odd[0].table = "t\0one"
    await log_rows(any_settings, tmp_path, odd + plain)
    found = store.open_hands("home", "ada", {("t\0one", "1"), (plain[0].table, "1")})
    assert {name: game.game_id for name, game in found.items()} == {
        ("t\0one", "1"): odd[0].game_id,
        (plain[0].table, "1"): plain[0].game_id,
    }


async def test_of_two_hands_of_one_name_the_later_is_found(store, any_settings, tmp_path):
    first = sample_game(RNG, started_us=10**15)
    second = sample_game(RNG, started_us=2 * 10**15)
    second.table = first.table
    await log_rows(any_settings, tmp_path, [second, first])
    assert store.open_hands("home", "ada", [(first.table, "1")]) == {(first.table, "1"): second}


async def test_live_decisions_of_a_seat_come_in_order(store, any_settings, tmp_path):
    game = sample_game(RNG)
    rows = [sample_decision(RNG, game, seq) for seq in range(9)]
    rows[3].role = "shadow"
    rows[4].seat = 2
    await log_rows(any_settings, tmp_path, [game, *RNG.sample(rows, 9)])
    found = store.moves_of([game.game_id, bytes(16)])[game.game_id, game.seat]
    expected = [r for r in rows if r.role == "live" and r.seat == 0]
    assert [m.decision_id for m in found] == [r.id for r in expected]
    assert (found[0].request_id, found[0].notation, found[0].action) == (
        rows[0].request_id,
        "333444555",
        rows[0].action,
    )


def test_a_memo_is_replaced(store):
    assert store.memo("home", "ada") == {}
    store.remember("home", "ada", {"session": "x"})
    store.remember("home", "ada", {"session": "y", "tables": [1]})
    store.remember("home", "bob", {})
    assert store.memo("home", "ada") == {"session": "y", "tables": [1]}


def test_a_locked_database_is_unavailable(settings):
    with (
        Store.open(settings) as store,
        closing(sqlite3.connect(sqlite_path(settings.url), isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 1")
        with pytest.raises(StoreUnavailable, match="locked"):
            store.remember("home", "ada", {})


@pytest.mark.parametrize(
    "change",
    [
        lambda store, settings: consent.record(store, "home", "ada", granted=True),
        lambda store, settings: notes.add(store, "home", "ada", "bids high"),
        lambda store, settings: ratings.forget(store, ["ada"]),
        lambda store, settings: delete_memos(store, ["ada"]),
        lambda store, settings: retention.prune(settings, datetime.now(UTC) - timedelta(days=9)),
    ],
    ids=["consent", "note", "ratings", "memos", "prune"],
)
def test_what_reads_before_it_writes_does_so_beside_another_writer(settings, change):
    rating = {"scope": "all", "game": "othello", "mu": 25.0, "sigma": 8.0, "hands": 1, "last_us": 0}
    with Store.open(settings) as store:
        with store.begin() as connection:
            who = ratings.Contestant("player", "ada", "home")
            connection.execute(models.ratings.insert(), {**rating, "contestant": who.key})
        with another_writer(sqlite_path(settings.url)):
            change(store, settings)


def test_a_file_that_is_moved_away_for_a_moment_is_not_made_anew(settings, tmp_path):
    path = sqlite_path(settings.url)
    with closing(sqlite3.connect(path)) as writer, Store.open(settings) as store:
        writer.execute("CREATE TABLE moved (text)")
        writer.execute("INSERT INTO moved VALUES ('in the write-ahead log')")
        writer.commit()
        path.rename(tmp_path / "elsewhere")
        with pytest.raises(StoreUnavailable):
            store.memo("home", "ada")
        assert not path.exists()
        (tmp_path / "elsewhere").rename(path)
        with store.begin() as connection:
            assert connection.exec_driver_sql("SELECT text FROM moved").scalar() == "in the write-ahead log"
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_a_file_that_was_replaced_is_read_and_written_at_once(settings):
    """The pool has a connection to the old file, which is still there for it."""
    path = sqlite_path(settings.url)
    with Store.open(settings) as store:
        store.remember("home", "ada", {"at": "the old file"})
        for file in path.parent.glob("bothost.db*"):
            file.rename(file.with_name(f"away-{file.name}"))
        with pytest.raises(StoreUnavailable, match="unable to open database file"):
            store.memo("home", "ada")
        schema.upgrade(settings)
        assert store.memo("home", "ada") == {}
        store.remember("home", "ada", {"at": "the new file"})
        with Store.open(settings) as another:
            assert another.memo("home", "ada") == {"at": "the new file"}
