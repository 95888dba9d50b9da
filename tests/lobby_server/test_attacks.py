"""Clients that want the server to themselves: silent connections, unfinished requests, tables without players."""

import asyncio
import contextlib
import itertools
import logging
import re
import time
from types import SimpleNamespace

import pytest
import structlog
from running_table import new_lobby, started
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from bothost import lobby_server, receiving, serving
from bothost import messages as m
from bothost.listening import listen
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server import server as shell
from bothost.lobby_server.core import Lobby
from bothost.lobby_server.settings import ServerSettings
from bothost.serving import LINES_PER_MINUTE, UNFINISHED, running

TOKENS = {"ada": "planted-secret-1", "bob": "planted-secret-2"}


@pytest.mark.parametrize("limits", [{"strangers": 5}, {"strangers_per_address": 5}])
async def test_silent_connections_make_room_for_accounts(limits):
    settings = ServerSettings(tokens=TOKENS, port=0, **limits)
    async with lobby_server.serve(settings) as server, contextlib.AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connect(server.url)) for _ in range(12)]
        for number, token in enumerate(TOKENS.values()):
            account = await stack.enter_async_context(connect(server.url))
            await account.send(wire.encode(wire.Hello(wire.VERSION, token)).decode())
            assert isinstance(wire.decode_server(await account.recv()), wire.Welcome), number
        for old in silent[:7]:
            with pytest.raises(ConnectionClosed) as closed:
                await old.recv()
            assert closed.value.rcvd.code == wire.CLOSE_FULL


async def unfinished(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    await writer.drain()
    return reader, writer


async def test_requests_that_never_end_make_room_for_others():
    async with lobby_server.serve(ServerSettings(tokens=TOKENS, port=0)) as server:
        held = [await unfinished(server.port) for _ in range(UNFINISHED + 20)]
        async with connect(server.url) as account:
            await account.send(wire.encode(wire.Hello(wire.VERSION, TOKENS["ada"])).decode())
            assert isinstance(wire.decode_server(await account.recv()), wire.Welcome)
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                assert await held[0][0].read() == b"", "the oldest is disconnected"
        for _, writer in held:
            writer.close()


async def test_a_request_has_a_deadline():
    async def hello(request):
        return PlainTextResponse("hello")

    listening = listen("127.0.0.1", 0, key="port", advice="")
    application = Starlette(routes=[Route("/", hello)])
    async with running(application, listening, "hello", request_s=0.2) as port, asyncio.timeout(60):
        reader, writer = await unfinished(port)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_invalid_requests_do_not_fill_the_log(caplog, monkeypatch):
    """A stranger can send thousands in a second."""
    bad = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    clock = SimpleNamespace(now=time.monotonic(), monotonic=lambda: clock.now)
    monkeypatch.setattr(serving, "time", clock)
    with caplog.at_level(logging.INFO):
        async with lobby_server.serve(ServerSettings(tokens=TOKENS, port=0)) as server, asyncio.timeout(60):
            for number in range(3 * LINES_PER_MINUTE):
                if number == 2 * LINES_PER_MINUTE:
                    clock.now += 60.0
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(bad)
                assert (await reader.read()).startswith(b"HTTP/1.1 400 Bad Request")
                writer.close()
    lines = [record.getMessage() for record in caplog.records if record.name == "uvicorn.error"]
    assert len(lines) == 2 * LINES_PER_MINUTE and set(lines[:LINES_PER_MINUTE]) == {"Invalid HTTP request received."}
    assert f"({LINES_PER_MINUTE} lines before this one were left out)" in lines[LINES_PER_MINUTE]
    assert not any(record.exc_info for record in caplog.records)


def test_wrong_tokens_do_not_fill_the_log():
    lobby = Lobby(ServerSettings(tokens=TOKENS), ["claims"])
    with structlog.testing.capture_logs() as logged:
        for number in range(500):
            lobby.opened(number, 100.0, "somewhere")
            lobby.received(number, wire.encode(wire.Hello(wire.VERSION, "guess")), 100.0)
            lobby.closed(number, 100.0)
    assert 0 < len([line for line in logged if line["event"] == "bad token"]) < 50


async def test_a_request_that_came_with_the_one_before_may_take_long_to_answer():
    """The deadline is for clients, and this one waits for us."""

    async def answer(request):
        await asyncio.sleep(0.6 if request.url.path == "/slow" else 0.0)
        return PlainTextResponse(request.url.path)

    listening = listen("127.0.0.1", 0, key="port", advice="")
    application = Starlette(routes=[Route("/quick", answer), Route("/slow", answer)])
    async with running(application, listening, "answer", request_s=0.2) as port, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in ("quick", "slow"):
            writer.write(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n/quick")).startswith(b"HTTP/1.1 200")
        assert (await reader.readuntil(b"\r\n\r\n/slow")).startswith(b"HTTP/1.1 200")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b"", "the next request has its deadline"
        writer.close()


async def test_a_client_that_does_not_read_is_disconnected():
    gone = asyncio.Event()

    async def blocks():
        try:
            while True:
                yield bytes(1 << 16)
                await asyncio.sleep(0)
        finally:
            gone.set()

    async def endless(request):
        return StreamingResponse(blocks())

    listening = listen("127.0.0.1", 0, key="port", advice="")
    application = Starlette(routes=[Route("/healthz", endless)])
    async with running(application, listening, "endless", request_s=0.2) as port, asyncio.timeout(60):
        _, writer = await unfinished(port)
        writer.write(b"\r\n")
        await gone.wait()
        writer.close()


UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@contextlib.asynccontextmanager
async def deaf(port):
    """A websocket whose client reads nothing and answers nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_a_client_that_pings_and_reads_no_answer_is_cut():
    async with lobby_server.serve(ServerSettings(tokens=TOKENS, port=0)) as server, deaf(server.port) as (_, writer):
        pings = Frame(Opcode.PING, b"x" * 125).serialize(mask=True) * 1000
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(60):
                while True:
                    writer.write(pings)
                    await writer.drain()


async def test_a_flood_of_pings_takes_many_turns_of_the_loop(monkeypatch):
    """In between, the server does what others ask."""
    monkeypatch.setattr(receiving, "TURN_S", 0.0)
    flood, turns = 40_000, itertools.count()

    async def tick():
        while True:
            next(turns)
            await asyncio.sleep(0)

    async with (
        lobby_server.serve(ServerSettings(tokens=TOKENS, port=0)) as server,
        deaf(server.port) as (reader, writer),
    ):
        ticking = asyncio.create_task(tick())
        writer.write(Frame(Opcode.PING, b"").serialize(mask=True) * flood)
        await reader.readexactly(2 * flood)
        ticking.cancel()
    assert next(turns) > 6 * flood / receiving.PART_BYTES


async def test_fragments_without_end_and_without_content_take_no_memory():
    made = []

    class Recorded(shell.AbortableWebSocket):
        def connection_made(self, transport):
            super().connection_made(transport)
            made.append(self)

    async def endpoint(websocket):
        await websocket.accept()
        await websocket.receive()

    listening = listen("127.0.0.1", 0, key="port", advice="")
    application = Starlette(routes=[WebSocketRoute("/ws", endpoint)])
    begun = Frame(Opcode.TEXT, b"begun", fin=False).serialize(mask=True)
    empty = Frame(Opcode.CONT, b"", fin=False).serialize(mask=True)
    ping = Frame(Opcode.PING, b"received?").serialize(mask=True)
    async with running(application, listening, "fragments", ws=Recorded) as port, deaf(port) as (reader, writer):
        writer.write(begun + 1000 * empty + ping)
        async with asyncio.timeout(60):
            await reader.readuntil(b"received?")
        assert made[0].frames == [b"begun"]


async def ended(reader):
    """Wait until the server has ended the connection."""
    with contextlib.suppress(ConnectionError):
        await reader.read()


async def test_a_closed_connection_is_cut_if_its_client_does_not_answer(monkeypatch):
    monkeypatch.setattr(shell, "CLOSE_S", 0.1)
    settings = ServerSettings(tokens=TOKENS, port=0, hello_s=0.1)
    async with lobby_server.serve(settings) as server, deaf(server.port) as (reader, _), asyncio.timeout(60):
        await ended(reader)


async def test_few_connections_wait_for_the_answer_of_their_clients(monkeypatch):
    monkeypatch.setattr(shell, "CLOSE_S", 60.0)
    settings = ServerSettings(tokens=TOKENS, port=0, strangers_per_address=1)
    async with lobby_server.serve(settings) as server, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(deaf(server.port)) for _ in range(shell.CLOSING + 3)]
        async with asyncio.timeout(60):
            await ended(clients[0][0])


async def test_a_client_that_reads_nothing_and_answers_no_ping_is_cut():
    gone = asyncio.Event()

    async def endpoint(websocket):
        await websocket.accept()
        await websocket.send_bytes(bytes(1 << 24))
        await websocket.receive()
        gone.set()

    listening = listen("127.0.0.1", 0, key="port", advice="")
    application = Starlette(routes=[WebSocketRoute("/ws", endpoint)])
    pings = {"ws_ping_interval": 0.1, "ws_ping_timeout": 0.1}
    serving = running(application, listening, "deaf", ws=shell.AbortableWebSocket, **pings)
    async with serving as port, deaf(port), asyncio.timeout(60):
        await gone.wait()


FAST = {"grant_ms": 1, "bank_ms": 0, "hands": 100_000}


def test_a_table_whose_players_are_away_ends_with_the_hand():
    lobby, players, table = started(attributes=FAST, lag_ms=0)
    for player in players:
        player.shell.drop()
    lobby.sleep(60.0)
    assert table.ended.reason == "aborted" and table.hands_played <= 2


def test_a_table_whose_players_are_silent_ends_after_some_hands():
    lobby, players, table = started(attributes=FAST, lag_ms=0)
    lobby.sleep(60.0)
    assert table.ended.detail == "no player answers" and table.hands_played <= 4
    assert players[0].ended[table.name].reason == "aborted"


def test_the_id_of_a_private_table_cannot_be_guessed():
    lobby = new_lobby()
    shell = lobby.shell("ada")
    shell.do(m.Authenticate({}))
    lobby.run()
    for number in range(2):
        shell.do(m.Create(f"s{number}", m.Wish("claims", {}, {"private": True})))
    lobby.run()
    first, second = lobby.core.waiting.tables
    assert re.fullmatch(r"t-1-[0-9a-f]{24}", first) and re.fullmatch(r"t-2-[0-9a-f]{24}", second)
    assert first[4:] != second[4:]
