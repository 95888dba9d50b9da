"""Kills, outages, restarts and bad plugins at random: nothing is lost, doubled or illegal, and play goes on."""

import random

import pytest
import sqlalchemy as sa
import structlog

from bothost.bench import chaos
from bothost.config import StoreSettings
from bothost.store.engine import make_engine
from bothost.testing.postgres import new_database

BLOWS = ["kills", "db_outages", "lobby_restarts", "plugin_faults"]
DAMAGE = ["rows_lost", "rows_doubled", "illegal_moves", "missed_deadlines"]
KEYS = [*BLOWS, "moves", *DAMAGE, "recovery_s_p50", "recovery_s_max"]


@pytest.fixture(autouse=True)
def quiet():
    yield
    structlog.reset_defaults()


def check(figures, *, tables):
    assert list(figures) == KEYS
    assert min(figures[blow] for blow in BLOWS) >= 1
    assert figures["moves"] > tables
    assert {key: figures[key] for key in DAMAGE} == dict.fromkeys(DAMAGE, 0)
    assert 0 < figures["recovery_s_p50"] <= figures["recovery_s_max"]


def test_some_seconds_of_chaos_lose_and_double_nothing(tmp_path):
    folder = tmp_path / "chaos"
    figures = chaos.command(minutes=0.15, tables=40, kills=14, chance=0.06, seed=3, folder=folder)
    check(figures, tables=40)
    engine = make_engine(StoreSettings(url=f"sqlite:///{folder}/chaos.db"))
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT * FROM leases")).all() == [], "a drained host holds no lease"
    engine.dispose()


@pytest.mark.long
@pytest.mark.timeout(0)
def test_ten_minutes_of_chaos_on_two_hundred_tables_and_a_quick_recovery():
    figures = chaos.command(minutes=10, tables=200)
    check(figures, tables=200)
    assert figures["recovery_s_p50"] <= 2.0


@pytest.mark.long
@pytest.mark.timeout(0)
def test_chaos_on_postgresql(postgres_url):
    check(chaos.command(minutes=3, tables=100, postgresql=new_database(postgres_url, "chaos")), tables=100)


def test_blows_are_spread_over_the_time_and_every_kind_falls():
    blows = chaos.schedule(random.Random(0), 600.0, {"kill": 6, "outage": 0.01, "restart": 0})
    kinds = [kind for _, kind in blows]
    assert kinds.count("kill") == 60 and kinds.count("outage") == 1 and "restart" not in kinds
    assert [at for at, _ in blows] == sorted(at for at, _ in blows) and blows[-1] == (600.0, "end")
