"""SIGHUP: a valid configuration is loaded for new tables, any other changes nothing and is explained."""

import asyncio
import os
import signal
import threading
from collections import Counter

import msgspec
import pytest

from bothost import Decision, Player, Strategy, config
from bothost.config import LimitSettings, MannersSettings, RouteSettings, Secret, WishSettings
from bothost.errors import ConfigError
from bothost.host import launch, reload
from bothost.host.memory import StoreMemory
from bothost.plugins import Plugins

change = msgspec.structs.replace


class First(Player):
    def decide(self, view, legal, budget):
        return Decision(action=int(legal[0]))


class FirstStrategy(Strategy):
    name, version, games = "test-first", "1", ("*",)

    def player(self, table):
        return First()


def with_account(settings, **changes):
    lobby = settings.lobbies[0]
    accounts = tuple(change(account, **changes) for account in lobby.accounts)
    return change(settings, lobbies=(change(lobby, accounts=accounts),))


async def test_new_tables_have_the_new_route_and_the_new_wishes_and_live_hands_end_as_they_began(kit):
    async with kit.lobby() as server:
        settings = kit.settings()
        async with kit.running(settings, kit.module("more", FirstStrategy)) as host:
            await kit.until(lambda: host.runner.counters.hands >= 3)
            new = change(settings, routes=(RouteSettings(strategy="test-first"),), limits=LimitSettings(tables=2))
            new = with_account(new, wishes=(WishSettings(game="pairing"),), tables=2)
            playing = {
                s.hand.game_id: s.hand.actor.plan.strategy.name
                for a in host.accounts
                for s in a.tables.sessions.values()
                if s.hand
            }
            before = host.config_hash
            assert await reload.apply(host, lambda: new)
            assert host.capacity.cap == 2 and {account.slots.cap for account in host.accounts} == {2}
            await kit.until(lambda: kit.count("games WHERE strategy = 'test-first' AND game = 'pairing'") >= 2)
            assert host.config_hash == config.config_hash(new) != before
        assert server.lobby.playing.hands_played >= 1
    for game_id, strategy in playing.items():
        found = kit.rows(f"SELECT DISTINCT strategy FROM decisions WHERE game_id = x'{game_id.hex()}'")
        assert found in ([(strategy,)], [])
    assert kit.count(f"decisions WHERE config_hash = '{config.config_hash(new)}'") > 0


async def test_accounts_that_are_still_made_get_the_reloaded_settings(kit, monkeypatch):
    asked, go_on = threading.Event(), threading.Event()

    def met(memory, *of):
        asked.set()
        assert go_on.wait(60)
        return Counter()

    monkeypatch.setattr(StoreMemory, "met", met)
    settings = with_account(kit.settings(accounts=1), manners=MannersSettings(hands_per_opponent_a_day=5))
    async with kit.lobby(), kit.running(settings) as host:
        await kit.until(asked.is_set)
        assert not host.accounts and await reload.apply(host, lambda: with_account(settings, tables=7))
        go_on.set()
        await kit.until(lambda: host.accounts)
        assert host.accounts[0].slots.cap == 7


@pytest.mark.parametrize(
    "why", [ConfigError("is wrong", key="limits.tables"), RuntimeError("a bug")], ids=["invalid", "bug"]
)
async def test_what_cannot_be_read_changes_nothing_and_is_explained(kit, why, capsys):
    def read():
        raise why

    async with kit.lobby(), kit.running(kit.settings()) as host:
        router, hashed = host.plans.router, host.config_hash
        assert not await reload.apply(host, read)
        assert host.plans.router is router and host.config_hash == hashed
    assert str(why) in capsys.readouterr().out


async def test_a_strategy_or_a_game_that_is_not_there_changes_nothing(kit, capsys):
    async with kit.lobby():
        settings = kit.settings()
        async with kit.running(settings) as host:
            router = host.plans.router
            routes = (RouteSettings(strategy="random", fallback="randm"), RouteSettings(strategy="nobody"))
            new = change(settings, routes=routes, limits=LimitSettings(tables=1))
            assert not await reload.apply(host, lambda: new)
            new = with_account(change(new, routes=settings.routes), wishes=(WishSettings(game="chess"),))
            assert not await reload.apply(host, lambda: new)
            assert host.plans.router is router and host.capacity.cap == 1000
    said = capsys.readouterr().out
    assert "route[0].fallback: there is no strategy 'randm'; route[1].strategy: there is no strategy 'nobody'" in said
    assert said.count("for a plugin that came after the start, restart the host") == 1  # config lint finds it
    assert "no game is called 'chess'" in said


async def test_a_host_does_not_start_with_a_wish_for_a_game_that_is_not_there(kit):
    settings = with_account(kit.settings(), wishes=(WishSettings(game="othelo"),))
    with pytest.raises(ConfigError, match=r"\.wish\[0\]\.game: no game is called 'othelo'") as caught:
        await kit.host(settings).run()
    assert "'othello'" in caught.value.advice


async def test_tables_play_on_while_a_strategy_is_loaded(kit, monkeypatch):
    """It may import for seconds, and its model's files are read to verify them."""
    async with kit.lobby():
        settings = kit.settings()
        async with kit.running(settings, kit.module("more", FirstStrategy)) as host:
            await kit.until(lambda: host.runner.counters.decisions)  # it resolves its routes as it starts
            resolve, loading, go_on = host.plugins.resolve, asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()

            def slowly(address, options):
                loop.call_soon_threadsafe(loading.set)
                assert go_on.wait(60)
                return resolve(address, options)

            monkeypatch.setattr(host.plugins, "resolve", slowly)
            new = change(settings, routes=(RouteSettings(strategy="test-first"),))
            reloading = asyncio.ensure_future(reload.apply(host, lambda: new))
            await loading.wait()
            decisions = host.runner.counters.decisions
            await kit.until(lambda: host.runner.counters.decisions > decisions + 3)
            assert not reloading.done()
            go_on.set()
            assert await reloading


def test_what_needs_a_restart_is_named_without_its_value(kit):
    kit.url = "ws://127.0.0.1:1/ws"
    old = kit.settings()
    lobby = old.lobbies[0]
    assert list(reload.needs_restart(old, old)) == []
    free = with_account(change(old, routes=(), limits=change(old.limits, tables=9)), tables=7)
    assert list(reload.needs_restart(old, free)) == []
    fewer = change(lobby, accounts=lobby.accounts[:2], url="ws://127.0.0.1:2/ws")
    new = change(old, lobbies=(fewer,), limits=change(old.limits, worker_threads=9), host=change(old.host, name="x"))
    assert set(reload.needs_restart(old, new)) == {
        "lobby home.account cyd",
        "lobby home.url",
        "limits.worker_threads",
        "host.name",
    }
    rotated = with_account(old, token=Secret("something-else", "test"))
    told = list(reload.needs_restart(old, rotated))
    assert "lobby home.account ada.token" in told and "something-else" not in str(told)


async def test_a_strategy_that_no_route_names_any_more_ends_with_its_last_hand(kit):
    """It may hold a model of gigabytes, or programs. A host that runs for months is reloaded often."""
    ended = []

    class Ends(FirstStrategy):
        name = "test-ends"

        def close(self):
            ended.append(self)

    async with kit.lobby():
        settings = change(
            kit.settings(), routes=(RouteSettings(strategy="test-ends"), RouteSettings(strategy="random"))
        )
        with_ends = Plugins.load(None, modules=[kit.module("ends", Ends)])
        async with launch.opened(settings, with_ends) as host:
            running = asyncio.create_task(host.run())
            await kit.until(lambda: kit.count("games WHERE strategy = 'test-ends'") >= 2)
            kept = change(settings, routes=(*reversed(settings.routes),))
            assert await reload.apply(host, lambda: kept)
            await asyncio.sleep(0.1)
            assert "test-ends" in {loaded.name for loaded in host.plans.loaded} and not ended
            without = change(settings, routes=settings.routes[1:])
            assert await reload.apply(host, lambda: without)
            await kit.until(lambda: ended)
            assert {loaded.name for loaded in host.plans.loaded} == {"random", "rule-doudizhu"}
            host.interrupt()
            await asyncio.wait_for(running, 90)
    assert len(ended) == 1


async def test_the_signal_reloads(kit, monkeypatch):
    async with kit.lobby():
        settings = change(kit.settings(), routes=(RouteSettings(strategy="random"),))
        new = change(settings, limits=LimitSettings(tables=5))
        async with launch.opened(settings, Plugins.load(None), read=lambda: new) as host:
            running = asyncio.create_task(host.run())
            await kit.until(lambda: host.runner.counters.hands >= 1)
            os.kill(os.getpid(), signal.SIGHUP)
            await kit.until(lambda: host.capacity.cap == 5)
            host.interrupt()
            await asyncio.wait_for(running, 90)
