"""An adapter that returns nonsense costs its connection, and the log says which adapter and why."""

import asyncio
import functools
import time

import msgspec
import pytest
import structlog.testing
from websockets.asyncio.server import serve

from bothost import messages as m
from bothost import rules
from bothost.config import MannersSettings, RouteSettings
from bothost.host.connection import Connection
from bothost.host.reconnect import ConnectionSettings
from bothost.host.transport import HttpCalls, Sender
from bothost.lobbies.base import Account
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions
from bothost.testing.hosting import until


class Broken(EmbeddedLobby):
    """Its ``feed`` returns what the test wants."""

    name = "broken"
    answer = None

    def feed(self, item):
        return self.answer


class Owner:
    """Keeps what the connection reports."""

    def __init__(self):
        self.events = []

    def event(self, event, now):
        self.events.append(event)

    def known_tables(self):
        return ()

    def memo(self):
        return {}

    def remember(self, memo):
        raise AssertionError("nothing is remembered")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (None, "feed returned NoneType"),
        (m.Alive(), "feed returned Alive"),
        ("connected", "feed returned str"),
        ([m.Connected("ada"), m.Delta("t", "h", "1", ())], "Delta.seq is str"),
        ([m.Snapshot("t", "h", 0, {"board": ""})], "Snapshot.view needs the key seq"),
    ],
)
async def test_the_log_names_adapter_and_cause(answer, cause):
    adapter, owner = Broken(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions()), Owner()
    adapter.answer = answer
    connection = Connection(adapter, owner, ConnectionSettings(backoff_first_s=60.0))
    with structlog.testing.capture_logs() as logs:
        connection.start()
    (failed,) = [line for line in logs if line["event"] == "adapter_failed"]
    assert failed["adapter"] == "broken" and cause in failed["cause"]
    assert owner.events == [m.Disconnected("the adapter failed")], "nothing of a bad answer is performed"
    await connection.aclose()


async def test_a_lobby_that_sends_nonsense_all_the_time_does_not_fill_the_log(kit):
    settings = kit.settings(accounts=1)
    host = kit.host(settings)
    account = await host.make_account(settings.lobbies[0], settings.lobbies[0].accounts[0])
    with structlog.testing.capture_logs() as logs:
        for number in range(1000):
            account.event(m.Unknown(f"nonsense {number}"), 1.0)
        account.event(m.Notice("much later"), 100.0)
        for number in range(100):
            account.event(m.Unknown(f"nonsense {number}"), 101.0)
        account.close()
    await host.aclose()
    shown = [line for line in logs if line["event"] == "frame_not_understood"]
    assert [line["frame"] for line in shown] == [f"nonsense {number}" for number in (*range(60), *range(60))]
    left_out = [line["lines"] for line in logs if line["event"] == "lobby_lines_left_out"]
    assert left_out == [1, 939, 40], "the first at once, then at most once a minute, the rest at the end"
    assert [line["text"] for line in logs if line["event"] == "lobby_notice"] == ["much later"]


SEAT = m.Seated("t", "doudizhu", rules.game("doudizhu").rules, 0)
PAIRING = m.Seated("t", "pairing", rules.game("pairing").rules, 0)
BOB = (m.PlayerInfo("bob", None),)


@pytest.mark.parametrize(
    ("line", "nonsense"),
    [
        ("seat_declined", lambda number: [m.Seated(f"t-{number}", "no-such-game", {}, 0)]),
        ("table_given_up", lambda number: [SEAT, m.HandStarted("t", f"h-{number}", 99, ())]),
        ("no_strategy", lambda number: [PAIRING, m.HandStarted("t", f"h-{number}", 0, ())]),
        ("challenge_declined", lambda number: [m.Invitation(f"i-{number}", m.TableInfo("t", "doudizhu"), 5.0, BOB)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_lobby_that_always_does_the_same_does_not_fill_the_log(kit, line, nonsense):
    settings = kit.settings(accounts=1, routes=(RouteSettings(strategy="test-random", game="doudizhu"),))
    (lobby,) = settings.lobbies
    host = kit.host(settings)
    manners = MannersSettings(block=("bob",))
    account = await host.make_account(lobby, msgspec.structs.replace(lobby.accounts[0], manners=manners))
    with structlog.testing.capture_logs() as logs:
        for number in range(1000):
            for event in nonsense(number):
                account.event(event, time.monotonic())
    await host.aclose()
    assert 0 < sum(entry["event"] == line for entry in logs) <= 62


async def test_a_full_queue_is_logged_once():
    sent = []
    sender = Sender(sent.append, 2.0, 10, "ada")
    with structlog.testing.capture_logs() as logs:
        for number in range(1000):
            sender.send(m.SendFrame(1, str(number)))
    sender.close()
    assert [entry["event"] for entry in logs] == ["send_queue_full"]


async def test_a_frame_is_reported_when_it_is_sent_and_never_if_it_is_dropped():
    sent, reported = [], []
    sender = Sender(lambda frame: sent.append(frame.data) or frame.conn == 1, 2.0, 3, "ada")
    for name in ("at once", "later", "to a closed socket", "at the end", "too much"):
        sender.send(m.SendFrame(2 if name == "to a closed socket" else 1, name))
        sender.after(functools.partial(reported.append, name))
    assert sent == reported == ["at once"]
    await until(lambda: len(sent) > 2)
    sender.close()
    assert reported == [name for name in sent if name != "to a closed socket"] and "too much" not in sent


@pytest.mark.parametrize("answer", [[], None], ids=["plays", "fails"])
async def test_a_move_at_which_the_adapter_fails_is_not_sent(answer):
    adapter = Broken(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions())
    adapter.answer = [m.Connected("ada", resumed=False)]
    connection = Connection(adapter, Owner(), ConnectionSettings(backoff_first_s=60.0))
    connection.start()
    adapter.answer, sent = answer, []
    connection.act(m.Act("t", "1", ("a",)), lambda: sent.append(True))
    assert sent == ([] if answer is None else [True])
    adapter.answer = []
    await connection.aclose()


class FailsAfterLogin(EmbeddedLobby):
    """Logs in, then fails at once, every time."""

    name = "fails-after-login"
    logins = 0

    def feed(self, item):
        if isinstance(item, m.Close):
            return []
        self.logins += 1
        return [m.Connected("ada", resumed=False), m.Delta("t", "h", "1", ())] if self.broken else self.then()

    broken = True


async def reconnecting(adapter, settings, event, count):
    """Connect, and watch until the log has so many of these events. Returns them."""
    connection = Connection(adapter, Owner(), settings)
    with structlog.testing.capture_logs() as logs:
        connection.start()
        await until(lambda: sum(line["event"] == event for line in logs) >= count)
        await asyncio.sleep(0.1)
    await connection.aclose()
    return [line for line in logs if line["event"] == event]


async def test_an_adapter_that_fails_after_each_login_does_not_storm_the_lobby():
    adapter = FailsAfterLogin(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions())
    settings = ConnectionSettings(backoff_first_s=0.01, backoff_most_s=0.01, quarantine_after=3, quarantine_s=60.0)
    assert len(await reconnecting(adapter, settings, "adapter_quarantined", 1)) == 1
    assert adapter.logins == 3


class FailsAtFrames(EmbeddedLobby):
    """Fails at every frame."""

    name = "fails-at-frames"
    frames = 0

    def feed(self, item):
        if isinstance(item, m.Frame):
            self.frames += 1
            raise RuntimeError("broken")
        return [m.OpenSocket(1, self.account.url)] if isinstance(item, m.Authenticate) else []


async def test_what_arrived_together_with_the_frame_that_an_adapter_fails_at_is_dropped():
    async def talk(socket):
        socket.transport.write(b"\x81\x01x" * 1000)  # text frames
        await socket.wait_closed()

    async with serve(talk, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"
        adapter = FailsAtFrames(Account(name="ada", url=url), EmbeddedOptions())
        connection = Connection(adapter, Owner(), ConnectionSettings(backoff_first_s=60.0))
        connection.start()
        await until(lambda: connection.sockets.frames > 1)
        assert adapter.frames == 1
        await connection.aclose()


class DropsAfterLogin(FailsAfterLogin):
    """The lobby takes the login, then ends the session, every time."""

    name = "drops-after-login"
    broken = False

    def then(self):
        return [m.Connected("ada", resumed=False), m.Disconnected("bye")]


async def test_a_login_alone_does_not_make_the_next_reconnect_quick(monkeypatch):
    monkeypatch.setattr("random.Random.uniform", lambda self, low, high: high)
    adapter = DropsAfterLogin(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions())
    lost = await reconnecting(adapter, ConnectionSettings(backoff_first_s=0.05, backoff_most_s=60.0), "disconnected", 4)
    assert [line["retry_s"] for line in lost[:4]] == [0.05, 0.1, 0.2, 0.4]


async def test_progress_makes_the_next_reconnect_quick_again(monkeypatch):
    monkeypatch.setattr("random.Random.uniform", lambda self, low, high: high)
    adapter = DropsAfterLogin(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions())
    steady = ConnectionSettings(backoff_first_s=0.05, backoff_most_s=60.0, steady_s=0.0)
    lost = await reconnecting(adapter, steady, "disconnected", 4)
    assert {line["retry_s"] for line in lost} == {0.05}, "every session stood for steady_s"


class Unreachable(EmbeddedLobby):
    """A lobby that is away until ``back`` is set; counts attempts."""

    name = "unreachable"
    back = False
    retry_after_s = None

    def __init__(self, account, options):
        super().__init__(account, options)
        self.attempts = 0

    def feed(self, item):
        if isinstance(item, m.Authenticate | m.Resume):
            self.attempts += 1
            if self.back:
                return [m.Connected("ada", resumed=False)]
            return [m.Disconnected("away", self.retry_after_s)]
        return []


@pytest.fixture
def away(monkeypatch):
    """A connection that waits a minute for its next attempt."""
    monkeypatch.setattr("random.Random.uniform", lambda self, low, high: high / 100.0 if high <= 1.0 else high)

    def make(retry_after_s=None):
        adapter = Unreachable(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions())
        adapter.retry_after_s = retry_after_s
        connection = Connection(adapter, Owner(), ConnectionSettings(backoff_first_s=60.0))
        connection.start()
        return connection, adapter

    return make


async def test_when_another_account_gets_through_the_next_attempt_comes_at_once(away):
    connection, adapter = away()
    adapter.back = True
    connection.hurry()
    await until(lambda: connection.connected)
    assert adapter.attempts == 2
    await connection.aclose()


async def test_an_outage_is_cut_short_only_once(away):
    connection, adapter = away()
    connection.hurry()
    await until(lambda: adapter.attempts == 2)
    for _ in range(4):
        connection.hurry()
        await asyncio.sleep(0.05)
    assert adapter.attempts == 2, "or accounts that come and go would have the others storm the lobby"
    await connection.aclose()


async def test_a_lobby_that_says_when_to_come_back_is_not_asked_earlier(away):
    connection, adapter = away(retry_after_s=30.0)
    connection.hurry()
    await asyncio.sleep(0.05)
    assert adapter.attempts == 1
    await connection.aclose()


class Refuses(EmbeddedLobby):
    """Accepts the first login, ends the connection at a ping, and refuses the later logins."""

    name = "refuses"
    refused = 0

    def feed(self, item):
        if isinstance(item, m.Authenticate):
            return [m.Connected("ada")]
        if isinstance(item, m.Resume):
            self.refused += 1
            return [m.AuthFailed("the accounts are not loaded yet")]
        return [m.Disconnected("it restarts")] if isinstance(item, m.Ping) else []


async def test_a_lobby_that_refuses_a_good_login_is_not_asked_earlier_because_another_account_got_through(monkeypatch):
    monkeypatch.setattr("random.Random.uniform", lambda self, low, high: high / 100.0)
    adapter = Refuses(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions())
    connection = Connection(adapter, Owner(), ConnectionSettings())
    connection.start()
    connection.feed(m.Ping())
    await until(lambda: adapter.refused == 1)
    connection.hurry()
    await asyncio.sleep(0.1)
    assert adapter.refused == 1, "it has refused_s of time"
    await connection.aclose()


class Slow(EmbeddedLobby):
    """Its login gets through when the test says so, even if we gave up on it."""

    name = "slow"

    def __init__(self, account, options):
        super().__init__(account, options)
        self.inputs = []

    def feed(self, item):
        self.inputs.append(item)
        return [m.Connected("ada")] if isinstance(item, m.TimerFired) else []


async def test_a_login_that_gets_through_late_is_not_followed_by_another(monkeypatch):
    monkeypatch.setattr("random.Random.uniform", lambda self, low, high: high)
    adapter, owner = Slow(Account(name="ada", url="ws://127.0.0.1:9/"), EmbeddedOptions()), Owner()
    connection = Connection(adapter, owner, ConnectionSettings(connect_s=0.05, backoff_first_s=0.1))

    def lost(event, now):
        if isinstance(event, m.Disconnected):
            asyncio.get_running_loop().call_soon(connection.feed, m.TimerFired("the answer to the login"))

    owner.event = lost
    connection.start()
    await until(lambda: connection.connected)
    await asyncio.sleep(0.3)
    assert connection.connected and not any(isinstance(item, m.Resume) for item in adapter.inputs)
    await connection.aclose()


async def test_an_answer_that_drips_for_ever_is_given_up():
    """Ten of them would hold all connections of the account."""

    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b".")
            await asyncio.sleep(0.05)
        closed.set()

    closed = asyncio.Event()

    results = []
    calls = HttpCalls(results.append)
    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    calls.request(m.HttpRequest(1, "GET", f"http://127.0.0.1:{port}/", timeout_s=0.3))
    await until(lambda: results)
    assert results == [m.HttpResult(1, 0, (), b"TimeoutError")]
    calls.request(m.HttpRequest(2, "GET", f"http://127.0.0.1:{port}/", (("Authorization", "Bearer é"),)))
    await until(lambda: len(results) == 2)
    assert results[1] == m.HttpResult(2, 0, (), b"UnicodeEncodeError")
    await calls.aclose()
    await closed.wait()
    server.close()


async def test_cookies_without_end_do_not_make_the_requests_grow():
    async def set_cookie(reader, writer):
        handlers.append(asyncio.current_task())
        while not reader.at_eof():
            requests.append(await reader.readline())
            while (line := await reader.readline()).strip():
                requests[-1] += line
            cookie = b"Set-Cookie: c%d=%s\r\n" % (len(requests), b"x" * 3000)
            writer.write(b"HTTP/1.1 200 OK\r\n" + cookie + b"Content-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    handlers, requests, results = [], [], []
    calls = HttpCalls(results.append)
    server = await asyncio.start_server(set_cookie, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for number in range(10):
        calls.request(m.HttpRequest(number, "GET", f"http://127.0.0.1:{port}/"))
        await until(lambda count=number + 1: len(results) == count)
    await calls.aclose()
    server.close()
    await asyncio.gather(*handlers)
    assert b"c1=" in requests[1]
    assert max(map(len, requests)) < 10_000


class Chats(EmbeddedLobby):
    """Its lobby goes silent after the login, but its chat server and its web server do not."""

    name = "chats"

    def feed(self, item):
        match item:
            case m.Authenticate():
                return [m.OpenSocket(1, self.account.url)]
            case m.SocketOpened(conn=1):
                return [m.OpenSocket(2, f"{self.account.url}chat"), m.Connected("ada")]
            case m.Frame():
                return [m.HttpRequest(1, "GET", self.account.url.replace("ws:", "http:"), (), b"", 1.0)]
            case m.SocketClosed(conn=1):
                return [m.Disconnected(item.reason)]
        return []


async def test_what_its_chat_and_web_servers_send_is_no_sign_of_life_of_a_lobby():
    async def talk(connection):
        while connection.request.path == "/chat":
            await connection.send("hello")
            await asyncio.sleep(0.01)
        await connection.wait_closed()

    def answer(connection, request):
        return None if "Upgrade" in request.headers else connection.respond(200, "rooms")

    async with serve(talk, "127.0.0.1", 0, process_request=answer) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"
        owner = Owner()
        connection = Connection(
            Chats(Account(name="ada", url=url), EmbeddedOptions()), owner, ConnectionSettings(heartbeat_s=0.1)
        )
        connection.start()
        await until(lambda: m.Disconnected("no sign of life") in owner.events)
        await connection.aclose()
