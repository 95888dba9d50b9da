"""One thread that plays, without a host."""

import threading
import time

import pytest
from table_seat import Seat

from bothost.host.worker import QueuedJob, Worker
from bothost.host.worker_pools import WorkerPools
from bothost.plugins.address import Resolved
from bothost.strategy import Decision, Table
from bothost.tables.actor import Actor, Loaded, Plan
from bothost.testing.hosting import RandomPlayer, RandomStrategy


def task(loaded, name, grant_ms=60_000.0):
    """A job for a worker, at a table of this name."""
    seat = Seat()
    seat.now = time.monotonic()
    job = seat.start().job(grant_ms=grant_ms)
    actor = job.hand.actor = Actor(Plan(loaded, None, None))
    actor.table = Table(lobby="l", table=name, game=seat.game, seat=seat.seat, seed=1)
    return QueuedJob(job, job.ticket)


def test_an_instance_that_was_only_being_made_when_its_thread_was_given_up_is_closed_after_all():
    """Nobody else knows it: a strategy's process would live on for as long as the host."""
    loaded, other = (Loaded(Resolved(name, RandomStrategy, None)) for name in ("loaded", "other"))
    making, go_on, back = threading.Event(), threading.Event(), threading.Event()
    closed = []

    class Closing(RandomStrategy):
        def close(self):
            closed.append(self)

    def make(wanted):
        if wanted is loaded:
            making.set()
            assert go_on.wait(10)
        return Closing(None, None)

    worker = Worker("test", lambda worker, results: None, lambda worker: back.set(), make=make)
    taken_over = worker.instances[other] = Closing(None, None)
    worker.submit({loaded: []})
    assert making.wait(10)
    worker.abandon(loaded)
    go_on.set()
    assert back.wait(10)
    assert closed == [worker.instances[loaded]] and taken_over not in closed
    worker.join(10)


def test_a_decision_does_not_wait_for_the_next_table_s():
    """A search of seconds at one table would make the quick decision of another late."""
    searches, done = threading.Event(), threading.Event()

    class Searches(RandomPlayer):
        def decide(self, view, legal, budget):
            searches.set()
            assert done.wait(30)
            return super().decide(view, legal, budget)

    class Searching(RandomStrategy):
        execution = "thread"

        def player(self, table):
            return RandomPlayer(1) if table.table == "quick" else Searches(1)

    loaded = Loaded(Resolved("searching", Searching, None))
    quick, slow = task(loaded, "quick"), task(loaded, "slow")
    posted, back = [], threading.Event()

    def post(worker, results):
        posted.extend(result.job for result in results)
        back.set()

    worker = Worker("test", post, lambda worker: None, make=lambda loaded: Searching(None, None))
    worker.submit({loaded: [quick, slow]})
    assert searches.wait(10) and back.wait(10) and posted == [quick.job]
    done.set()
    worker.stop()
    worker.join(10)
    assert posted == [quick.job, slow.job]


def test_of_a_batch_each_decision_is_used_as_it_comes_and_the_rest_is_decided_by_deadline():
    """Otherwise a quick one would be late, and the strategy would count as hanging."""
    done, back = threading.Event(), threading.Event()

    class AsTheyCome(RandomStrategy):
        def player(self, table):
            return RandomPlayer(1)

        def decide_many(self, requests):
            assert len(requests) == 3
            yield 2, Decision(action=int(requests[2].legal[0]))
            assert done.wait(30)
            raise RuntimeError("broken")

    loaded = Loaded(Resolved("as-they-come", AsTheyCome, None))
    quick, later, soon = (task(loaded, name, ms) for name, ms in (("quick", 60e3), ("later", 30e3), ("soon", 10e3)))
    posted, waiting = [], []

    def post(worker, results):
        posted.extend(result.job for result in results)
        waiting.append([each.job for each in worker.call.tasks])
        back.set()

    worker = Worker("test", post, lambda worker: None, make=lambda loaded: AsTheyCome(None, None))
    worker.submit({loaded: [quick, later, soon]})
    assert back.wait(10) and posted == [quick.job]
    done.set()
    worker.stop()
    worker.join(10)
    assert posted == [quick.job, soon.job, later.job]
    assert waiting[0] == [soon.job, later.job], "only these can be late now"


@pytest.mark.parametrize(("error", "reason"), [(RuntimeError("broken"), "error"), (TimeoutError("slow"), "late")])
def test_a_request_that_a_batch_reports_as_failed_is_not_asked_again(error, reason):
    class Reports(RandomStrategy):
        def player(self, table):
            return RandomPlayer(1)

        def decide_many(self, requests):
            yield 0, error
            yield 1, Decision(action=int(requests[1].legal[0]))

    loaded = Loaded(Resolved("reports", Reports, None))
    posted = []
    worker = Worker(
        "test", lambda _, results: posted.extend(results), lambda _: None, make=lambda _: Reports(None, None)
    )
    worker.submit({loaded: [task(loaded, "bad"), task(loaded, "good", 90e3)]})
    worker.stop()
    worker.join(10)
    bad, good = posted
    assert (bad.decision, bad.error, bad.cause) == (None, reason, error)
    assert good.decision is not None and good.error is None


def test_a_slow_strategy_keeps_its_worker_and_its_instance_when_it_is_warmed_again():
    """A reload warms every strategy: a second instance would hold up the others, and cost as much memory again."""
    made = []

    def make(loaded):
        made.append(loaded)
        return RandomStrategy(None, None)

    def start(name):
        return Worker(name, lambda _, results: None, lambda _: None, make=make)

    pools = WorkerPools(start, threads=1, search_threads=1, processes=1)
    slow = Loaded(Resolved("slow", RandomStrategy, None))
    pools.warm(slow)
    own = pools.inline
    pools.separate(slow)
    pools.warm(slow)
    assert pools.of(slow) == [own] and pools.inline is not own
    for worker in pools:
        worker.stop()
        worker.join(10)
    assert made == [slow]
