"""Leases on accounts: never two holders, by the database's clock, on every kind of database."""

import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
import sqlalchemy as sa

from bothost.config import StoreSettings
from bothost.errors import StoreUnavailable
from bothost.store import Store
from bothost.store.leases import JobLease, LeaseHeld, Leases

ADA, BOB = ("home", "ada"), ("home", "bob")


@pytest.fixture
def store(any_settings):
    with Store.open(any_settings) as opened:
        yield opened


def test_one_holder_at_a_time_and_a_released_lease_is_free_at_once(store):
    first, second = Leases(store, "first", 60), Leases(store, "second", 60)
    assert first.round([], [ADA, BOB], take_over=True).taken == {ADA, BOB}
    refused = second.round([], [ADA], take_over=True)
    assert refused.taken == set() and refused.others == {ADA: "first"}
    second.release([ADA])  # not its own: nothing happens
    assert first.round([ADA, BOB], [], take_over=False).kept == {ADA, BOB}
    first.release([ADA])
    assert second.round([], [ADA, BOB], take_over=False).taken == {ADA}
    assert first.round([ADA, BOB], [], take_over=False).kept == {BOB}


def test_an_expired_lease_is_taken_over_only_by_who_may_and_a_renewed_one_by_nobody(store):
    dead, living, heir = (Leases(store, name, 60) for name in ("dead", "living", "heir"))
    Leases(store, "dead", 0.05).round([], [ADA, BOB], take_over=False)
    time.sleep(0.1)
    assert heir.round([], [ADA], take_over=False).taken == set()
    assert dead.round([BOB], [], take_over=False).kept == {BOB}, "nobody took it meanwhile"
    assert living.round([], [BOB], take_over=True).taken == set()
    assert heir.round([], [ADA], take_over=True).taken == {ADA}
    assert dead.round([ADA], [], take_over=False).kept == set()


@pytest.fixture
def clock(settings):
    """A store on SQLite, and its clock: a list with the days by which it is wrong. It stands still."""
    off, today = [0.0], time.time() / 86_400 + 2_440_587.5
    with Store.open(settings) as opened:
        opened.engine.dispose()
        sa.event.listen(
            opened.engine, "connect", lambda raw, _: raw.create_function("julianday", 1, lambda _: today + off[0])
        )
        yield opened, off


def test_a_lease_lasts_no_longer_where_the_clock_is_set_back(clock):
    store, off = clock
    dead, living, heir = Leases(store, "dead", 0.1), Leases(store, "living", 60), Leases(store, "heir", 60)
    dead.round([], [ADA], take_over=False)
    living.round([], [BOB], take_over=False)
    assert heir.round([], [ADA, BOB], take_over=True).taken == set()
    off[0] = -1.0
    living.round([BOB], [], take_over=False)
    time.sleep(0.15)
    assert heir.round([], [ADA, BOB], take_over=False).taken == set()
    assert heir.round([], [ADA, BOB], take_over=True).taken == {ADA}


def test_a_lease_from_the_future_is_not_believed_for_longer_than_any_may_be(clock):
    store, off = clock
    holder, heir = Leases(store, "holder", 60), Leases(store, "heir", 60, longest_s=0.1)
    holder.round([], [ADA, BOB], take_over=False)
    off[0] = -1.0
    assert heir.round([], [ADA, BOB], take_over=True).taken == set()
    holder.round([BOB], [], take_over=False)
    time.sleep(0.15)
    assert heir.round([], [ADA, BOB], take_over=True).taken == {ADA}


def test_a_job_is_free_soon_where_the_clock_was_set_back(clock):
    store, off = clock
    off[0] = 300.0
    Leases(store, "dead", 60).round([], [("", "retrain")], take_over=False)
    off[0] = 0.0
    with JobLease(store, "retrain", ttl_s=0.2) as lease:
        lease.check()


def test_a_job_of_a_living_process_is_not_free_where_the_clock_was_set_back(clock):
    store, off = clock
    off[0] = 300.0
    with JobLease(store, "retrain", ttl_s=2.0) as lease:
        off[0] = 0.0
        with pytest.raises(LeaseHeld, match="is doing this job"), JobLease(store, "retrain", ttl_s=2.0):
            pass
        lease.check()


def test_a_restarted_holder_takes_its_own_lease_at_once(store):
    Leases(store, "host", 60).round([], [ADA], take_over=False)
    assert Leases(store, "host", 60).round([], [ADA], take_over=False).taken == {ADA}


def test_of_many_that_ask_at_once_one_gets_it(any_settings):
    won = Counter()
    start = threading.Barrier(4)

    def ask(name):
        with Store.open(any_settings) as store:
            start.wait()
            won[name] = len(Leases(store, name, 60).round([], [ADA, BOB], take_over=True).taken)

    threads = [threading.Thread(target=ask, args=(f"host-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(won.values()) == 2


def test_the_clock_is_the_database_s_and_agrees_with_ours(store):
    before = time.time()
    Leases(store, "host", 100).round([], [ADA], take_over=False)
    with store.begin() as connection:
        expires_us = connection.execute(sa.text("SELECT expires_us FROM leases")).scalar()
    assert before + 99 <= expires_us / 1e6 <= time.time() + 101


def test_a_database_that_is_away_is_told(tmp_path, settings):
    store = Store.open(settings)
    store.close()
    (tmp_path / "bothost.db").unlink()
    store.engine = sa.create_engine(StoreSettings(url=f"sqlite:///{tmp_path}/none/x.db").url)
    with pytest.raises(StoreUnavailable):
        Leases(store, "host", 60).round([], [ADA], take_over=False)


KILLED = """
import os, pathlib, signal, sys
from bothost.config import StoreSettings
from bothost.store import Store
from bothost.store.leases import JobLease
store = Store.open(StoreSettings(url=sys.argv[1]))
with JobLease(store, "retrain", lock=pathlib.Path(sys.argv[2])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_job_of_a_killed_process_is_free_at_once_for_the_next_of_its_data_dir_only(any_settings, tmp_path):
    lock = tmp_path / "one" / "retrain.id"
    assert subprocess.run([sys.executable, "-c", KILLED, any_settings.url, lock]).returncode == -9
    with Store.open(any_settings) as store:
        with pytest.raises(LeaseHeld), JobLease(store, "retrain", lock=tmp_path / "two" / "retrain.id"):
            raise AssertionError("another machine cannot know that it is dead")
        with JobLease(store, "retrain", lock=lock) as lease:
            lease.check()


def test_a_job_of_a_living_process_is_not_free_for_the_next_of_its_data_dir(any_settings, tmp_path):
    lock = tmp_path / "retrain.id"
    with Store.open(any_settings) as store:
        living = JobLease(store, "retrain", lock=lock)
        with living, pytest.raises(LeaseHeld, match="is doing this job"), JobLease(store, "retrain", lock=lock):
            raise AssertionError("both do it")
        with JobLease(store, "retrain", lock=lock):
            pass
