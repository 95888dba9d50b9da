"""The client websocket, against websockets' own server."""

import asyncio
import contextlib
import itertools

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.server import ServerProtocol

from bothost import receiving
from bothost.host import certificates
from bothost.host.websocket import OpenFailed, WebSocket


class Client:
    """Collects what a socket says."""

    def __init__(self):
        self.messages = []
        self.fails_at = 0
        self.closed = asyncio.get_running_loop().create_future()

    def hear(self, message):
        self.messages.append(message)
        if len(self.messages) == self.fails_at:
            raise RuntimeError("a bug")

    def close(self, code, reason):
        assert not self.closed.done(), "closed twice"
        self.closed.set_result((code, reason))

    async def open(self, url, max_bytes=1 << 16, headers=()):
        return await WebSocket(url, headers, max_bytes, self.hear, self.close).open()


@contextlib.asynccontextmanager
async def server(handler, **options):
    async with serve(handler, "127.0.0.1", 0, **options) as running:
        yield f"ws://127.0.0.1:{next(iter(running.sockets)).getsockname()[1]}/"


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def echo(connection):
    async for message in connection:
        await connection.send(message)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_000])
async def test_messages_of_every_length_arrive_whole_in_both_directions(size):
    async with server(echo) as url:
        client = Client()
        socket = await client.open(url, 1 << 20)
        socket.send("ü" * (size // 2) + "x" * (size % 2))
        socket.send(bytes(range(256)) * (size // 256))
        await until(lambda: len(client.messages) == 2)
        socket.close()
        assert await client.closed == (1000, "")
        assert client.messages == ["ü" * (size // 2) + "x" * (size % 2), bytes(range(256)) * (size // 256)]


async def test_fragments_are_put_together():
    async def fragments(connection):
        await connection.send(["one ", "two ", "three"])
        await connection.send([b"1", b"2"])

    async with server(fragments) as url:
        client = Client()
        await client.open(url)
        assert await client.closed == (1000, "")
        assert client.messages == ["one two three", b"12"]


async def test_a_message_beyond_the_limit_closes_the_connection():
    async def oversize(connection):
        await connection.send("x" * 5000)
        await connection.wait_closed()

    async with server(oversize) as url:
        client = Client()
        await client.open(url, max_bytes=4096)
        code, _ = await client.closed
        assert code in (1009, 1006)
        assert client.messages == []


async def test_pings_are_answered_while_the_application_is_busy():
    async def pinging(connection):
        await asyncio.wait_for(await connection.ping(), 30)
        await connection.send("answered")

    async with server(pinging) as url:
        client = Client()
        await client.open(url)
        await client.closed
        assert client.messages == ["answered"]


async def test_our_pings_are_counted_when_they_are_answered():
    async with server(echo) as url:
        client = Client()
        socket = await client.open(url)
        socket.ping()
        await until(lambda: socket.pongs)
        socket.close()
        await client.closed


async def test_a_close_by_the_server_tells_code_and_reason_once():
    async def closing(connection):
        await connection.close(4409, "superseded")

    async with server(closing) as url:
        client = Client()
        socket = await client.open(url)
        assert await client.closed == (4409, "superseded")
        socket.send("nobody hears")
        socket.close()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("answer", [WebSocket.close, WebSocket.ping, lambda socket: socket.send("too late")])
async def test_a_message_may_be_answered_though_a_close_frame_came_with_it(answer):
    async def last_words(connection):
        await connection.recv()
        connection.protocol.send_text(b"refused")
        connection.protocol.send_close(4001, "refused")
        connection.send_data()  # both in one write
        await connection.wait_closed()

    heard, closed = [], asyncio.get_running_loop().create_future()

    def on_message(data):
        answer(socket)
        heard.append(data)

    async with server(last_words) as url:
        socket = await WebSocket(url, (), 1 << 16, on_message, lambda *said: closed.set_result(said)).open()
        socket.send("hello")
        assert await closed == (4001, "refused")
        assert heard == ["refused"]


async def test_a_connection_that_breaks_is_1006():
    async def breaking(connection):
        connection.transport.abort()

    async with server(breaking) as url:
        client = Client()
        await client.open(url)
        assert (await client.closed)[0] == 1006


async def test_headers_are_sent():
    seen = []

    async def looking(connection):
        seen.append(connection.request.headers["Cookie"])

    async with server(looking) as url:
        client = Client()
        await client.open(url, headers=(("Cookie", "userinfo=1"),))
        await client.closed
    assert seen == ["userinfo=1"]


async def test_a_refused_upgrade_tells_the_status():
    def refuse(connection, request):
        return connection.respond(403, "no")

    async with server(echo, process_request=refuse) as url:
        with pytest.raises(OpenFailed) as caught:
            await Client().open(url)
        assert caught.value.status == 403


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9/", "http://127.0.0.1/", "ws://", "nonsense", "ws://a..b/"])
async def test_what_cannot_be_opened_is_one_error(url):
    with pytest.raises(OpenFailed) as caught:
        await Client().open(url)
    assert caught.value.status == 0 and caught.value.reason


async def test_a_refusal_that_ends_with_the_connection_tells_the_status():
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\n\r\nno")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as running:
        with pytest.raises(OpenFailed) as caught:
            await Client().open(f"ws://127.0.0.1:{running.sockets[0].getsockname()[1]}/")
    assert caught.value.status == 401


async def test_a_redirect_is_not_followed():
    asked = []

    def elsewhere(connection, request):
        asked.append(request.path)
        return Response(302, "Found", Headers(Location="/elsewhere"))

    async with server(echo, process_request=elsewhere) as url:
        with pytest.raises(OpenFailed) as caught:
            await Client().open(url)
    assert caught.value.status == 302 and asked == ["/"]


def test_a_server_without_tls_is_named_as_such():
    async def opened():
        async def rude(reader, writer):
            await reader.read(10)
            writer.close()

        async with await asyncio.start_server(rude, "127.0.0.1", 0) as running:
            await Client().open(f"wss://127.0.0.1:{running.sockets[0].getsockname()[1]}/")

    with pytest.raises(OpenFailed, match="TLS"):
        uvloop.run(opened())


async def test_a_server_that_speaks_no_websocket_is_an_error():
    async def rude(reader, writer):
        writer.write(b"220 smtp ready\r\n")
        await writer.drain()
        writer.close()

    running = await asyncio.start_server(rude, "127.0.0.1", 0)
    async with running:
        with pytest.raises(OpenFailed):
            await Client().open(f"ws://127.0.0.1:{running.sockets[0].getsockname()[1]}/")


# ---------------------------------------------------------------------------------------------------- frames in pieces


class Wire:
    """A transport that keeps what is written."""

    def __init__(self):
        self.written = b""
        self.paused = self.aborted = False

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False

    def set_write_buffer_limits(self, high):
        pass

    def is_closing(self):
        return self.aborted

    def can_write_eof(self):
        return False

    def write(self, data):
        self.written += data

    def abort(self):
        self.aborted = True


def frame(opcode, data, fin=True):
    return Frame(opcode, data, fin).serialize(mask=False)


messages = st.tuples(
    st.booleans(), st.one_of(st.text(max_size=40), st.sampled_from(["x" * 125, "ü" * 63, "y" * 70_000]))
)


@st.composite
def conversations(draw):
    """(bytes as a server sends them, the messages in them, the pings in them)."""
    data, told, pings = b"", [], 0
    for text, content in draw(st.lists(messages, max_size=6)):
        opcode, payload = (Opcode.TEXT if text else Opcode.BINARY), content.encode()
        cuts = sorted(draw(st.lists(st.integers(0, len(payload)), max_size=2)))
        parts = [payload[a:b] for a, b in itertools.pairwise([0, *cuts, len(payload)])]
        for number, part in enumerate(parts):
            data += frame(opcode if number == 0 else Opcode.CONT, part, number == len(parts) - 1)
            if draw(st.booleans()):
                data += frame(Opcode.PING, b"?")  # allowed between fragments too
                pings += 1
        told.append(content if text else payload)
    return data, told, pings


async def in_pieces(after_handshake, cuts):
    """What a socket tells when the answer to its handshake, and then this, come cut at these places."""
    client, wire = Client(), Wire()
    client.wire = wire
    socket = client.socket = WebSocket("ws://lobby/", (), 1 << 17, client.hear, client.close)
    socket.connection_made(wire)
    lobby = ServerProtocol()
    lobby.receive_data(wire.written)
    (request,) = lobby.events_received()
    lobby.send_response(lobby.accept(request))
    wire.written = b""
    data = b"".join(lobby.data_to_send()) + after_handshake
    places = sorted(cut % (len(data) + 1) for cut in cuts)
    for start, end in itertools.pairwise([0, *places, len(data)]):
        if start < end:
            socket.data_received(data[start:end])
        while wire.paused:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    lobby.receive_data(wire.written)
    return client, lobby.events_received()


@given(conversations(), st.lists(st.integers(0, 1 << 20), max_size=8))
def test_frames_arrive_whole_wherever_the_network_cuts_them(conversation, cuts):
    data, told, pings = conversation
    client, answers = asyncio.run(in_pieces(data, cuts))
    assert client.messages == told
    assert [answer.opcode for answer in answers] == [Opcode.PONG] * pings


FLOOD = frame(Opcode.TEXT, b"") * 100_000


async def test_a_flood_of_frames_leaves_other_connections_their_turns(monkeypatch):
    client, _ = await in_pieces(b"", [])
    moments = itertools.count()
    monkeypatch.setattr(receiving.time, "monotonic", lambda: next(moments) * receiving.TURN_S / 4)
    client.socket.data_received(FLOOD)
    heard = [0, len(client.messages)]
    while client.wire.paused:
        await asyncio.sleep(0)
        heard.append(len(client.messages))
    assert heard[-1] == 100_000
    assert max(after - before for before, after in itertools.pairwise(heard)) < 20_000


async def test_an_error_in_a_later_turn_of_a_flood_drops_the_connection():
    client, _ = await in_pieces(b"", [])
    client.fails_at = 90_000
    errors = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context["exception"]))
    with contextlib.suppress(RuntimeError):
        client.socket.data_received(FLOOD)
    await until(lambda: client.wire.aborted)
    assert errors and len(client.messages) == 90_000


async def test_certificates_are_not_read_for_every_connection(monkeypatch):
    read, make = [], certificates.ssl.create_default_context
    monkeypatch.setattr(certificates.ssl, "create_default_context", lambda: read.append(1) or make())
    monkeypatch.setattr(certificates.time, "monotonic", lambda: 1e12)  # an hour of which nothing is kept
    for _ in range(3):
        with pytest.raises(OpenFailed):
            await Client().open("wss://127.0.0.1:9/")
    assert len(read) == 1


async def test_fragments_without_end_and_without_content_take_no_memory():
    begun = Frame(Opcode.TEXT, b"begun", fin=False).serialize(mask=False)
    client, _ = await in_pieces(begun + Frame(Opcode.CONT, b"", fin=False).serialize(mask=False) * 1000, [])
    assert client.socket.fragments == b"begun"


@pytest.mark.parametrize("cuts", [[], range(1000)], ids=["at once", "byte by byte"])
@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (Frame(Opcode.TEXT, b"{}").serialize(mask=True), 1002),
        (frame(Opcode.CONT, b"{}"), 1002),
        (frame(Opcode.TEXT, b"begun", fin=False) + frame(Opcode.TEXT, b"{}"), 1002),
        (b"\xc1\x00", 1002),
        (b"\x81\x7f" + (1 << 40).to_bytes(8, "big"), 1009),
        (frame(Opcode.TEXT, b"\xff"), 1007),
    ],
    ids=["masked", "no beginning", "no end", "reserved bit", "too long", "not UTF-8"],
)
@pytest.mark.parametrize("behind", [frame(Opcode.TEXT, b"behind"), b""], ids=["more", "no more"])
async def test_a_bad_frame_ends_the_connection_and_nothing_behind_it_is_heard(bad, code, cuts, behind):
    client, answers = await in_pieces(frame(Opcode.TEXT, b"good") + bad + behind, cuts)
    assert client.messages == ["good"]
    assert [int.from_bytes(answer.data[:2], "big") for answer in answers] == [code]
