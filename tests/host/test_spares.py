"""Worker processes that start before it is known what they play."""

import time

import pytest

from bothost import config
from bothost.host.process import ProcessLimits, ProcessStrategy
from bothost.host.spares import Spares, number_for
from bothost.plugins import Plugins
from bothost.testing import misbehaving

found = Plugins.load(modules=[misbehaving])


@pytest.fixture
def spares():
    made = Spares(2)
    yield made
    made.close()


def test_a_strategy_plays_in_a_spare_process_while_there_are_any(spares):
    waiting = [spare.process.pid for spare in spares.waiting]
    strategies = [ProcessStrategy(found.resolve("random", {}), ProcessLimits(), spares, wait=False) for _ in range(3)]
    try:
        for strategy in strategies:
            strategy.await_ready(time.monotonic() + 60.0)
        pids = [strategy.pid for strategy in strategies]
        assert pids[:2] == waiting and pids[2] not in waiting
    finally:
        for strategy in strategies:
            strategy.close()


def test_a_spare_that_died_is_passed_over(spares):
    dead, alive = (spare.process for spare in spares.waiting)
    dead.kill()
    dead.wait()
    taken = spares.take()
    assert taken.process is alive
    taken.process.kill()
    taken.process.wait()
    taken.connection.close()


def test_what_nobody_takes_is_ended(spares):
    processes = [spare.process for spare in spares.waiting]
    spares.close()
    assert [process.returncode for process in processes] == [-9, -9]


def routed(*routes):
    return config.Settings(
        limits=config.LimitSettings(process_workers=3),
        routes=tuple(config.RouteSettings(strategy=strategy, options=options) for strategy, options in routes),
    )


@pytest.mark.parametrize(
    ("routes", "number"),
    [
        ([], 0),
        ([("random", {})], 0),
        ([("misbehaving-gil", {}), ("nobody-knows-it", {}), ("exec:cat", {})], 3),
        ([("misbehaving-gil", {}), ("misbehaving-gil:7", {}), ("misbehaving-gil", {"seconds": 1})], 6),
    ],
)
def test_as_many_are_started_as_the_routes_will_need(routes, number, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert number_for(routed(*routes), found) == number


@pytest.mark.parametrize(("cores", "number"), [(1, 1), (2, 1), (3, 2), (8, 3), (None, 1)])
def test_one_core_is_left_for_the_host(cores, number, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert number_for(routed(("misbehaving-gil", {})), found) == number
