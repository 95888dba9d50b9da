"""A bad plugin costs its own tables a fallback move, and nobody else anything."""

import itertools
import linecache
import threading
import time

import msgspec
import pytest
import structlog

from bothost import rules
from bothost.config import RouteSettings
from bothost.host import supervisor
from bothost.host.account_tables import AccountTables
from bothost.host.plans import Plans
from bothost.plugins import Plugins
from bothost.strategy import Decision
from bothost.tables.games import Games
from bothost.tables.router import Router
from bothost.testing import misbehaving
from bothost.testing.hosting import RandomStrategy, module

BAD = "misbehaving-"


def routes(bad, **options):
    """One account plays the bad strategy, the others a sound one."""
    return (
        RouteSettings(account="ada", strategy=BAD + bad, fallback="test-random", options=options),
        RouteSettings(strategy="test-random"),
    )


SHORT = {"grant_ms": 1200, "margin_ms": 600.0}
"""A decision that hangs costs half a second, and a busy machine has the margin to answer for it."""
LAG_MS = 1000
"""How much longer the lobby waits for a busy machine: less than a decision hangs."""


async def play(kit, bad, *, decisions=40, grant_ms=10_000, game="doudizhu", options=None, **settings):
    """Three accounts at several tables until the bad one had to answer often enough; returns the host."""
    async with kit.lobby(grant_ms=grant_ms, bank_ms=0, lag_ms=LAG_MS):
        made = kit.settings(wishes=(game,), routes=routes(bad, **(options or {})), **settings)
        async with kit.running(made, misbehaving) as host:
            await kit.until(lambda: host.runner.counters.decisions >= decisions)
    return host


def rows_by_strategy(kit):
    return dict(kit.rows("SELECT strategy, count(*) FROM decisions GROUP BY strategy"))


def never_missed_a_deadline(kit):
    assert kit.count("outcomes WHERE kind IN ('server_acted', 'rejected')") == 0


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("crash", "error"),
        ("exit", "error"),
        ("panic", "error"),
        ("player", "error"),
        ("init", "error"),
        ("illegal", "illegal"),
        ("no-decision", "error"),
        ("fraction", "error"),
    ],
)
async def test_a_strategy_that_fails_is_replaced_by_the_fallback_and_quarantined_for_new_tables(kit, bad, reason):
    host = await play(kit, bad)
    fallbacks = host.runner.counters.fallbacks
    assert fallbacks[reason] >= 3
    assert set(fallbacks) <= {reason, "quarantined"}
    assert any(loaded.quarantined_until for loaded in host.plans.loaded if loaded.name == BAD + bad)
    assert kit.count(f"decisions WHERE strategy = '{BAD}{bad}'") == 0
    assert kit.count("decisions WHERE strategy = 'test-random' AND fallback IS NULL") > 0
    never_missed_a_deadline(kit)


async def test_the_log_names_the_line_that_raised(kit):
    with structlog.testing.capture_logs() as logs:
        await play(kit, "crash", decisions=10)
    (failed, *_) = [line for line in logs if line["event"] == "fallback_decided"]
    file, _, line = failed["at"].partition(":")
    assert file == "misbehaving.py" and "raise RuntimeError" in linecache.getline(misbehaving.__file__, int(line))


async def test_each_failure_is_one_line_of_the_log_and_many_are_counted(kit):
    """Its open tables ask it again and again, and their other decisions are no news."""
    with structlog.testing.capture_logs() as logs:
        async with kit.lobby(grant_ms=10_000, bank_ms=0):
            made = kit.settings(wishes=("doudizhu",), routes=routes("crash"))
            async with kit.running(made, misbehaving) as host:
                host.plans.reload(host.plans.router, quarantine_after=10**6, quarantine_s=60.0)
                await kit.until(lambda: host.runner.counters.fallbacks["error"] >= 60)
    failed = [line for line in logs if line.get("strategy") == BAD + "crash" and line["log_level"] == "warning"]
    told = [line for line in failed if line["event"] == "fallback_decided"]
    assert 10 <= len(told) <= 30 and {(line["link"], line["reason"]) for line in told} == {("fallback", "error")}
    left_out = [line["lines"] for line in failed if line["event"] == "failures_left_out"]
    assert left_out[0] == 1 and len(left_out) == 2 and sum(left_out) + len(told) >= 60
    assert len(failed) == len(told) + len(left_out)


def test_a_quarantine_is_lifted_by_itself():
    now = [1000.0]
    found = Plugins.load(entry_points=False, modules=[module("given", RandomStrategy), misbehaving])
    router = Router([RouteSettings(strategy=BAD + "crash", fallback="test-random")], found.strategies.__contains__)
    plans = Plans(router, found, quarantine_after=3, quarantine_s=60.0, clock=lambda: now[0])

    def plan():
        return plans.plan("home", "ada", rules.game("claims"), {})

    bad = plan().strategy
    for _ in range(2):
        for _ in range(3):
            assert plan().strategy.name == BAD + "crash" and plan().reason is None
            plans.failed(bad, "error")
        assert plan().strategy.name == "test-random" and plan().reason == "quarantined"
        now[0] += 59.9
        assert plan().reason == "quarantined"
        now[0] += 0.2
    plans.failed(bad, "error")
    plans.failed(bad, "error")
    now[0] += 60.1  # these are forgotten
    plans.failed(bad, "error")
    assert plan().strategy.name == BAD + "crash"


def test_levels_that_tables_ask_for_and_nothing_has_do_not_pile_up():
    found = Plugins.load(entry_points=False, modules=[module("given", RandomStrategy)])
    router = Router([RouteSettings(strategy="test-random", level="table")], found.strategies.__contains__)
    plans = Plans(router, found, quarantine_after=3, quarantine_s=60.0)
    for number in range(1200):
        plan = plans.plan("home", "ada", rules.game("claims"), {"level": f"no-{number}"})
        assert plan is not None and plan.strategy.name == "test-random"
    assert len(plans.reported) <= 1001


@pytest.mark.parametrize("execution", ["thread", "inline"])
async def test_a_strategy_that_hangs_costs_its_tables_a_fallback_and_its_thread(kit, monkeypatch, execution):
    monkeypatch.setattr(misbehaving.Hang, "execution", execution)
    host = await play(kit, "hang", decisions=60, options={"seconds": 3.0}, tables=2, **SHORT)
    fallbacks = host.runner.counters.fallbacks
    assert fallbacks["late"] >= 1 and set(fallbacks) <= {"late", "quarantined"}
    assert len(host.runner.workers.abandoned) <= 2, "a strategy that hangs must not eat a thread per decision"
    never_missed_a_deadline(kit)


async def test_a_strategy_that_hangs_in_the_shared_worker_delays_nobody_else(kit):
    """poke-env#590: a synchronous policy blocked every battle."""
    hangs, returns = threading.Event(), threading.Event()

    class Blocks(misbehaving.Misbehaving):
        name = BAD + "inline"
        execution = "inline"

        def misbehave(self, view, legal, good):
            hangs.set()
            returns.wait()
            return good

    async with kit.lobby(grant_ms=600_000):  # no deadline ends the wait of the others
        made = kit.settings(wishes=("pairing",), routes=routes("inline"), accounts=4, tables=2)
        async with kit.running(made, kit.module("blocking", Blocks)) as host:
            try:
                await kit.until(hangs.is_set)
                before = host.runner.counters.decisions
                await kit.until(lambda: host.runner.counters.decisions >= before + 60)
            finally:
                returns.set()
    assert not host.runner.counters.fallbacks
    never_missed_a_deadline(kit)


async def test_a_slow_inline_strategy_gets_a_thread_of_its_own(kit):
    class Sleeps(misbehaving.Slow):
        name = BAD + "sleeps"
        execution = "inline"

    plugin = kit.module("sleeping", Sleeps)
    async with kit.lobby():
        made = kit.settings(routes=routes("sleeps", seconds=0.2), tables=2, accounts=4, wishes=("pairing",))
        async with kit.running(made, misbehaving, plugin) as host:
            await kit.until(lambda: [loaded.name for loaded in host.runner.workers.pools.own] == [BAD + "sleeps"])
            Sleeps.misbehave = misbehaving.Misbehaving.misbehave  # its hands end sooner
    assert not host.runner.counters.fallbacks
    assert kit.count(f"decisions WHERE strategy = '{BAD}sleeps'") > 0
    never_missed_a_deadline(kit)


async def test_a_policy_that_changes_its_view_or_returns_nonsense_arrays_does_no_harm(kit):
    await play(kit, "policy", decisions=30)
    assert kit.count("decisions WHERE length(policy) % 4 != 0") == 0
    never_missed_a_deadline(kit)


async def test_statistics_that_are_no_json_cost_no_move_and_the_log_says_why(kit):
    endless = {}
    endless["again"] = endless

    class Cyclic(misbehaving.Misbehaving):
        name = BAD + "cyclic"

        def misbehave(self, view, legal, good):
            return Decision(action=good.action, stats=endless, value=10**400, values=[10**400] * len(legal))

    async with kit.lobby(grant_ms=10_000, bank_ms=0):
        settings = kit.settings(routes=routes("cyclic"), wishes=("pairing",), accounts=2)
        async with kit.running(settings, kit.module("cyclic", Cyclic)) as host:
            await kit.until(lambda: host.runner.counters.hands >= 4)
    never_missed_a_deadline(kit)
    assert (
        kit.count(f"decisions WHERE strategy = '{BAD}cyclic' AND value IS NULL AND stats LIKE '%RecursionError%'") > 0
    )


async def test_statistics_that_are_too_long_are_not_logged(kit):
    class Wordy(misbehaving.Misbehaving):
        name = BAD + "wordy"

        def misbehave(self, view, legal, good):
            return Decision(action=good.action, stats={"reason": "x" * (1 << 20)})

    async with kit.lobby(grant_ms=10_000, bank_ms=0):
        settings = kit.settings(routes=routes("wordy"), wishes=("pairing",), accounts=2)
        async with kit.running(settings, kit.module("wordy", Wordy)) as host:
            await kit.until(lambda: host.runner.counters.hands >= 1)
    assert kit.count(f"decisions WHERE strategy = '{BAD}wordy' AND stats LIKE '%more than 1048576%'") > 0
    assert kit.count("decisions WHERE length(stats) > 1000") == 0


class Faulty:
    """A game, or its view, as a plugin may make it: after a while one method raises."""

    def __init__(self, of, method, after):
        self._of, self._method, self._left = of, method, after

    def __getattr__(self, name):
        if name != self._method:
            return getattr(self._of, name)
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("a bug in a game")
        return getattr(self._of, name)

    def new_view(self, seat):
        return Faulty(self._of.new_view(seat), self._method, self._left)

    def view_from_snapshot(self, view):
        return Faulty(self._of.view_from_snapshot(view), self._method, self._left)

    def clone(self):
        return Faulty(self._of.clone(), self._method, self._left)


@pytest.mark.parametrize(("method", "after"), [("observe_all", 2), ("legal", 1), ("to_bytes", 1), ("is_legal", 0)])
async def test_a_game_that_raises_costs_its_own_table_and_no_other_of_the_connection(kit, monkeypatch, method, after):
    faulty = []

    class OfTheHost(Games):
        def make(self, name, options):
            made = super().make(name, options)
            faulty.append(name)
            return Faulty(made, method, after) if len(faulty) == 1 else made

    monkeypatch.setattr(supervisor, "Games", OfTheHost)
    async with kit.lobby(grant_ms=3000, bank_ms=0):
        settings = kit.settings(wishes=("pairing",), accounts=2, tables=3)
        with structlog.testing.capture_logs() as logs:
            async with kit.running(settings) as host:
                await kit.until(lambda: host.runner.counters.hands >= 12)
                assert [account.connection.reconnects for account in host.accounts] == [0, 0]
    (failed,) = [line for line in logs if line["event"] == "table_failed"]
    assert failed["game"] == "pairing" and failed["exc_info"]


async def test_tables_that_fail_one_after_another_are_sought_ever_more_slowly(kit, monkeypatch):
    failed, made, fail = [], Games.make, AccountTables.fail
    monkeypatch.setattr(Games, "make", lambda games, *of: Faulty(made(games, *of), "legal", 0))
    monkeypatch.setattr(AccountTables, "fail", lambda *of: failed.append(time.monotonic()) or fail(*of))
    monkeypatch.setattr("random.Random.uniform", lambda self, low, high: high)
    kit.timeouts = msgspec.structs.replace(kit.timeouts, seek_s=60.0)
    async with (
        kit.lobby(robots_after_s=0.0),
        kit.running(kit.settings(wishes=("pairing",), accounts=1), drain=False) as host,
    ):
        await kit.until(lambda: [account.tick(time.monotonic()) for account in host.accounts] and len(failed) >= 4)
    for (before, after), pause in zip(itertools.pairwise(failed), (0.3, 0.5, 0.9), strict=False):
        assert after - before >= pause  # no upper limit: the machine may be slow


class Mute(Exception):
    """An error whose message raises."""

    def __str__(self):
        return self.args[5]

    __repr__ = __str__


async def test_an_error_that_cannot_be_shown_ends_no_thread(kit):
    class Mutters(misbehaving.Misbehaving):
        name = BAD + "mute"
        execution = "inline"

        def decide_many(self, requests):
            raise Mute

        def misbehave(self, view, legal, good):
            raise Mute

    heard = []

    def bothost_table_closed(event):
        heard.append(event)
        raise Mute

    plugin = kit.module("mute", Mutters, bothost_table_closed=bothost_table_closed)
    async with kit.lobby(grant_ms=60_000, bank_ms=0):
        settings = kit.settings(routes=routes("mute"), wishes=("pairing",), accounts=2)
        async with kit.running(settings, plugin) as host:
            await kit.until(lambda: host.runner.counters.hands >= 6 and len(heard) >= 4)
    assert host.runner.counters.fallbacks["error"] >= 3
    never_missed_a_deadline(kit)


async def test_a_thread_that_comes_back_is_counted_out(kit):
    host = await play(kit, "hang", decisions=30, options={"seconds": 1.0}, **SHORT)
    assert host.runner.counters.fallbacks["late"] >= 1
    loaded = next(item for item in host.plans.loaded if item.name == BAD + "hang")
    await kit.until(lambda: not loaded.hung)


async def test_hooks_hear_of_tables_and_decisions_and_their_failures_cost_nothing(kit):
    heard = []

    def bothost_table_opened(table):
        heard.append(("opened", table.seat, threading.current_thread().name))

    def bothost_decision_made(event):
        heard.append(("decision", event.seq, None))
        raise misbehaving.PanicException("a bad listener")

    def bothost_table_closed(event):
        heard.append(("closed", event.scores, None))

    listener = kit.module(
        "listener",
        bothost_table_opened=bothost_table_opened,
        bothost_decision_made=bothost_decision_made,
        bothost_table_closed=bothost_table_closed,
    )
    with structlog.testing.capture_logs() as logs:
        async with kit.lobby(), kit.running(kit.settings(), listener) as host:
            await kit.until(lambda: host.runner.counters.hands >= 3)
    kinds = [kind for kind, *_ in heard]
    decisions = host.runner.counters.decisions
    assert kinds.count("decision") == decisions
    times = [line["times"] for line in logs if line["event"] == "hook_failed"]
    assert times == [2**nth for nth in range(decisions.bit_length())]
    assert kinds.count("opened") == kinds.count("closed") == host.runner.counters.hands
    assert kinds[0] == "opened"
    assert {thread for kind, _, thread in heard if kind == "opened"} == {"hooks"}


async def test_finished_games_are_released(kit):
    """poke-env#590: finished games leaked."""
    import gc

    from bothost.tables.hand import Hand
    from bothost.tables.session import Session

    async with kit.lobby(), kit.running(kit.settings(tables=2)) as host:
        await kit.until(lambda: host.runner.counters.hands >= 40)
        gc.collect()
        alive = [item for item in gc.get_objects() if type(item) in (Hand, Session)]  # isinstance wakes lazy objects
        live = sum(len(account.tables.sessions) for account in host.accounts)
        for kind in (Session, Hand):
            assert len([item for item in alive if type(item) is kind]) <= 2 * live + 20
