"""Two hosts on one database: an account is connected once, whatever happens to the hosts."""

import asyncio
import contextlib
import os
import random
import signal
import threading
import time
import types

import httpx
import msgspec
import pytest
import structlog
from websockets.asyncio.client import connect

import bothost.lobbies
from bothost.config import AccountSettings, MetricsSettings, Secret, WishSettings
from bothost.errors import StoreUnavailable
from bothost.host.account import Timeouts
from bothost.host.control import HostRunning
from bothost.host.leases import Identity, Keeper
from bothost.host.memory import StoreMemory
from bothost.host.memos import MemoWriter
from bothost.host.metrics_server import serving
from bothost.host.recorder import now_us
from bothost.host.status import status_of
from bothost.host.supervisor import Host
from bothost.lobbies.embedded import EmbeddedLobby
from bothost.lobbies.embedded import protocol as wire
from bothost.plugins import Plugins
from bothost.store import DecisionLog, Store
from bothost.store.leases import LeaseRound, Leases
from bothost.testing.fake_lobby import FakeLobby
from bothost.testing.sample_rows import sample_hand

TTL_S = 1.0
change = msgspec.structs.replace


class Pair:
    """Hosts with leases on the kit's database."""

    def __init__(self, kit, ttl_s=TTL_S):
        self.kit, self.ttl_s, self.lobbies, self.timeouts = kit, ttl_s, bothost.lobbies, None

    def host(self, name, lobby_settings=None, **settings):
        kit = self.kit
        made = kit.settings(**settings)
        if lobby_settings is not None:
            made = change(made, lobbies=(change(made.lobbies[0], **lobby_settings),))
        found = Plugins.load(entry_points=False, modules=[self.lobbies, kit.random])
        store = Store.open(made.store)
        log = DecisionLog.open(made.store, name, kit.folder / "spool")
        keeper = Keeper(Leases(store, name, self.ttl_s), round_s=0.05)
        memory, options = StoreMemory(store), {"connection": kit.fast, "timeouts": self.timeouts, "leases": keeper}
        return Host(made, found, log, memory, config_hash="0" * 8, **options)

    @contextlib.asynccontextmanager
    async def running(self, name, **settings):
        host = self.host(name, **settings)
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            host.interrupt()
            if not host.draining:
                host.interrupt()
            await asyncio.wait_for(task, 90)


@pytest.fixture
def pair(kit):
    return Pair(kit)


def connected(host):
    return {account.name for account in host.accounts if account.connection.connected}


def give_leases(kit, to):
    """Another host takes all leases, for a minute."""
    with Store.open(kit.store_settings) as store, store.begin() as connection:
        connection.exec_driver_sql(f"UPDATE leases SET holder = '{to}', expires_us = expires_us + 60000000")


async def test_two_hosts_never_connect_the_same_account_and_the_second_takes_over_when_the_first_ends(kit, pair):
    pair.ttl_s = 60.0
    async with kit.lobby() as server, pair.running("second") as second:
        await kit.until(lambda: len(connected(second)) == 3)
        async with pair.running("first") as first:
            await kit.until(lambda: {account.place.waiting for account in first.accounts} == {"second"})
            for _ in range(50):
                await asyncio.sleep(0.01)
                assert connected(first) & connected(second) == set()
            assert connected(first) == set()
            assert "second holds its lease" in status_of(first)["accounts"][0]["problem"]
            async with serving(first, MetricsSettings(port=0)) as port, httpx.AsyncClient() as client:
                ready = await client.get(f"http://127.0.0.1:{port}/healthz")
                assert (ready.status_code, ready.json()["connected"], ready.json()["waiting"]) == (200, 0, 3)
                shown = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
                assert 'bothost_waiting{account="ada",lobby="home"} 1.0' in shown
            second.drain()
            await kit.until(lambda: len(connected(first)) == 3)
            assert connected(second) == set()
            hands = first.runner.counters.hands
            await kit.until(lambda: first.runner.counters.hands >= hands + 3)
    assert server.lobby.playing.hands_played >= 1
    assert kit.count("leases") == 0, "all are released"
    assert kit.count("game_ends") == kit.count("games")


async def test_who_loses_its_lease_disconnects_and_leaves_its_tables_to_the_other(kit, pair):
    async with kit.lobby(grant_ms=60_000), pair.running("first", min_move_ms=20.0) as first:
        await kit.until(lambda: first.runner.counters.decisions >= 3)
        give_leases(kit, "other")
        await kit.until(lambda: all(account.place.waiting == "other" for account in first.accounts))
        assert not connected(first) and not any(account.tables.sessions for account in first.accounts)
        assert first.seated == {} and first.capacity.used == 0
        assert kit.count("games") > kit.count("game_ends"), "the hands are not over: the other host plays them"
        Leases(Store.open(kit.store_settings), "other", 60).release([account.place.lease for account in first.accounts])
        await kit.until(lambda: first.runner.counters.hands >= 3)
    assert kit.count("games") == kit.count("game_ends")


async def test_a_host_with_one_account_waits_for_its_lease_and_does_not_end(kit, pair):
    """It keeps the operator's pause, and what was reloaded while it was made again."""
    async with kit.lobby(grant_ms=60_000), pair.running("first", accounts=1) as first:
        await kit.until(lambda: connected(first))
        (before,) = first.accounts
        before.seeking.pause()
        give_leases(kit, "other")
        await kit.until(lambda: first.accounts[0] is not before)
        (account,) = first.accounts
        await kit.until(lambda: account.place.waiting == "other")
        assert account.seeking.paused and not account.finished


async def test_who_takes_over_has_the_memo_of_the_last_holder_and_closes_its_lost_hands(kit, pair):
    """The second host has waited since before the first remembered and played anything."""
    pair.timeouts = Timeouts(confirm_s=0.2)
    async with FakeLobby({"ada": "adaadaada"}) as lobby:
        kit.url = lobby.url
        with Store.open(kit.store_settings) as store:
            Leases(store, "first", 60).round((), [("home", "ada")], take_over=False)
            async with pair.running("second", accounts=1) as second:
                await kit.until(lambda: second.accounts and second.accounts[0].place.waiting == "first")
                store.remember("home", "ada", {"session": "of the first"})
                lost = sample_hand(random.Random(3), ended=False, account="ada")
                lost[0] = change(lost[0], started_us=now_us())
                await second.log.submit(lost)
                Leases(store, "first", 60).release([("home", "ada")])
                await kit.until(lambda: kit.count("game_ends WHERE reason = 'aborted'") == 1)
        hello = next(frame.data for frame in lobby.frames if frame.direction == "in")
        assert wire.decode_client(hello).session == "of the first"


async def test_a_refused_account_is_free_for_a_host_with_the_right_token(kit, pair):
    def with_token(token):
        wishes = (WishSettings(game="doudizhu"),)
        refused = AccountSettings(name="ada", token=Secret(token, "test"), wishes=wishes)
        return {"accounts": (refused, AccountSettings(name="bob", token=Secret("bobbobbob", "test"), wishes=wishes))}

    pair.ttl_s = 60.0
    async with kit.lobby(), pair.running("first", lobby_settings=with_token("wrong")) as first:
        await kit.until(lambda: connected(first) == {"bob"} and first.accounts[0].refused)
        async with pair.running("second", lobby_settings=with_token("adaadaada")) as second:
            await kit.until(lambda: connected(second) == {"ada"})
            assert set(kit.rows("SELECT account, holder FROM leases")) == {("ada", "second"), ("bob", "first")}
            assert connected(first) == {"bob"} and first.accounts[0].problem.startswith("login refused")


async def test_a_hand_that_is_looked_up_while_its_lease_is_lost_is_not_opened(kit, pair, monkeypatch):
    asked, go_on = threading.Event(), threading.Event()

    def find(memory, keys):
        asked.set()
        assert go_on.wait(20)
        return [None] * len(keys)

    async with kit.lobby(grant_ms=60_000):
        first = pair.host("first", min_move_ms=20.0)
        running = asyncio.create_task(first.run())
        await kit.until(lambda: first.runner.counters.decisions >= 3)
        first.quit()
        await asyncio.wait_for(running, 90)
        games = kit.count("games")
        monkeypatch.setattr(StoreMemory, "find", find)
        async with pair.running("first") as again:
            await kit.until(asked.is_set)
            give_leases(kit, "other")
            await kit.until(lambda: all(account.place.waiting == "other" for account in again.accounts))
            go_on.set()
            await asyncio.sleep(0.3)
    assert kit.count("games") == games


class TwoConnections(EmbeddedLobby):
    """A lobby that allows an account two connections."""

    name = "two"
    capabilities = msgspec.structs.replace(EmbeddedLobby.capabilities, connections_per_identity=2)


async def test_where_the_lobby_allows_several_connections_another_host_takes_the_account_at_once(kit, pair):
    pair.lobbies = kit.module("two", bothost_lobbies=lambda: [TwoConnections])
    pair.ttl_s = 30.0
    tokens = {"ada": "aaa", "ada-too": "bbb", "ada-three": "ccc"}  # the embedded lobby itself allows but one

    def as_ada(token):
        account = AccountSettings(
            name="ada", token=Secret(token, "test"), tables=2, wishes=(WishSettings(game="othello"),)
        )
        return {"adapter": "two", "accounts": (account,)}

    async with FakeLobby(tokens, robots=True) as lobby, contextlib.AsyncExitStack() as stack:
        kit.url = lobby.url
        first = await stack.enter_async_context(contextlib.AsyncExitStack())
        one = await first.enter_async_context(pair.running("one", lobby_settings=as_ada("aaa")))
        await kit.until(lambda: one.runner.counters.decisions > 3)
        two = await stack.enter_async_context(pair.running("two", lobby_settings=as_ada("bbb")))
        await kit.until(lambda: two.runner.counters.decisions > 3)
        assert connected(one) == connected(two) == {"ada"}
        assert set(kit.rows("SELECT account, holder FROM leases")) == {("ada", "one"), ("ada#2", "two")}
        three = await stack.enter_async_context(pair.running("three", lobby_settings=as_ada("ccc")))
        await kit.until(lambda: three.accounts and three.accounts[0].place.waiting)
        await asyncio.sleep(0.3)
        assert not connected(three), "the lobby allows two"
        await first.aclose()
        await kit.until(lambda: three.runner.counters.decisions > 3)
        assert set(kit.rows("SELECT account, holder FROM leases")) == {("ada", "three"), ("ada#2", "two")}


async def test_an_outage_of_the_database_costs_no_connection(kit, pair, monkeypatch):
    async with kit.lobby(), pair.running("first") as first:
        await kit.until(lambda: len(connected(first)) == 3)
        reconnects = [account.connection.reconnects for account in first.accounts]

        def away(leases, held, wanted, *, take_over):
            raise StoreUnavailable("away")

        with monkeypatch.context() as outage:
            outage.setattr(Leases, "round", away)
            await asyncio.sleep(1.5 * TTL_S)
            assert len(connected(first)) == 3
        await asyncio.sleep(0.5)
        assert [account.connection.reconnects for account in first.accounts] == reconnects
        assert kit.count("leases") == 3


async def test_a_host_that_cannot_reach_the_database_leaves_its_hands_to_the_host_that_takes_over(
    kit, pair, monkeypatch
):
    """The lobby reports the take-over first. The host waits, and ends no hand that the other continues."""
    real, cut = Leases.round, asyncio.Event()

    def partitioned(leases, held, wanted, *, take_over):
        if cut.is_set() and leases.holder == "first":
            raise StoreUnavailable("away")
        return real(leases, held, wanted, take_over=take_over)

    monkeypatch.setattr(Leases, "round", partitioned)
    async with kit.lobby(grant_ms=60_000), pair.running("first", min_move_ms=20.0) as first:
        await kit.until(lambda: first.runner.counters.decisions >= 3)
        async with pair.running("second", min_move_ms=20.0) as second:
            cut.set()
            await kit.until(lambda: len(connected(second)) == 3 and second.runner.counters.hands >= 3)
            assert all(account.contested for account in first.accounts)
            cut.clear()
            await kit.until(lambda: {account.place.waiting for account in first.accounts} == {"second"})
    assert kit.rows("SELECT DISTINCT reason FROM game_ends") == [("normal",)]


async def test_an_account_whose_place_another_client_took_is_given_up(kit, pair):
    async with kit.lobby() as server, pair.running("first", accounts=2, wishes=()) as first:
        await kit.until(lambda: len(connected(first)) == 2)
        async with connect(server.url) as client:
            await client.send(wire.encode(wire.Hello(wire.VERSION, "adaadaada", "another client", "", {})).decode())
            await kit.until(lambda: first.accounts[0].finished)
            assert connected(first) == {"bob"}


async def test_a_host_that_cannot_write_leases_at_its_start_says_why_it_does_not_connect(kit, pair, monkeypatch):
    """As with a full disk: the database can be read."""

    def full(leases, held, wanted, *, take_over):
        raise StoreUnavailable("the disk is full")

    async with kit.lobby():
        with monkeypatch.context() as outage, structlog.testing.capture_logs() as logs:
            outage.setattr(Leases, "round", full)
            async with pair.running("first") as first:
                await kit.until(lambda: "no account is connected: the disk is full" in status_of(first)["health"])
                outage.undo()
                await kit.until(lambda: len(connected(first)) == 3)
                assert not any(account["problem"] for account in status_of(first)["accounts"])
    assert [entry["error"] for entry in logs if entry["event"] == "leases_not_renewed"] == ["the disk is full"]


class Script:
    """A lease book that says what it is told to."""

    holder, ttl_s = "me", 0.3

    def __init__(self):
        self.away, self.asked = False, []

    def round(self, held, wanted, *, take_over):
        if self.away:
            raise StoreUnavailable("away")
        self.asked.append(take_over)
        return LeaseRound(frozenset(held), frozenset(), dict.fromkeys(wanted, "other"))

    def release(self, keys):
        pass


async def test_expired_leases_are_taken_over_only_after_reaching_the_database_for_a_whole_lease(monkeypatch):
    """After an outage of the database everybody's lease has expired: their holders come first."""
    now = 1000.0
    monkeypatch.setattr("bothost.host.leases.time", types.SimpleNamespace(monotonic=lambda: now))
    book = Script()
    keeper = Keeper(book)
    key = ("home", "ada")
    await keeper.round([key])
    now += 0.35
    await keeper.round([key])
    book.away = True
    await keeper.round([key])
    book.away = False
    await keeper.round([key])
    now += 0.35
    await keeper.round([key])
    await keeper.aclose()
    assert book.asked == [False, True, False, True]


async def test_a_lease_that_is_taken_while_the_host_ends_is_released():
    """Or another host would wait until it expires."""
    begun, go_on, released = threading.Event(), threading.Event(), []

    class Slow(Script):
        def round(self, held, wanted, *, take_over):
            begun.set()
            assert go_on.wait(10)
            return LeaseRound(frozenset(held), frozenset(wanted), {})

        def release(self, keys):
            released.extend(keys)

    keeper, key = Keeper(Slow()), ("home", "ada")
    taking = asyncio.create_task(keeper.round([key]))
    await asyncio.to_thread(begun.wait, 10)
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    go_on.set()
    await keeper.aclose()
    assert released == [key]


async def test_who_ends_releases_its_leases_when_all_is_written_that_the_next_holder_reads(kit, pair, monkeypatch):
    order = []

    def noted(owner, name):
        call = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *of: (call(*of), order.append(owner))[0])

    async with kit.lobby(), pair.running("first") as first:
        await kit.until(lambda: len(connected(first)) == 3)
        noted(Leases, "release")
        noted(MemoWriter, "close")
        noted(DecisionLog, "close")
        first.quit()
    assert order == [MemoWriter, DecisionLog, Leases]


def test_a_data_dir_has_one_host_which_is_known_again_after_a_restart(tmp_path):
    first = Identity.of(tmp_path, "host")
    with pytest.raises(HostRunning):
        Identity.of(tmp_path, "host")
    first.close()
    again = Identity.of(tmp_path, "host")
    assert again.holder == first.holder
    again.close()
    (tmp_path / "other").mkdir()
    other = Identity.of(tmp_path / "other", "host")
    assert other.holder != first.holder
    other.close()


def test_a_standby_waits_until_the_data_dir_is_free(tmp_path):
    first, taken = Identity.of(tmp_path, "host"), threading.Event()

    def wait():
        second = Identity.of(tmp_path, "host", wait=True)
        assert second.holder == first.holder
        taken.set()
        second.close()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not taken.wait(0.1)
    first.close()
    assert taken.wait(30.0)
    waiting.join()


async def test_after_kill_9_another_host_takes_over_when_the_lease_has_expired(kit, pair, killable):
    names = ("ada", "bob", "cyd")
    async with FakeLobby({name: name * 3 for name in names}, grant_ms=60_000, hands=2) as lobby:
        kit.url = lobby.url
        async with killable(lobby) as start:
            victim = await start()
            await lobby.until(lambda: len(lobby.frames) > 60, 60)
            os.kill(victim, signal.SIGKILL)
            with Store.open(kit.store_settings) as store, store.begin() as connection:
                # its lease of 15 s, as if most of it had passed
                connection.exec_driver_sql("UPDATE leases SET expires_us = expires_us - 12000000")
            began, ((expires_us,),) = time.monotonic(), kit.rows("SELECT max(expires_us) FROM leases")
            async with pair.running("heir") as heir:
                await kit.until(lambda: connected(heir))
                assert now_us() >= expires_us and time.monotonic() - began >= TTL_S
                await kit.until(lambda: len(connected(heir)) == 3 and heir.runner.counters.hands >= 3)
