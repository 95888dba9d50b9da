"""One thread that plays, without a host."""

import threading
import time
import types

import pytest
import structlog
from table_seat import Seat

from bothost.host.process import ProcessLimits
from bothost.host.worker import QueuedJob, Worker
from bothost.host.worker_pools import WorkerPools
from bothost.host.workers import Workers
from bothost.plugins.address import Resolved
from bothost.strategy import Decision, Table
from bothost.tables.actor import Actor, Loaded, Plan
from bothost.testing.hosting import RandomPlayer, RandomStrategy, until


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


class Stuck:
    """What a plugin's call waits for."""

    def __init__(self):
        self.entered, self.go_on = threading.Event(), threading.Event()

    def wait(self, *_):
        self.entered.set()
        assert self.go_on.wait(30)


def closing(stuck, job, workers):
    """``Player.close`` hangs."""
    job.hand.actor.player = RandomPlayer(1)
    job.hand.actor.player.close = stuck.wait
    job.hand.actor.slot = 1
    workers.close_hand(job.hand)


def after_the_last(stuck, job, workers):
    """``decide_many`` hangs after its last decision."""

    def decide_many(self, requests):
        yield 0, Decision(action=int(requests[0].legal[0]))
        stuck.wait()

    job.hand.actor.plan.strategy.resolved.strategy.decide_many = decide_many
    workers.submit(job)


def loading(stuck, job, workers):
    """The constructor hangs."""
    strategy = job.hand.actor.plan.strategy
    strategy.resolved.strategy.__init__ = stuck.wait
    workers.pools.warm(strategy)


def for_a_lost_table(stuck, job, workers):
    """``player`` hangs. Nobody reports that its table is late, because the connection is lost."""
    job.hand.actor.plan.strategy.resolved.strategy.player = stuck.wait
    workers.submit(job)


def workers_of_one_thread(posted):
    plans = types.SimpleNamespace(failed=lambda *_: None, quarantine=lambda *_: None)
    limits = ProcessLimits()
    return Workers(plans, posted.extend, threads=1, search_threads=1, processes=1, process_limits=limits, spares=None)


@pytest.mark.parametrize("hang", [closing, after_the_last, loading, for_a_lost_table])
async def test_a_thread_that_hangs_in_a_call_for_no_table_is_given_up_when_another_table_is_late(monkeypatch, hang):
    class Own(RandomStrategy):
        execution = "thread"

    class Others(RandomStrategy):
        execution = "thread"

    stuck, posted = Stuck(), []
    workers = workers_of_one_thread(posted)
    bad, good = (Loaded(Resolved(name, strategy, None)) for name, strategy in (("bad", Own), ("good", Others)))
    hang(stuck, task(bad, "bad").job, workers)
    try:
        await until(stuck.entered.is_set)
        late, next_one = task(good, "late").job, task(good, "next").job
        workers.submit(late)
        workers.late(late)
        assert not workers.abandoned, "the call still has time"
        with monkeypatch.context() as patch:
            patch.setattr("bothost.host.workers.time", types.SimpleNamespace(monotonic=lambda: time.monotonic() + 99))
            workers.late(late)
        assert list(workers.abandoned.values()) == [bad]
        workers.submit(next_one)
        await until(lambda: any(result.job is next_one for result in posted))
    finally:
        stuck.go_on.set()
        await workers.aclose()


async def test_an_inline_strategy_that_hangs_when_a_player_is_closed_delays_nobody_else():
    stuck, posted = Stuck(), []
    workers = workers_of_one_thread(posted)
    bad, good = (Loaded(Resolved(name, RandomStrategy, None)) for name in ("bad", "good"))
    closing(stuck, task(bad, "bad").job, workers)
    try:
        await until(stuck.entered.is_set)
        other = task(good, "other").job
        workers.submit(other)
        await until(lambda: [result.job for result in posted] == [other])
    finally:
        stuck.go_on.set()
        await workers.aclose()


def test_a_batch_of_an_async_function_is_named_and_decided_one_by_one():
    class Awaits(RandomStrategy):
        def player(self, table):
            return RandomPlayer(1)

        async def decide_many(self, requests):
            raise AssertionError

    loaded = Loaded(Resolved("awaits", Awaits, None))
    posted = []
    worker = Worker(
        "test", lambda _, results: posted.extend(results), lambda _: None, make=lambda _: Awaits(None, None)
    )
    with structlog.testing.capture_logs() as logs:
        worker.submit({loaded: [task(loaded, "one"), task(loaded, "two")]})
        worker.stop()
        worker.join(10)
    assert [result.decision is not None for result in posted] == [True, True]
    (failed,) = [entry for entry in logs if entry["event"] == "decide_many_failed"]
    assert failed["error"] == "TypeError: decide_many is an async function: write it with def, without async"


def test_a_batch_of_requests_that_are_all_withdrawn_is_not_decided():
    asked = []

    class Asked(RandomStrategy):
        def decide_many(self, requests):
            asked.append(requests)
            return []

    loaded = Loaded(Resolved("asked", Asked, None))
    withdrawn = task(loaded, "withdrawn")
    withdrawn.job.hand.drop_job()
    worker = Worker("test", lambda *_: None, lambda _: None, make=lambda _: Asked(None, None))
    worker.submit({loaded: [withdrawn]})
    worker.stop()
    worker.join(10)
    assert not asked


async def test_a_request_that_is_withdrawn_in_the_turn_in_which_it_came_reaches_no_worker():
    posted = []
    workers = workers_of_one_thread(posted)
    loaded = Loaded(Resolved("random", RandomStrategy, None))
    withdrawn, other = task(loaded, "withdrawn").job, task(loaded, "other").job
    try:
        workers.submit(withdrawn)
        workers.submit(other)
        withdrawn.hand.drop_job()
        await until(lambda: any(result.job is other for result in posted))
    finally:
        await workers.aclose()
    assert [result.job for result in posted] == [other] and withdrawn.hand.actor.player is None


def test_a_request_of_a_hand_that_is_over_does_not_make_a_forgotten_instance_again():
    """Nobody would close it: the memory of a model that an alias left behind would stay in use."""
    made, closed = [], []
    busy = Stuck()

    class Busy(RandomStrategy):
        def player(self, table):
            busy.wait()
            return RandomPlayer(1)

    class Closing(RandomStrategy):
        def close(self):
            closed.append(self)

    def make(loaded):
        made.append(loaded.resolved.strategy(None, None))
        return made[-1]

    pools = WorkerPools(
        lambda name: Worker(name, lambda _, results: None, lambda _: None, make=make),
        threads=1,
        search_threads=1,
        processes=1,
    )
    old, other = (Loaded(Resolved(strategy.__name__, strategy, None)) for strategy in (Closing, Busy))
    pools.warm(old)
    pools.inline.submit({other: [task(other, "other")]})
    assert busy.entered.wait(10)
    over = task(old, "over")
    pools.inline.submit({old: [over]})
    over.job.hand.drop_job()
    pools.forget(old)
    busy.go_on.set()
    for worker in pools:
        worker.stop()
        worker.join(10)
    assert closed == [one for one in made if type(one) is Closing] and len(made) == 2
