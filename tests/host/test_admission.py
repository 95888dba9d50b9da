"""What may run, and who may sit, at the same time."""

import threading
import time

import msgspec
import structlog

from bothost.config import RouteSettings
from bothost.messages import HandStarted, Seated, Snapshot
from bothost.strategy import Decision
from bothost.testing.hosting import RandomPlayer, RandomStrategy

change = msgspec.structs.replace


def searching():
    """(a strategy that occupies a core for each decision, how many of its decisions ran at once, as a list of one)."""
    lock, running, most = threading.Lock(), [0], [0]

    class SearchingPlayer(RandomPlayer):
        def decide(self, view, legal, budget) -> Decision:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.02)
            with lock:
                running[0] -= 1
            return super().decide(view, legal, budget)

    class Searching(RandomStrategy):
        name, execution, needs_search_thread = "searching", "thread", True

        def player(self, table):
            return SearchingPlayer(table.seed)

    return Searching, most


async def test_no_more_searches_run_than_there_are_search_threads_however_many_tables_ask(kit):
    strategy, most = searching()
    async with kit.lobby():
        made = kit.settings(wishes=("claims",), tables=4, accounts=4, routes=(RouteSettings(strategy="searching"),))
        made = change(made, limits=change(made.limits, search_threads=2, worker_threads=8))
        async with kit.running(made, kit.module("searches", strategy)) as host:
            await kit.until(lambda: host.runner.counters.decisions >= 40)
    assert most == [2]
    assert host.runner.counters.fallbacks == {}


async def test_own_accounts_do_not_meet_at_a_table_unless_they_are_allowed_to(kit):
    meetings = 'SELECT count(*) FROM (SELECT 1 FROM games GROUP BY "table", hand HAVING count(*) > 1)'
    async with kit.lobby(robots_after_s=0.1):
        async with kit.running(kit.settings(("claims",), allow_same_table=False)) as host:
            await kit.until(lambda: host.runner.counters.hands >= 4)
        assert kit.rows("SELECT account FROM games")  # of whichever account was seated first each time
        assert kit.rows(meetings)[0][0] == 0
        async with kit.running(kit.settings(("claims",), allow_same_table=True)) as host:
            await kit.until(lambda: host.runner.counters.hands >= 4)
        assert kit.rows(meetings)[0][0] > 0


async def test_a_table_that_no_route_matches_is_left_whatever_its_lobby_sends(kit):
    async with kit.lobby():
        settings = kit.settings(wishes=(), accounts=1, routes=(RouteSettings(strategy="test-random", game="othello"),))
        with structlog.testing.capture_logs() as logs:
            async with kit.running(settings) as host:
                await kit.until(lambda: [account.connection.connected for account in host.accounts] == [True])
                (account,) = host.accounts
                account.event(Seated("t", "claims", {}, 0), time.monotonic())
                assert "t" in account.tables.sessions
                account.event(Snapshot("t", "h", 0, {"no": "view"}), time.monotonic())
                assert "t" not in account.tables.sessions
    assert advice_of(logs) == ["add a route, or remove the wish"]


async def test_a_table_whose_strategy_is_in_quarantine_is_left_and_the_log_says_why(kit):
    async with kit.lobby():
        with structlog.testing.capture_logs() as logs:
            async with kit.running(kit.settings(wishes=(), accounts=1)) as host:
                await kit.until(lambda: [account.connection.connected for account in host.accounts] == [True])
                (account,), (strategy,) = host.accounts, host.plans.loaded
                host.plans.quarantine(strategy, "late")
                account.event(Seated("t", "pairing", {}, 0), time.monotonic())
                account.event(HandStarted("t", "h", 0), time.monotonic())
                assert "t" not in account.tables.sessions
    assert advice_of(logs) == ["its strategy is in quarantine or unavailable: set the route's fallback"]


def advice_of(logs):
    assert "table_failed" not in [line["event"] for line in logs]
    return [line["advice"] for line in logs if line["event"] == "no_strategy"]
