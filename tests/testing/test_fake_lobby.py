"""The lobbies that adapter authors and host tests stand on."""

import asyncio
import gc
import json
import random
import socket
import warnings

import pytest

from bothost import messages as m
from bothost import rules
from bothost.errors import AuthError, LobbyUnreachable, PluginError
from bothost.lobbies.base import Account
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions
from bothost.lobbies.embedded import protocol as wire
from bothost.testing.adapter_driver import AdapterDriver
from bothost.testing.fake_lobby import FakeLobby, Line
from bothost.testing.fault_lobby import FaultLobby, Faults

TOKENS = {"ada": "secret-of-ada", "bob": "secret-of-bob"}


def driver(lobby, name="ada", token=None, **options):
    account = Account(name=name, url=lobby.url, token=TOKENS[name] if token is None else token)
    return AdapterDriver(EmbeddedLobby(account, EmbeddedOptions(**options)))


async def play(driver, *, until=m.TableEnded, game="claims", seconds=20.0):
    """Play one table at random over a driver, resuming when the connection breaks; the end, and our last view."""
    rng, view = random.Random(1), None
    driver.do(m.Authenticate())
    async with asyncio.timeout(seconds):
        while True:
            event = await driver.expect(object)
            match event:
                case m.Connected(resumed=False):
                    driver.do(m.Seek("s", m.Wish(game)))
                case m.Disconnected():
                    await asyncio.sleep(0.05)
                    driver.do(m.Resume((), driver.memo))
                case m.HandStarted():
                    view = rules.game(game).new_view(event.seat)
                case m.Snapshot():
                    view = rules.game(game).view_from_snapshot(event.view)
                case m.Delta():
                    assert event.seq == view.seq
                    view.observe_all(event.events)
                case m.ActionRequest():
                    action = view.notation(int(rng.choice(view.legal())))
                    driver.do(m.Act(event.table, event.request_id, (action,)))
                case _:
                    pass
            if isinstance(event, until):
                return event, view


async def test_a_whole_game_against_robots():
    async with FakeLobby(TOKENS, robots=True) as lobby, driver(lobby) as ada:
        ended, view = await play(ada)
        assert ended.reason == "normal"
        assert view.terminal
        acts = lobby.said_by("ada", wire.Act)
        assert [a.id for a in acts] == [e.done for e in lobby.sent_to("ada", wire.Events) if e.done]
        assert lobby.said_by("bob", wire.Act) == []


async def test_a_script_speaks_any_dialect():
    async def script(line: Line):
        assert json.loads(await line.recv())["type"] == "hello"
        await line.send("not json")
        await line.send(wire.encode(wire.Welcome(1, "ada", "s", wire.Limits(1, 1.0, 1, 1))).decode())
        await line.recv()
        await line.socket.close(4000, "enough")

    async with FakeLobby(TOKENS, script=script) as lobby, driver(lobby) as ada:
        ada.do(m.Authenticate())
        assert (await ada.expect(m.Unknown)).raw == "not json"
        assert (await ada.expect(m.Connected)).player == "ada"
        ada.do(m.Ping())
        assert "4000: enough" in (await ada.expect(m.Disconnected)).reason
        await lobby.until(lambda: lobby.frames[-1].direction == "closed")
        assert [f.direction for f in lobby.frames] == ["in", "out", "out", "in", "closed"]


async def test_a_bad_token_and_a_missing_lobby_are_told_apart():
    async with FakeLobby(TOKENS) as lobby:
        async with driver(lobby, token="wrong") as stranger:
            stranger.do(m.Authenticate())
            with pytest.raises(AuthError):
                await stranger.expect(m.Connected)
        url = lobby.url
    account = Account(name="ada", url=url, token="x")
    async with AdapterDriver(EmbeddedLobby(account, EmbeddedOptions())) as late:
        late.do(m.Authenticate())
        with pytest.raises(LobbyUnreachable):
            await late.expect(m.Connected)


async def test_a_lobby_that_never_answers_is_given_up():
    async def script(line: Line):
        await asyncio.sleep(10)

    async with FakeLobby(TOKENS, script=script) as lobby, driver(lobby, hello_timeout_s=0.05) as ada:
        ada.do(m.Authenticate())
        assert "hello" in (await ada.expect(m.Disconnected)).reason


@pytest.mark.parametrize("kind", [m.SocketOpened, m.Frame])
async def test_an_adapter_that_fails_is_not_a_lobby_that_cannot_be_reached(kind):
    class Forgetful(EmbeddedLobby):
        def feed(self, item):
            if isinstance(item, kind):
                raise KeyError("what the author forgot")
            return super().feed(item)

    async with FakeLobby(TOKENS) as lobby:
        account = Account(name="ada", url=lobby.url, token=TOKENS["ada"])
        async with AdapterDriver(Forgetful(account, EmbeddedOptions())) as ada:
            ada.do(m.Authenticate())
            with pytest.raises(PluginError, match=rf"feed\({kind.__name__}\) raised KeyError.*test_fake_lobby.py:"):
                await ada.expect(m.Connected)


# --------------------------------------------------------------------------------------------------------- with faults


@pytest.mark.parametrize(
    "faults",
    [
        Faults(duplicate=0.5),
        Faults(garbage=0.5),
        Faults(garbage=0.3, duplicate=0.3, stale_game_over=True),
        Faults(drop_after=2),
        Faults(oversize_after=2, oversize_bytes=20_000_000),
        Faults(drop_after=1, stale_game_over=True, zero_clock=True),
    ],
    ids=repr,
)
async def test_games_are_finished_in_spite_of(faults):
    async with FaultLobby(TOKENS, faults=faults, robots=True) as lobby, driver(lobby) as ada:
        ended, view = await play(ada)
        assert ended.reason == "normal"
        assert view.terminal


@pytest.mark.parametrize("seed", range(5))
async def test_missing_and_swapped_frames_are_noticed(seed):
    """What is lost without a trace costs the server's clock; a visible gap is closed at once."""
    faults = Faults(lose=0.1, reorder=0.1)
    settings = {"grant_ms": 100, "bank_ms": 0, "hands": 3}
    async with FaultLobby(TOKENS, faults=faults, robots=True, seed=seed, **settings) as lobby, driver(lobby) as ada:
        ada.do(m.Authenticate())
        await ada.expect(m.Connected)
        ada.do(m.Seek("s", m.Wish("claims")))
        views, rng, ended = {}, random.Random(seed), False
        while not ended:
            try:
                event = await ada.expect(m.Event, 1.0)
            except LobbyUnreachable:
                if lobby.core.tables:
                    continue  # on a loaded machine the lobby is slow, too
                break
            if isinstance(event, m.HandStarted):
                views[event.hand] = rules.game("claims").new_view(event.seat)
            elif isinstance(event, m.Snapshot):
                views[event.hand] = rules.game("claims").view_from_snapshot(event.view)
            elif isinstance(event, m.Delta):
                assert views[event.hand].seq == event.seq, "no gap gets past the adapter"
                views[event.hand].observe_all(event.events)
            elif isinstance(event, m.ActionRequest):
                view = views[event.hand]
                assert view.asked and view.seq == event.seq
                action = view.notation(int(rng.choice(view.legal())))
                ada.do(m.Act(event.table, event.request_id, (action,)))
            ended = isinstance(event, m.TableEnded)


async def test_a_restarted_lobby_has_no_tables():
    async with FaultLobby(TOKENS, faults=Faults(restart_after=1), robots=True) as lobby, driver(lobby) as ada:
        ended, _ = await play(ada)
        assert ended.reason == "aborted"
        assert lobby.struck == ["restart_after"]
        assert "restarted" in ended.detail


@pytest.mark.parametrize("fault", ["silence_after", "dead_after"])
async def test_silence_is_not_told_by_the_socket(fault):
    async with FaultLobby(TOKENS, faults=Faults(**{fault: 1}), robots=True) as lobby, driver(lobby) as ada:
        task = asyncio.ensure_future(play(ada, until=m.Disconnected))
        await lobby.until(lambda: lobby.struck)
        ada.do(m.Ping())
        await asyncio.sleep(0.2)
        assert not task.done()
        assert not [event for event in ada.events if isinstance(event, m.Alive | m.Disconnected)]
        task.cancel()
        ada.drop()


async def test_a_zombie_stands_beside_its_successor():
    async with (
        FaultLobby(TOKENS, faults=Faults(zombies=True)) as lobby,
        driver(lobby) as first,
        driver(lobby) as second,
    ):
        for one in (first, second):
            one.do(m.Authenticate())
            await one.expect(m.Connected)
        first.do(m.Ping())
        second.do(m.Ping())
        await second.expect(m.Alive)
        assert not [event for event in first.events if not isinstance(event, m.Connected)]
        assert len(lobby.lines) == 2


async def test_a_rate_cut_comes_without_a_word():
    async with FaultLobby(TOKENS, faults=Faults(rate_cut=20)) as lobby, driver(lobby) as ada:
        ada.do(m.Authenticate())
        await ada.expect(m.Connected)
        for _ in range(40):
            ada.do(m.Ping())
        assert "1006" in (await ada.expect(m.Disconnected)).reason, "no close frame"


async def test_a_broken_connection_is_told():
    async with FakeLobby(TOKENS) as lobby, driver(lobby) as ada:
        ada.do(m.Authenticate())
        await ada.expect(m.Connected)
        (line,) = lobby.lines.values()
        line.abort()
        assert "1006" in (await ada.expect(m.Disconnected)).reason


@pytest.mark.parametrize("turns", range(4))
async def test_a_restart_in_the_very_turn_of_a_connection_leaves_no_socket_behind(turns):
    """Accepted, and its transport not yet made: asyncio forgets such a connection when its server closes."""
    async with FakeLobby(TOKENS) as lobby:
        client = socket.create_connection(("127.0.0.1", lobby.port))
        for _ in range(turns):
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, client.close)
        await lobby.restart()
    client.close()  # the restart may have been quicker
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(warning.message) for warning in left] == []
