"""Bad nights at the lobby: dead sockets, restarts, lost frames, a clock of 0. No illegal move, no lost row."""

import asyncio
import contextlib
import re
import threading

import msgspec
import pytest

from bothost.config import RouteSettings
from bothost.errors import AuthError, LobbyUnreachable, StoreUnavailable
from bothost.host.connection import Connection
from bothost.host.memory import StoreMemory
from bothost.lobbies.base import Account
from bothost.lobbies.embedded import EmbeddedLobby
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server import ServerSettings, serve
from bothost.messages import Authenticate, AuthFailed, Connected, Resume, Seated, SocketClosed, SocketFailed
from bothost.testing.adapter_driver import AdapterDriver
from bothost.testing.fault_lobby import FaultLobby, Faults
from bothost.testing.hosting import RandomPlayer, RandomStrategy

TOKENS = {name: name * 3 for name in ("ada", "bob", "cyd")}


@contextlib.asynccontextmanager
async def faulty(kit, faults, *, accounts=3, game="doudizhu", tables=1, **lobby):
    async with FaultLobby(TOKENS, faults=faults, games=("doudizhu", "othello", "claims"), **lobby) as server:
        kit.url = server.url
        async with kit.running(kit.settings(accounts=accounts, wishes=(game,), tables=tables)) as host:
            yield server, host


async def plays_on(kit, host, hands):
    """Wait for so many hands more."""
    before = host.runner.counters.hands
    await kit.until(lambda: host.runner.counters.hands >= before + hands)


def every_move_has_its_row_and_none_was_illegal(kit, server):
    """What the lobby heard is what the log says, once."""
    heard = [act for name in TOKENS for act in server.said_by(name, wire.Act)]
    logged = {(request, notation) for request, notation in kit.rows("SELECT request_id, notation FROM decisions")}
    assert {(act.id, act.action) for act in heard} <= logged
    illegal = [r for name in TOKENS for r in server.sent_to(name, wire.Rejected) if r.reason == "illegal"]
    assert illegal == []
    assert kit.count("decisions") == kit.count("(SELECT DISTINCT game_id, seat, seq, substep, attempt FROM decisions)")


async def test_what_an_adapter_remembers_takes_the_place_of_what_it_did_before(kit):
    async with faulty(kit, Faults(), accounts=1) as (_, host):
        await kit.until(lambda: any(account.connection.connected for account in host.accounts))
        (account,) = host.accounts
        for memo in ({"table": "1", "hand": "2"}, {"table": "3"}, {}):
            account.remember(memo)
            assert account.memo() == memo
    assert [memo for (memo,) in kit.rows("SELECT memo FROM memos WHERE account = 'ada'")] == ["{}"]


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("drop_after", Faults(drop_after=8)),
        ("oversize_after", Faults(oversize_after=8)),
        ("silence_after", Faults(silence_after=8)),
        ("dead_after", Faults(dead_after=8)),
        ("restart_after", Faults(restart_after=8)),
    ],
)
async def test_a_connection_that_fails_in_the_middle_of_a_hand(kit, name, faults):
    async with faulty(kit, faults, grant_ms=3000) as (server, host):
        await kit.until(lambda: name in server.struck and host.runner.counters.hands >= 6)
        await kit.until(lambda: any(account.connection.reconnects for account in host.accounts))
        await kit.until(lambda: all(account.connection.connected for account in host.accounts))
    every_move_has_its_row_and_none_was_illegal(kit, server)


@pytest.mark.parametrize("game", ["doudizhu", "claims", "othello"])
async def test_frames_that_are_lost_doubled_swapped_and_garbage(kit, game):
    faults = Faults(lose=0.02, duplicate=0.1, reorder=0.05, garbage=0.1)
    options = {"accounts": 3 if game == "doudizhu" else 2, "grant_ms": 1500, "bank_ms": 0, "robots": True}
    async with faulty(kit, faults, game=game, **options) as (
        server,
        host,
    ):
        await kit.until(lambda: host.runner.counters.decisions >= 30)
    every_move_has_its_row_and_none_was_illegal(kit, server)


async def test_time_0_after_a_reconnect_is_no_reason_for_an_illegal_move(kit):
    """lichess-bot#1053."""
    async with faulty(kit, Faults(zero_clock=True, drop_after=8), grant_ms=3000) as (server, host):
        await kit.until(lambda: "drop_after" in server.struck and host.runner.counters.hands >= 6)
    every_move_has_its_row_and_none_was_illegal(kit, server)


async def test_a_rate_cut_costs_a_connection_and_no_move(kit):
    faults = Faults(rate_cut=12.0)
    async with faulty(kit, faults, accounts=1, tables=4, robots=True, grant_ms=3000) as (server, host):
        await kit.until(lambda: "rate_cut" in server.struck and host.runner.counters.hands >= 4)
        await kit.until(lambda: host.accounts[0].connection.reconnects)
    every_move_has_its_row_and_none_was_illegal(kit, server)


@contextlib.asynccontextmanager
async def logged_in_elsewhere(url):
    """Somebody else logs in as ada."""
    account = Account(name="ada", url=url, token=TOKENS["ada"])
    async with AdapterDriver(EmbeddedLobby(account, EmbeddedLobby.Options())) as driver:
        driver.do(Authenticate({}))
        await driver.expect(Connected)
        yield driver


async def test_a_zombie_first_socket_is_noticed_and_left(kit):
    """A second log-in took over, and the first socket stands: open, silent, and nobody tells it."""
    async with faulty(kit, Faults(zombies=True), accounts=1, robots=True, grant_ms=3000) as (server, host):
        await kit.until(lambda: host.runner.counters.decisions >= 5)
        async with logged_in_elsewhere(server.url):
            (account,) = host.accounts
            await kit.until(lambda: account.connection.reconnects >= 1)
            await plays_on(kit, host, 3)
    every_move_has_its_row_and_none_was_illegal(kit, server)


async def test_after_a_double_log_in_the_host_does_not_fight_for_the_account(kit):
    async with FaultLobby(TOKENS, robots=True, grant_ms=3000) as server:
        kit.url = server.url
        host = kit.host(kit.settings(accounts=1))
        running = asyncio.create_task(host.run())
        await kit.until(lambda: host.runner.counters.decisions >= 5)
        async with logged_in_elsewhere(server.url):
            await asyncio.wait_for(asyncio.gather(running, return_exceptions=True), 60)
            connections = {frame.conn for frame in server.frames}
            await asyncio.sleep(0.5)
            assert {frame.conn for frame in server.frames} == connections == {1, 2}
        assert host.accounts[0].superseded
        with pytest.raises(AuthError, match="another client logged in: home/ada"):  # no clean end: nobody wanted it
            running.result()
    every_move_has_its_row_and_none_was_illegal(kit, server)


async def test_the_end_of_a_table_of_another_evening_is_ignored(kit):
    async with faulty(kit, Faults(stale_game_over=True, drop_after=8), grant_ms=3000) as (server, host):
        await kit.until(lambda: "drop_after" in server.struck and host.runner.counters.hands >= 6)
    every_move_has_its_row_and_none_was_illegal(kit, server)


async def test_a_lobby_restarted_mid_game_aborts_its_tables_and_play_goes_on(kit):
    """lichess-bot#222: silently offline after a server restart."""
    tokens = dict(TOKENS)
    settings = ServerSettings(tokens=tokens, port=0, grant_ms=3000)
    async with serve(settings) as first:
        port, kit.url = first.port, first.url
        task_settings = kit.settings(accounts=3)
        host = kit.host(task_settings)
        running = asyncio.create_task(host.run())
        await kit.until(lambda: host.runner.counters.decisions >= 20)
    await kit.until(lambda: not any(account.connection.connected for account in host.accounts))
    before = host.runner.counters.decisions
    async with serve(ServerSettings(tokens=tokens, port=port, grant_ms=3000)):
        await kit.until(lambda: host.runner.counters.decisions >= before + 40)
        host.drain()
        await asyncio.wait_for(running, 60)
    aborted = kit.rows("SELECT scores FROM game_ends WHERE reason = 'aborted'")
    assert all(scores is None for (scores,) in aborted), "a lost lobby is no lost game"
    assert kit.count("decisions") == host.runner.counters.decisions


async def test_a_drain_finishes_the_open_hands_and_loses_no_move(kit):
    """lichess-bot#1155: moves lost in a soft shutdown."""
    async with kit.lobby(grant_ms=3000) as server:
        host = kit.host(kit.settings(min_move_ms=10.0))
        running = asyncio.create_task(host.run())
        await kit.until(lambda: host.runner.counters.decisions >= 10)
        host.interrupt()
        await asyncio.wait_for(running, 60)
        assert not server.lobby.tables
    assert kit.count("game_ends") == kit.count("games")
    assert kit.count("game_ends WHERE reason = 'normal'") >= 3
    assert kit.count("outcomes WHERE kind = 'sent'") == kit.count("decisions")
    assert kit.count("outcomes WHERE kind = 'acknowledged'") == kit.count("decisions")


async def test_the_second_signal_quits_at_once_and_leaves_the_tables_to_be_resumed(kit):
    async with kit.lobby(grant_ms=60_000) as server:
        host = kit.host(kit.settings(min_move_ms=30.0))
        running = asyncio.create_task(host.run())
        await kit.until(lambda: host.runner.counters.decisions >= 5)
        host.interrupt()
        host.interrupt()
        await asyncio.wait_for(running, 60)
        open_hands = kit.count("games") - kit.count("game_ends")
        assert open_hands >= 1
        async with kit.running(kit.settings()) as again:
            await kit.until(lambda: again.runner.counters.hands >= 3)
    assert kit.count("games") - kit.count("game_ends") == 0, "the hands went on under their ids"
    assert server.lobby.playing.hands_played >= 1


async def test_a_move_that_is_decided_while_the_host_ends_does_not_count_as_sent(kit, monkeypatch):
    asked, decide = threading.Event(), threading.Event()

    class Player(RandomPlayer):
        def decide(self, *given):
            asked.set()
            assert decide.wait(30)
            return super().decide(*given)

    class Thoughtful(RandomStrategy):
        name, execution = "test-thoughtful", "thread"

        def player(self, table):
            return Player(1)

    async with kit.lobby():
        settings = kit.settings(("pairing",), accounts=2, routes=(RouteSettings(strategy="test-thoughtful"),))
        async with kit.running(settings, kit.module("thoughtful", Thoughtful), drain=False) as host:
            await kit.until(asked.is_set)
            stop = host.runner.workers.aclose

            async def stopped():  # the connections are closed by now
                decide.set()
                await stop()

            monkeypatch.setattr(host.runner.workers, "aclose", stopped)
    assert kit.count("games") == 2
    assert kit.count("outcomes") == 0


async def test_hands_that_go_on_wait_for_a_database_that_is_away(kit, monkeypatch):
    """Without the log nobody knows what was answered: better no answer than a second opinion, and no host lost."""
    async with kit.lobby(grant_ms=60_000):
        host = kit.host(kit.settings(min_move_ms=30.0))
        running = asyncio.create_task(host.run())
        await kit.until(lambda: host.runner.counters.decisions >= 5)
        host.interrupt()
        host.interrupt()
        await asyncio.wait_for(running, 60)
        assert kit.count("games") - kit.count("game_ends") >= 1
        find, asked = StoreMemory.find, []

        def away(memory, keys):
            asked.append(keys)
            if len(asked) < 4:
                raise StoreUnavailable("the database is away")
            return find(memory, keys)

        monkeypatch.setattr(StoreMemory, "find", away)
        async with kit.running(kit.settings()) as again:
            await kit.until(lambda: again.runner.counters.hands >= 3)
    assert len(asked) >= 4
    assert kit.count("games") - kit.count("game_ends") == 0, "the hands went on under their ids"
    assert kit.count("decisions") == kit.count("(SELECT DISTINCT game_id, seat, request_id FROM decisions)")


class Deaf(EmbeddedLobby):
    """An adapter that never understands that its connection is gone."""

    name = "deaf"

    def feed(self, item):
        return [] if isinstance(item, SocketClosed | SocketFailed) else super().feed(item)


async def test_a_session_that_died_is_left_even_when_the_adapter_does_not_notice(kit):
    async with FaultLobby(TOKENS, faults=Faults(silence_after=3), robots=True, grant_ms=60_000) as server:
        kit.url = server.url
        settings = kit.settings(accounts=1)
        lobby = msgspec.structs.replace(settings.lobbies[0], adapter="deaf")
        settings = msgspec.structs.replace(settings, lobbies=(lobby,))
        async with kit.running(settings, kit.module("deaf", bothost_lobbies=lambda: [Deaf])) as host:
            await kit.until(lambda: server.struck and host.runner.counters.hands >= 2)
            await kit.until(lambda: host.accounts[0].connection.reconnects)


async def test_a_seek_that_is_answered_with_a_table_that_we_have_leaks_no_slot(kit):
    async with faulty(kit, Faults(), accounts=1, tables=2, grant_ms=60_000) as (_, host):
        await kit.until(lambda: host.accounts and host.accounts[0].slots.reserved)
        (account,) = host.accounts
        first, second = account.slots.reserved
        for seek in (first, second):
            account.tables.seated(Seated("t", "doudizhu", {}, None, seek=seek), 0.0)
        assert account.slots.held == {"t"} and second not in account.slots.reserved
        account.tables.close_table("t", "over")
        assert host.capacity.used == account.slots.used


async def test_rows_are_written_even_when_something_fails_on_the_way_out(kit, monkeypatch):
    before = set(threading.enumerate())
    async with kit.lobby(grant_ms=60_000):
        host = kit.host(kit.settings())
        running = asyncio.create_task(host.run())
        await kit.until(lambda: host.runner.counters.hands >= 1)

        async def fail():
            raise RuntimeError("a bug on the way out")

        monkeypatch.setattr(host.runner.workers, "aclose", fail)
        host.interrupt()
        with pytest.raises(RuntimeError, match="on the way out"):
            await asyncio.wait_for(running, 60)
    started = {thread.name for thread in threading.enumerate() if thread not in before}
    assert host.log.stats.queue_depth == 0 and "decision-log" not in started
    assert kit.count("decisions") == host.runner.counters.decisions


class Ill(EmbeddedLobby):
    """A lobby that comes back without its table of users, and has it a moment later."""

    name = "ill"
    refusals = 0

    def feed(self, item):
        if isinstance(item, Resume) and Ill.refusals < 2:
            Ill.refusals += 1
            return [AuthFailed("no such user")]
        return super().feed(item)


async def test_credentials_that_were_good_are_tried_again_when_a_lobby_refuses_them(kit):
    kit.connection = msgspec.structs.replace(kit.fast, refused_s=0.05)
    async with FaultLobby(TOKENS, faults=Faults(drop_after=3), robots=True, grant_ms=60_000) as server:
        kit.url = server.url
        settings = kit.settings(accounts=1)
        lobby = msgspec.structs.replace(settings.lobbies[0], adapter="ill")
        settings = msgspec.structs.replace(settings, lobbies=(lobby,))
        async with kit.running(settings, kit.module("ill", bothost_lobbies=lambda: [Ill])) as host:
            await kit.until(lambda: Ill.refusals == 2)
            assert "no such user" in host.accounts[0].problem
            await plays_on(kit, host, 2)
    every_move_has_its_row_and_none_was_illegal(kit, server)


async def test_the_end_of_a_table_costs_the_other_accounts_nothing(kit, monkeypatch):
    """With 1,000 accounts each end of a table took 2 ms: it asked all of them whether they wait to connect."""
    hurried = []
    monkeypatch.setattr(Connection, "hurry", lambda connection: hurried.append(connection))
    async with kit.lobby(), kit.running(kit.settings()) as host:
        await kit.until(lambda: host.runner.counters.hands >= 9)
        assert len(hurried) == len(host.accounts) ** 2, "each account that connects hurries the others"


async def test_no_move_is_faster_than_people_can_follow(kit):
    async with FaultLobby(TOKENS, robots=True, grant_ms=60_000) as server:
        kit.url = server.url
        async with kit.running(kit.settings(accounts=1, min_move_ms=60.0)) as host:
            await kit.until(lambda: host.runner.counters.decisions >= 8)
    asked = {}
    for frame in server.frames:
        if frame.direction == "out" and (ask := re.search(r'"ask":\{"id":"([^"]+)"', frame.data)):
            asked.setdefault((frame.conn, ask[1]), frame.at)
    moves = [
        (frame.at, frame.conn, wire.decode_client(frame.data)) for frame in server.frames if frame.direction == "in"
    ]
    waited = [at - asked[conn, act.id] for at, conn, act in moves if isinstance(act, wire.Act)]
    assert len(waited) >= 5 and min(waited) >= 0.06


async def test_never_more_tables_than_slots_whatever_the_lobby_does(kit):
    """lichess-bot#1163: a game started beyond the cap."""
    most = 0
    faults = Faults(lose=0.02, duplicate=0.1)
    async with faulty(kit, faults, tables=2, grant_ms=1000, bank_ms=0, robots=True) as (_, host):
        while host.runner.counters.decisions < 150:
            await asyncio.sleep(0.002)
            for account in host.accounts:
                assert account.slots.used <= 2
                most = max(most, len(account.tables.sessions))
    assert most == 2


async def test_a_refused_token_is_told_once_and_not_tried_again(kit):
    async with serve(ServerSettings(tokens={"ada": "another token"}, port=0)) as server:
        kit.url = server.url
        with pytest.raises(AuthError, match="home/ada"):
            await asyncio.wait_for(kit.host(kit.settings(accounts=1)).run(), 60)


async def test_an_unreachable_lobby_ends_a_host_only_when_it_is_told_to_fail_fast(kit):
    kit.url = "ws://127.0.0.1:9/ws"
    with pytest.raises(LobbyUnreachable):
        await asyncio.wait_for(kit.host(kit.settings(accounts=1)).run(fail_fast=True), 60)
    host = kit.host(kit.settings(accounts=1))
    running = asyncio.create_task(host.run())
    await asyncio.sleep(0.5)
    assert not running.done()
    host.drain()
    await asyncio.wait_for(running, 60)


async def test_no_secret_in_the_log_of_a_night_of_failures(kit, capsys):
    async with faulty(kit, Faults(drop_after=8), grant_ms=3000) as (server, host):
        await kit.until(lambda: server.struck and host.runner.counters.hands >= 3)
    printed = "".join(capsys.readouterr())
    assert "adaadaada" not in printed and "bobbobbob" not in printed
