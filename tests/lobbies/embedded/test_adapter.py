"""The adapter of the embedded lobby: sockets, sessions, gaps, and every capability that it declares."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from memory_lobby import MemoryLobby, RandomClient

from bothost import messages as m
from bothost.lobbies import bothost_lobbies
from bothost.lobbies.base import Account, Capabilities
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions
from bothost.lobbies.embedded import protocol as wire

ACCOUNT = Account(name="ada", url="ws://lobby.example:1/ws", token="planted-secret", user_agent="bot/1")
LIMITS = wire.Limits(1, 1.0, 1, 1)


def frame(message, conn=1):
    return m.Frame(conn, wire.encode(message).decode())


def said(outputs):
    return [wire.decode_client(o.data) for o in outputs if isinstance(o, m.SendFrame)]


def new(**options):
    return EmbeddedLobby(ACCOUNT, EmbeddedOptions(**options))


def ready(**memo):
    """Logged in, nothing else."""
    adapter = new()
    adapter.feed(m.Authenticate(memo))
    adapter.feed(m.SocketOpened(1))
    adapter.feed(frame(wire.Welcome(1, "ada", "session-1", LIMITS, bool(memo))))
    return adapter


def playing():
    """At table t, hand 1, seat 0, with five events."""
    adapter = ready()
    adapter.feed(frame(wire.Seated("t", "claims", {}, 0, ())))
    adapter.feed(frame(wire.HandStarted("t", "1", 0, ())))
    adapter.feed(frame(wire.Events("t", "1", 0, ("e0", "e1", "e2", "e3", "e4"))))
    return adapter


# ----------------------------------------------------------------------------------------------------------- sockets


def test_logging_in_step_by_step():
    adapter = new(hello_timeout_s=3.0)
    assert adapter.feed(m.Authenticate()) == [m.OpenSocket(1, ACCOUNT.url), m.SetTimer("hello", 3.0)]
    assert said(adapter.feed(m.SocketOpened(1))) == [wire.Hello(1, "planted-secret", "bot/1")]
    assert adapter.feed(frame(wire.Welcome(1, "ada", "session-1", LIMITS))) == [
        m.CancelTimer("hello"),
        m.Remember({"session": "session-1"}),
        m.Connected("ada", False, "ada"),
    ]


def test_nothing_is_told_of_tables_before_we_are_logged_in():
    adapter = new()
    adapter.feed(m.Authenticate())
    adapter.feed(m.SocketOpened(1))
    assert adapter.feed(frame(wire.Seated("t", "claims", {}, 0, ()))) == []
    assert adapter.feed(frame(wire.TableEnded("t", "normal"))) == []


def test_a_memo_makes_it_the_same_session():
    adapter = new()
    adapter.feed(m.Authenticate({"session": "session-1"}))
    assert said(adapter.feed(m.SocketOpened(1)))[0].session == "session-1"
    outputs = adapter.feed(frame(wire.Welcome(1, "ada", "session-1", LIMITS, True)))
    assert outputs == [m.CancelTimer("hello"), m.Connected("ada", True, "ada")]


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        ("ws://h:1", "ws://h:1/ws"),
        ("ws://h:1/", "ws://h:1/ws"),
        ("wss://h/lobby/ws", "wss://h/lobby/ws"),
        ("http://h:1", "ws://h:1/ws"),
        ("https://h/lobby/ws", "wss://h/lobby/ws"),
    ],
)
def test_a_url_without_a_path_means_the_usual_one_and_http_means_a_websocket(url, opened):
    adapter = EmbeddedLobby(Account(name="ada", url=url), EmbeddedOptions())
    assert adapter.feed(m.Authenticate())[0] == m.OpenSocket(1, opened)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (m.SocketFailed(1, 0, "refused"), m.Disconnected("no connection: refused")),
        (m.SocketFailed(1, 502, "bad gateway"), m.Disconnected("HTTP 502: bad gateway")),
        (m.SocketFailed(1, 403, "forbidden"), m.AuthFailed("HTTP 403: forbidden")),
        (m.SocketClosed(1, 1006), m.Disconnected("closed with 1006")),
        (m.SocketClosed(1, wire.CLOSE_AUTH, "bad token"), m.AuthFailed("bad token")),
        (m.SocketClosed(1, wire.CLOSE_SUPERSEDED, "superseded"), m.Superseded("superseded")),
        (m.SocketClosed(1, wire.CLOSE_RATE, "rate"), m.Disconnected("closed with 4429: rate", 5.0)),
        (m.SocketClosed(1, wire.CLOSE_FULL, "full"), m.Disconnected("closed with 4503: full", 5.0)),
        (m.TimerFired("hello"), m.Disconnected("the lobby does not answer our hello")),
    ],
)
def test_every_end_of_a_connection_is_told_once(end, told):
    adapter = new()
    adapter.feed(m.Authenticate())
    assert adapter.feed(end)[-1] == told
    assert adapter.feed(end) == []
    assert adapter.feed(m.SocketClosed(1, 1006)) == []


def test_what_the_lobby_said_before_it_closed_is_the_reason():
    adapter = new()
    adapter.feed(m.Authenticate())
    adapter.feed(frame(wire.Error("bad_version", "this server speaks version 2", "$.v")))
    (_, told) = adapter.feed(m.SocketClosed(1, wire.CLOSE_PROTOCOL, ""))
    assert told == m.Disconnected("this server speaks version 2 (bad_version)")


def test_frames_of_an_old_socket_are_not_heard():
    adapter = playing()
    adapter.feed(m.SocketClosed(1, 1006))
    assert adapter.feed(m.Resume(("t",)))[0] == m.OpenSocket(2, ACCOUNT.url)
    assert adapter.feed(frame(wire.Events("t", "1", 5, ("e5",)), conn=1)) == []
    assert adapter.feed(m.SocketClosed(1, 1006)) == []
    assert adapter.feed(m.SocketOpened(1)) == []


def test_a_resume_says_how_far_we_got():
    adapter = playing()
    adapter.feed(m.SocketClosed(1, 1006))
    adapter.feed(m.Resume(("t", "u")))
    (hello,) = said(adapter.feed(m.SocketOpened(2)))
    assert hello.session == "session-1"
    assert hello.known == {"t": wire.Known("1", 5), "u": wire.Known()}


def test_seeks_end_with_the_connection():
    adapter = ready()
    adapter.feed(m.Seek("s", m.Wish("claims")))
    outputs = adapter.feed(m.SocketClosed(1, 1006))
    assert outputs[1:] == [m.SeekEnded("s", "disconnected"), m.Disconnected("closed with 1006")]
    assert adapter.feed(m.Seek("s", m.Wish("claims"))) == [m.SeekEnded("s", "not connected")]


def test_nothing_is_said_after_close():
    adapter = playing()
    assert adapter.feed(m.Close())[0] == m.CloseSocket(1, 1000, "bye")
    for item in (m.SocketClosed(1, 1000), m.Close(), m.Ping(), m.Act("t", "r1", ("x",)), frame(wire.Pong())):
        assert adapter.feed(item) == []


# ---------------------------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (m.ListTables("claims"), wire.List("claims")),
        (
            m.Seek("s", m.Wish("claims", {"seats": 3}, {"level": 2})),
            wire.Seek("s", "claims", {"seats": 3}, {"level": 2}),
        ),
        (m.CancelSeek("s"), wire.Cancel("s")),
        (
            m.Create("s", m.Wish("claims", {}, {"private": True, "password": "p"})),
            wire.Create("s", "claims", {}, {"private": True}, "p"),
        ),
        (m.Join("s", "t", {"password": "p"}), wire.Join("s", "t", "p")),
        (m.Accept("s", "i"), wire.Accept("i")),
        (m.Decline("i"), wire.Decline("i")),
        (m.Act("t", "r1", ("pass",)), wire.Act("t", "r1", "pass")),
        (m.Resign("t"), wire.Resign("t")),
        (m.Leave("t"), wire.Leave("t")),
        (m.Say("t", "hello"), wire.Say("t", "hello")),
        (m.Resync("t"), wire.Sync("t", "1", 5)),
        (m.Ping(), wire.Ping()),
    ],
)
def test_every_command_is_one_frame(command, word):
    assert said(playing().feed(command)) == [word]


@pytest.mark.parametrize("command", [m.Ready("t"), m.Start("t"), m.Resync("elsewhere")])
def test_commands_that_need_no_word(command):
    assert playing().feed(command) == []


# ------------------------------------------------------------------------------------------------------------ frames


def test_the_hot_frame():
    adapter = playing()
    item = frame(wire.Events("t", "1", 5, ("e5", "e6"), "r1", wire.Ask("r2", 5000, 30_000)))
    assert adapter.feed(item) == [
        m.Delta("t", "1", 5, ("e5", "e6")),
        m.MoveAcknowledged("t", "r1"),
        m.ActionRequest("t", "1", "r2", 5000, 30_000, 7, None, item.data),
    ]


@pytest.mark.parametrize(
    ("message", "events"),
    [
        (wire.Pong(), [m.Alive()]),
        (wire.Superseded("other"), [m.Superseded("other")]),
        (wire.Waiting("s", "t", 3, 1), []),
        (wire.SeekEnded("s", "cancelled"), [m.SeekEnded("s", "cancelled")]),
        (
            wire.Tables((wire.TableInfo("u", "claims", free=2),)),
            [m.Tables((m.TableInfo("u", "claims", free_seats=2),))],
        ),
        (
            wire.Invitation("i", "s", wire.TableInfo("u", "claims"), 20_000),
            [m.Invitation("i", m.TableInfo("u", "claims"), 20.0, seek="s")],
        ),
        (
            wire.Rejected("t", "r1", "illegal", "no", wire.Ask("r2", 10, 20)),
            [m.Rejected("t", "r1", "illegal: no"), m.ActionRequest("t", "1", "r2", 10, 20, 5)],
        ),
        (wire.Rejected("t", "r1", "stale", "gone"), [m.Rejected("t", "r1", "stale: gone")]),
        (wire.Withdrawn("t", "r1", "over"), [m.RequestWithdrawn("t", "r1", "over")]),
        (wire.ServerActed("t", "r1", "pass", "timeout"), [m.ServerActedForUs("t", "r1", "pass")]),
        (wire.Resigned("t", "1", 1), [m.ServerActedFor("t", "1", 1)]),
        (wire.Presence("t", "bob", 1, False), [m.Presence("t", 1, False)]),
        (wire.HandEnded("t", "1", (1.0, -1.0)), [m.HandEnded("t", "1", (1.0, -1.0))]),
        (
            wire.HandEnded("t", "1", None, "void", (1,)),
            [m.ServerActedFor("t", "1", 1), m.HandEnded("t", "1", None, "void")],
        ),
        (wire.Chat("t", "bob", "hello"), [m.Chat("t", "bob", "hello")]),
        (wire.Error("chat_limited", "slow down", "$.text", table="t"), [m.Notice("slow down (chat_limited)", "error")]),
        (wire.TableEnded("t", "left", None, "bye"), [m.TableEnded("t", "left", None, None, "bye")]),
        (wire.Error("internal", "a bug"), [m.Notice("a bug (internal)", "error")]),
        (wire.Error("rate_limited", "slow down", retry_ms=700), [m.Throttled(0.7)]),
        (
            wire.Error("unknown_table", "gone", "$.table", table="t"),
            [m.TableEnded("t", "aborted", detail="gone (unknown_table)")],
        ),
    ],
)
def test_every_frame_is_told(message, events):
    heard = playing().feed(frame(message))
    for event in heard:
        if isinstance(event, m.ActionRequest):
            assert event.raw
    assert [msgspec.structs.replace(e, raw=None) if isinstance(e, m.ActionRequest) else e for e in heard] == events


def test_tables_that_we_left_are_forgotten_and_what_still_comes_from_them_is_ignored():
    """A lobby that seats us again and again would fill the memory, and the next hello with tables."""
    adapter = playing()
    for number in range(1000):
        adapter.feed(frame(wire.Seated(f"t-{number}", "claims", {}, 0, ())))
        adapter.feed(m.Leave(f"t-{number}"))
    gone = wire.Error("unknown_table", "you do not sit at this table", "$.table", table="t-999")
    for late in (wire.Events("t-999", "1", 0, ("e0",)), wire.Presence("t-999", "bob", 1, True), gone):
        assert adapter.feed(frame(late)) == []
    assert adapter.feed(frame(wire.TableEnded("t-999", "left"))) == [m.TableEnded("t-999", "left")]
    assert isinstance(adapter.feed(frame(wire.Events("other", "1", 0, ("e0",))))[0], m.Unknown)
    adapter.feed(m.Resume(("t",)))
    assert said(adapter.feed(m.SocketOpened(2)))[0].known.keys() == {"t"}


def test_a_refused_seek_has_ended():
    adapter = ready()
    adapter.feed(m.Seek("s", m.Wish("chess")))
    error = wire.Error("unknown_game", "this lobby plays go", "$.game", seek="s")
    assert adapter.feed(frame(error)) == [m.SeekEnded("s", "this lobby plays go (unknown_game)")]
    assert adapter.feed(frame(error)) == []


def test_a_seek_that_came_too_fast_has_ended_too():
    adapter = ready()
    adapter.feed(m.Seek("s", m.Wish("claims")))
    told = adapter.feed(frame(wire.Error("rate_limited", "slow down", seek="s", retry_ms=700)))
    assert told == [m.Throttled(0.7), m.SeekEnded("s", "slow down (rate_limited)")]


@given(st.one_of(st.text(max_size=50), st.binary(max_size=50), st.just("[" * 100_000)))
def test_garbage_is_unknown_and_never_fatal(data):
    assume("pong" not in str(data))  # the shortest valid frame; hypothesis takes words from the sources
    (event,) = playing().feed(m.Frame(1, data))
    assert isinstance(event, m.Unknown)
    assert len(event.raw) <= 2000


HUGE = 10**400


@pytest.mark.parametrize(
    "message",
    [
        wire.Error("rate_limited", "slow down", retry_ms=HUGE),
        wire.Invitation("i", "s", wire.TableInfo("t", "claims"), HUGE),
        wire.Events("t", "1", 5, ("e5",), None, wire.Ask("r", HUGE)),
        wire.Events("t", "1", 5, ("e5",), None, wire.Ask("r", 0, HUGE)),
    ],
)
def test_times_that_no_float_can_hold_are_unknown(message):
    (told,) = playing().feed(frame(message))
    assert isinstance(told, m.Unknown)


@pytest.mark.parametrize("seq", [-1, 2**63])
def test_numbers_of_events_that_cannot_be_are_unknown(seq):
    for message in (wire.Snapshot("t", "1", 0, seq, {}), wire.Events("t", "1", seq, ("e0",))):
        (told,) = playing().feed(frame(message))
        assert isinstance(told, m.Unknown)


@pytest.mark.parametrize("inner", [-1, "x", None, 9])
def test_the_number_of_events_of_the_frame_counts(inner):
    (told,) = playing().feed(frame(wire.Snapshot("t", "1", 0, 5, {"seq": inner})))
    assert told == m.Snapshot("t", "1", 0, {"seq": 5})


@pytest.mark.parametrize(
    "message",
    [
        wire.Events("elsewhere", "1", 0, ("e0",)),
        wire.HandStarted("elsewhere", "1", 0, ()),
        wire.Snapshot("elsewhere", "1", 0, 0, {}),
        wire.HandEnded("elsewhere", "1", None),
    ],
)
def test_frames_of_unknown_tables_are_unknown(message):
    assert isinstance(playing().feed(frame(message))[0], m.Unknown)


def test_the_end_of_a_table_that_we_never_had_is_not_told():
    adapter = playing()
    assert adapter.feed(frame(wire.TableEnded("elsewhere", "normal"))) == []
    assert adapter.feed(frame(wire.TableEnded("t", "normal")))
    assert adapter.feed(frame(wire.TableEnded("t", "normal"))) == []


def test_fields_and_types_of_later_servers_are_ignored():
    adapter = playing()
    later = '{"type":"events","table":"t","hand":"1","seq":5,"events":["e5"],"mood":"sunny"}'
    assert adapter.feed(m.Frame(1, later)) == [m.Delta("t", "1", 5, ("e5",))]
    assert isinstance(adapter.feed(m.Frame(1, '{"type":"weather"}'))[0], m.Unknown)


# -------------------------------------------------------------------------------------------------------------- gaps


def test_what_comes_twice_is_told_once():
    adapter = playing()
    again = frame(wire.Events("t", "1", 3, ("e3", "e4"), None, wire.Ask("r1")))
    assert adapter.feed(again) == []
    assert adapter.feed(frame(wire.Welcome(1, "ada", "session-2", LIMITS))) == []


def test_a_gap_is_mended_before_anything_else_is_told():
    adapter = playing()
    assert said(adapter.feed(frame(wire.Events("t", "1", 7, ("e7",), None, wire.Ask("r2"))))) == [
        wire.Sync("t", "1", 5)
    ]
    assert adapter.feed(frame(wire.Events("t", "1", 8, ("e8",)))) == []
    assert adapter.feed(frame(wire.HandEnded("t", "1", None))) == []
    assert adapter.feed(frame(wire.Events("t", "1", 5, ("e5", "e6", "e7", "e8")))) == [
        m.Delta("t", "1", 5, ("e5", "e6", "e7", "e8"))
    ]
    snapshot = frame(wire.Snapshot("t", "1", 0, 9, {"x": 1}, wire.Ask("r2", 100, 5)))
    assert adapter.feed(snapshot) == [
        m.Snapshot("t", "1", 0, {"seq": 9, "x": 1}),
        m.ActionRequest("t", "1", "r2", 100, 5, 9, None, snapshot.data),
    ]
    assert adapter.feed(frame(wire.HandEnded("t", "1", None))) == [m.HandEnded("t", "1", None)]
    assert adapter.feed(frame(wire.HandEnded("t", "1", None))) == []


@given(st.lists(st.sampled_from(["next", "gap", "twice", "sync"]), max_size=40))
def test_deltas_never_have_a_gap(steps):
    adapter, sent, told = playing(), 5, 5
    for step in steps:
        match step:
            case "next":
                outputs = adapter.feed(frame(wire.Events("t", "1", sent, (f"e{sent}",))))
                sent += 1
            case "gap":
                sent += 1
                continue
            case "twice":
                outputs = adapter.feed(frame(wire.Events("t", "1", sent - 1, (f"e{sent - 1}",))))
            case _:
                missed = tuple(f"e{n}" for n in range(told, sent))
                outputs = adapter.feed(frame(wire.Events("t", "1", told, missed)))
        for output in outputs:
            if isinstance(output, m.Delta):
                assert output.seq == told
                assert output.events == tuple(f"e{n}" for n in range(told, told + len(output.events)))
                told += len(output.events)
    assert told <= sent


# ------------------------------------------------------------------------------------------------------ capabilities


def memory(**settings):
    lobby = MemoryLobby({"ada": "token-of-ada", "bob": "token-of-bob"}, robots_after_s=0.0, **settings)
    return lobby, RandomClient(lobby.shell("ada"), acts=False)


def kinds(client):
    return {type(event) for event in client.shell.events}


def proven(name, value):
    """Play against the real core and see whether the capability is as declared."""
    lobby, ada = memory()
    ada.start(*[m.Wish("claims", {}, {"hands": 2, "robots": True})] * (3 if name == "tables_per_connection" else 1))
    lobby.run()
    table = next(iter(ada.asked))
    match name:
        case "games":
            return value == ("*",) and set(lobby.core.waiting.shelf.names) > {"claims", "doudizhu"}
        case "tables_per_connection":
            return value is None and len(ada.views) == 3
        case "connections_per_identity":
            RandomClient(lobby.shell("ada")).start()
            lobby.run()
            return value == 1 and m.Superseded in kinds(ada)
        case "acks_moves":
            request = ada.asked[table]
            ada.answer(table)
            lobby.run()
            return value and m.MoveAcknowledged(table, request.request_id) in ada.shell.events
        case "rejects_illegal":
            ada.shell.do(m.Act(table, ada.asked[table].request_id, ("nonsense",)))
            lobby.run()
            return value == "error" and m.Rejected in kinds(ada)
        case "sends_turn":
            return value and ada.asked[table].seq == ada.views[table].seq
        case "sends_legal_actions":
            return value is False and ada.asked[table].legal is None
        case "takes_composites":
            try:
                ada.shell.adapter.feed(m.Act(table, "r1", ("a", "b")))
            except ValueError:
                return value is False
        case "clock":
            request = ada.asked[table]
            return value == "bank_and_step" and request.grant_ms == 5000 and request.bank_ms == 30_000
        case "resume" | "resume_delivers":
            ada.shell.drop()
            lobby.run()
            fresh = RandomClient(lobby.shell("ada"), acts=False)
            fresh.start()
            lobby.run()
            return value in ("identity", "snapshot") and m.Snapshot in kinds(fresh) and table in fresh.asked
        case "chat":
            bob = RandomClient(lobby.shell("bob"), acts=False)
            for player in (ada, bob):
                player.start(m.Wish("othello", {}, {"robots": False}))
            lobby.run()
            shared = next(name for name, view in bob.views.items())
            ada.shell.do(m.Say(shared, "hello"))
            lobby.run()
            return value and m.Chat(shared, "ada", "hello") in bob.shell.events and m.Chat not in kinds(ada)
        case "needs_secret":
            lobby.settings.tokens["cyd"] = "secret-of-cyd"
            nameless = RandomClient(
                lobby.shell("cyd", EmbeddedLobby(Account(name="cyd", url="ws://x"), EmbeddedOptions()))
            )
            nameless.start()
            lobby.run()
            return value is True and m.AuthFailed in kinds(nameless)
        case "heartbeat":
            ada.shell.do(m.Ping())
            lobby.run()
            return value == "app" and m.Alive in kinds(ada)
        case "messages_per_second" | "on_rate_limit":
            for _ in range(lobby.settings.burst + 10):
                ada.shell.do(m.Ping())
            lobby.run()
            return value in (None, "error") and m.Throttled in kinds(ada) and m.Disconnected not in kinds(ada)
        case "plays_for_us":
            lobby.sleep(40.0)
            return value and m.ServerActedForUs in kinds(ada)
        case "transport":
            return value == "websocket"
    return False


@pytest.mark.parametrize("name", Capabilities.__struct_fields__)
def test_every_capability_is_proven(name):
    assert proven(name, getattr(EmbeddedLobby.capabilities, name))


def test_the_adapter_comes_through_the_hook():
    assert EmbeddedLobby in [lazy.load() for lazy in bothost_lobbies()]
    assert "planted-secret" not in repr(ACCOUNT)
