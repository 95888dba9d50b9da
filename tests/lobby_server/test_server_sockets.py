"""The server on real sockets: whole games, hostile clients, HTTP."""

import asyncio
import contextlib
import json
import logging
import random
import socket

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from bothost import rules
from bothost.errors import ConfigError
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server import ServerSettings, serve

NAMES = ("ada", "bob", "cyd", "dan")
TOKENS = {name: f"token-of-{name}" for name in NAMES}


def lobby(**options):
    options.setdefault("tokens", TOKENS)
    options.setdefault("grant_ms", 60_000)  # however busy the machine is
    return serve(ServerSettings(port=0, **options), games=rules.games(plugins=False, testing=True))


async def say(socket, frame):
    await socket.send(wire.encode(frame).decode())


async def hear(socket, kind=None):
    """The next frame, or the next of a kind."""
    while True:
        frame = wire.decode_server(await asyncio.wait_for(socket.recv(), 60))
        if kind is None or isinstance(frame, kind):
            return frame


@contextlib.asynccontextmanager
async def client(server, name="ada", **hello):
    async with connect(server.url, max_size=None) as socket:
        await say(socket, wire.Hello(1, TOKENS[name], **hello))
        assert (await hear(socket)).player == name
        yield socket


async def play(server, name, game, tables):
    """A client written without the adapter, as a stranger would from the document: returns the final views."""
    views, games, finished = {}, {}, []
    rng = random.Random(name)
    async with client(server, name) as socket:
        for number in range(tables):
            await say(socket, wire.Seek(f"s{number}", game))
        while len(finished) < tables:
            frame = await hear(socket)
            assert not isinstance(frame, wire.Error | wire.Rejected | wire.ServerActed), frame
            if isinstance(frame, wire.Seated):
                games[frame.table] = rules.game(frame.game, **frame.rules)
            elif isinstance(frame, wire.HandStarted):
                views[frame.table] = games[frame.table].new_view(frame.seat)
            elif isinstance(frame, wire.Events):
                view = views[frame.table]
                assert view.seq == frame.seq
                view.observe_all(frame.events)
                if frame.ask is not None:
                    action = view.notation(int(rng.choice(view.legal())))
                    await say(socket, wire.Act(frame.table, frame.ask.id, action))
            elif isinstance(frame, wire.TableEnded):
                finished.append(views[frame.table])
    return finished


@pytest.mark.parametrize("game", rules.games(plugins=False, testing=True))
async def test_whole_games_over_websockets(game):
    seats = rules.game(game).num_seats
    async with lobby(hands=2) as server:
        all_views = await asyncio.gather(*(play(server, name, game, 2) for name in NAMES[:seats]))
    for views in all_views:
        assert all(view.terminal and view.record() is not None for view in views)


def test_whole_games_on_uvloop():
    async def match():
        async with lobby(robots_after_s=0.0, pause_ms=1, hands=3) as server:
            return await play(server, "ada", "claims", 3)

    assert all(view.terminal for view in pytest.importorskip("uvloop").run(match()))


async def test_health_and_tables_over_http():
    async with lobby() as server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as http:
        async with client(server) as socket:
            await say(socket, wire.Create("s", "claims", {}, {"level": 3}))
            await hear(socket, wire.Waiting)
            health = (await http.get("/healthz")).json()
            assert (health["status"], health["connections"], health["waiting"]) == ("ok", 1, 1)
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKENS['ada']}"}):
                refused = await http.get("/tables", headers=headers)
                assert refused.status_code == 401
                assert "Authorization" in refused.json()["error"]
            listed = (await http.get("/tables", headers={"Authorization": f"Bearer {TOKENS['bob']}"})).json()
            (table,) = listed["tables"]
            assert (table["game"], table["attributes"], table["free"]) == ("claims", {"level": 3}, 2)
        assert (await http.get("/elsewhere")).status_code == 404


async def test_a_taken_port_is_one_clear_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="cannot listen") as caught:
            async with serve(ServerSettings(tokens=TOKENS, port=port), games=()):
                pass
    assert caught.value.key == "lobby_server.port" and str(port) in caught.value.advice


@pytest.mark.parametrize("host", ["203.0.113.7", "a\0", "a" * 300])
async def test_an_address_that_is_not_ours_is_named(host):
    with pytest.raises(ConfigError, match="cannot listen") as caught:
        async with serve(ServerSettings(tokens=TOKENS, host=host, port=0), games=()):
            pass
    assert caught.value.key == "lobby_server.host" and "another program" not in caught.value.advice


@pytest.mark.parametrize(
    ("first", "code", "close"),
    [
        ("{", "bad_json", wire.CLOSE_PROTOCOL),
        ('{"type":"hello","v":1}', "bad_message", wire.CLOSE_PROTOCOL),
        ('{"type":"ping"}', "hello_expected", wire.CLOSE_PROTOCOL),
        ('{"type":"hello","v":99,"token":"x"}', "bad_version", wire.CLOSE_PROTOCOL),
        ('{"type":"hello","v":1,"token":"x"}', "bad_token", wire.CLOSE_AUTH),
    ],
)
async def test_a_bad_hello_is_told_and_closed(first, code, close):
    async with lobby() as server, connect(server.url) as socket:
        await socket.send(first)
        assert (await hear(socket)).code == code
        with pytest.raises(ConnectionClosed) as closed:
            await hear(socket)
        assert closed.value.rcvd.code == close


async def test_silence_is_closed():
    async with lobby(hello_s=0.05) as server, connect(server.url) as socket:
        with pytest.raises(ConnectionClosed) as closed:
            await hear(socket)
        assert closed.value.rcvd.code == wire.CLOSE_TIMEOUT


async def test_too_many_connections_are_turned_away():
    async with lobby(connections=1) as server, client(server), connect(server.url) as second:
        with pytest.raises(ConnectionClosed) as closed:
            await hear(second)
        assert closed.value.rcvd.code == wire.CLOSE_FULL


async def test_strangers_do_not_keep_accounts_out():
    async with lobby(strangers=2) as server, connect(server.url) as first, connect(server.url) as second:
        async with connect(server.url):
            with pytest.raises(ConnectionClosed) as closed:
                await hear(first)
            assert closed.value.rcvd.code == wire.CLOSE_FULL, "the oldest makes room"
        await say(second, wire.Hello(1, TOKENS["ada"]))
        await hear(second, wire.Welcome)
        async with client(server, "bob"):
            assert len(server.lobby.connections) == 2


async def test_an_oversize_frame_closes_that_connection_only():
    async with lobby(frame_bytes=10_000) as server, client(server, "bob") as good:
        async with client(server) as bad:
            await bad.send("x" * 20_000)
            with pytest.raises(ConnectionClosed) as closed:
                await hear(bad)
            assert closed.value.rcvd.code == 1009
        await say(good, wire.Ping())
        assert isinstance(await hear(good), wire.Pong)


async def test_random_bytes_are_answered_with_errors(caplog):
    rng = random.Random(1)
    with caplog.at_level(logging.INFO):
        async with lobby(burst=10**9) as server, client(server) as socket:
            for _ in range(1_000):
                data = rng.randbytes(rng.randrange(60))
                await (socket.send(data) if rng.random() < 0.5 else socket.send(data, text=True))
                assert isinstance(await hear(socket), wire.Error)
            await say(socket, wire.Ping())
            assert isinstance(await hear(socket), wire.Pong)
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_client_that_does_not_read_is_cut_off():
    settings = {"queue_bytes": 100_000, "burst": 10**9}
    async with lobby(**settings) as server, client(server, "bob") as good, client(server) as socket:
        for number in range(100):
            await say(socket, wire.Create(f"s{number}", "claims", {}, {"label": "x" * 200}))
        socket.transport.pause_reading()
        with contextlib.suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(60):
                while server.lobby.players["ada"].conn is not None:
                    await say(socket, wire.List())
                    await asyncio.sleep(0)
        assert server.lobby.players["ada"].conn is None
        assert len(server.lobby.connections) == 1
        await say(good, wire.Ping())
        assert isinstance(await hear(good), wire.Pong)
        socket.transport.abort()


async def test_closing_the_server_closes_its_clients():
    async with contextlib.AsyncExitStack() as clients:
        async with lobby() as server:
            socket = await clients.enter_async_context(client(server))
        with pytest.raises(ConnectionClosed) as closed:
            await hear(socket)
        assert closed.value.rcvd.code == 1012


async def test_no_token_is_logged(capsys):
    async with lobby() as server, client(server), connect(server.url) as socket:
        await socket.send(json.dumps({"type": "hello", "v": 1, "token": "planted-secret", "agent": "x"}))
        await hear(socket)
    logged = "".join(capsys.readouterr())
    assert "bad token" in logged
    assert "planted-secret" not in logged
    assert not any(token in logged for token in TOKENS.values())


async def test_the_server_leaves_no_task_behind():
    before = asyncio.all_tasks()
    for _ in range(3):
        async with lobby() as server, client(server):
            pass
    async with asyncio.timeout(60):
        while asyncio.all_tasks() != before:  # noqa: ASYNC110 (the end of a task has no event)
            await asyncio.sleep(0)
