"""Who meets whom: seeks, private tables, invitations, robots, limits."""

import msgspec
import pytest
from memory_lobby import MemoryLobby

from bothost import rules
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.waiting import WaitingTable

NAMES = ("ada", "bob", "cyd", "dan")


class Clients:
    """Clients of a lobby's core, which send and receive raw frames."""

    def __init__(self, **settings):
        self.lobby = MemoryLobby({name: f"token-of-{name}" for name in NAMES}, **settings)
        self.core = self.lobby.core
        self.received = {name: [] for name in NAMES}
        self.conns = {}
        self.now = 0.0
        for number, name in enumerate(NAMES, start=1):
            self.core.opened(number, self.now)
            self.conns[name] = number
            self.say(name, wire.Hello(1, f"token-of-{name}"))

    def say(self, name, *frames):
        """Send these. Returns what this player receives, without the welcome."""
        before = len(self.received[name])
        for frame in frames:
            data = frame if isinstance(frame, str | bytes) else wire.encode(frame)
            self.core.received(self.conns[name], data, self.now)
            self.deliver()
        return [f for f in self.received[name][before:] if not isinstance(f, wire.Welcome)]

    def sleep(self, seconds):
        self.now += seconds
        self.core.tick(self.now)
        self.deliver()

    def deliver(self):
        names = {number: name for name, number in self.conns.items()}
        for output in self.core.take():
            if hasattr(output, "data"):
                self.received[names[output.conn]].append(wire.decode_server(output.data))
            else:
                self.received[names[output.conn]].append(output.code)

    def seated(self, name):
        return [f for f in self.received[name] if isinstance(f, wire.Seated)]


def seek(name="s", **attributes):
    return wire.Seek(name, "claims", {}, attributes)


def errors(frames):
    return [(f.code, f.field) for f in frames if isinstance(f, wire.Error)]


def test_seeks_that_fit_meet_and_others_wait():
    clients = Clients()
    clients.say("ada", seek(level=3))
    clients.say("bob", seek(level=4))
    clients.say("cyd", seek())  # no preference: the oldest table
    (waiting,) = clients.say("dan", seek(level=3))[:1]
    assert isinstance(waiting, wire.Seated)
    assert waiting.attributes == {"level": 3}
    assert {p.player for p in waiting.players} == {"ada", "cyd", "dan"}
    assert not clients.seated("bob")


def test_a_seek_looks_only_at_tables_with_its_rarest_label(monkeypatch):
    """Else seeks with labels of their own cost the more the more of them wait."""
    looked = []
    meets = WaitingTable.meets
    monkeypatch.setattr(WaitingTable, "meets", lambda table, wish: looked.append(table.name) or meets(table, wish))
    clients = Clients()
    for number in range(50):
        clients.say("ada", seek(f"s{number}", club="a", room=number))
    (alone,) = clients.say("bob", seek("none", club="a", room=50))
    assert (alone.taken, looked) == (1, [])
    found = [clients.say("bob", wish)[-1].table for wish in (seek("one", club="a", room=7), seek("any"))]
    assert len(looked) == 2 and looked == found


def test_rules_must_be_the_same_but_not_spelt_the_same():
    clients = Clients()
    settled = rules.game("claims").rules
    clients.say("ada", wire.Seek("s", "claims", {}))
    clients.say("bob", wire.Seek("s", "claims", settled))
    clients.say("cyd", wire.Seek("s", "claims", {"hand": settled["hand"] + 1}))
    assert not clients.seated("cyd")
    clients.say("dan", wire.Seek("s", "claims", {"seats": settled["seats"]}))
    assert clients.seated("ada") and clients.seated("bob") and clients.seated("dan")


def test_nobody_meets_themselves():
    clients = Clients()
    for number in range(5):
        clients.say("ada", seek(f"s{number}"))
    assert len(clients.core.waiting.tables) == 5
    clients.say("bob", *[seek(f"s{number}") for number in range(5)])
    clients.say("cyd", *[seek(f"s{number}") for number in range(5)])
    assert [f.seek for f in clients.seated("ada")] == [f"s{number}" for number in range(5)]
    assert not clients.core.waiting.tables


def test_a_cancelled_seek_leaves_no_trace():
    clients = Clients()
    clients.say("ada", seek())
    assert clients.say("ada", wire.Cancel("s")) == [wire.SeekEnded("s", "cancelled")]
    assert errors(clients.say("ada", wire.Cancel("s"))) == [("unknown_seek", "$.seek")]
    assert not clients.core.waiting.tables
    assert len(clients.core.timers) == 0
    clients.say("bob", seek())
    clients.say("cyd", seek())
    assert not clients.seated("bob")


def test_who_loses_the_connection_loses_the_seek():
    clients = Clients()
    clients.say("ada", seek())
    clients.core.closed(clients.conns["ada"], clients.now)
    clients.say("bob", seek())
    clients.say("cyd", seek())
    assert not clients.seated("bob")
    assert clients.core.waiting.tables


def test_a_private_table_is_joined_by_name_and_password():
    clients = Clients()
    private = wire.Create("s", "claims", {}, {"private": True}, "swordfish")
    (waiting,) = clients.say("ada", private)
    assert clients.say("bob", wire.List()) == [wire.Tables(())]
    assert errors(clients.say("bob", wire.Join("j", waiting.table))) == [("forbidden", "$.password")]
    assert errors(clients.say("bob", wire.Join("j", "t-999", "swordfish"))) == [("unknown_table", "$.table")]
    clients.say("bob", wire.Join("j", waiting.table, "swordfish"))
    assert errors(clients.say("bob", wire.Join("k", waiting.table, "swordfish"))) == [("table_full", "$.table")]
    clients.say("dan", seek())
    clients.say("cyd", wire.Join("j", waiting.table, "swordfish"))
    (seated,) = clients.seated("bob")
    assert (seated.table, seated.seek) == (waiting.table, "j")
    assert not clients.seated("dan")
    assert clients.say("dan", wire.List())[0].tables[0].free == 2, "only the public one is listed"


def test_a_table_with_a_password_is_listed_but_not_found_by_seeks():
    clients = Clients()
    clients.say("ada", wire.Create("s", "claims", password="swordfish"))
    clients.say("bob", seek())
    (tables,) = clients.say("cyd", wire.List("claims"))
    assert [(t.locked, t.free) for t in tables.tables] == [(True, 2), (False, 2)]
    assert clients.say("cyd", wire.List("doudizhu")) == [wire.Tables(())]


def test_a_list_has_200_tables_and_costs_no_more_than_these(monkeypatch):
    described = []
    info = WaitingTable.info
    monkeypatch.setattr(WaitingTable, "info", lambda table: described.append(table) or info(table))
    clients = Clients()
    clients.say("ada", *(wire.Create(f"s{number}", "claims", {}, {"level": number}) for number in range(300)))
    (tables,) = clients.say("bob", wire.List())
    assert [table.attributes["level"] for table in tables.tables] == list(range(200))
    assert len(described) == 200


def test_everybody_must_accept():
    clients = Clients(accept_s=10.0)
    for name in ("ada", "bob", "cyd"):
        clients.say(name, seek(accept=True))
    invitation = next(f for f in clients.received["ada"] if isinstance(f, wire.Invitation))
    assert invitation.info.free == 0
    accept = wire.Accept(invitation.invitation)
    clients.say("ada", accept)
    clients.say("bob", accept)
    assert not clients.seated("ada")
    assert errors(clients.say("dan", accept)) == [("unknown_invitation", "$.invitation")]
    clients.say("cyd", accept)
    assert all(clients.seated(name) for name in ("ada", "bob", "cyd"))
    assert errors(clients.say("ada", accept)) == [("unknown_invitation", "$.invitation")]


@pytest.mark.parametrize("how", ["decline", "silence", "leave"])
def test_who_does_not_accept_makes_room(how):
    clients = Clients(accept_s=10.0)
    for name in ("ada", "bob", "cyd"):
        clients.say(name, seek(accept=True))
    first = next(f for f in clients.received["ada"] if isinstance(f, wire.Invitation)).invitation
    clients.say("ada", wire.Accept(first))
    clients.say("bob", wire.Accept(first))
    match how:
        case "decline":
            clients.say("cyd", wire.Decline(first))
        case "leave":
            clients.say("cyd", wire.Cancel("s"))
    if how == "silence":
        clients.sleep(10.1)
    assert isinstance(clients.received["cyd"][-1], wire.SeekEnded)
    assert clients.received["ada"][-1] == wire.Waiting("s", "t-1", 3, 2)
    assert errors(clients.say("ada", wire.Accept(first))) == [("unknown_invitation", "$.invitation")]
    clients.say("dan", seek(accept=True))
    second = clients.received["ada"][-1].invitation
    assert second != first
    for name in ("ada", "bob", "dan"):
        clients.say(name, wire.Accept(second))
    assert clients.seated("dan")


def test_robots_come_after_a_while():
    clients = Clients(robots_after_s=10.0)
    clients.say("ada", seek())
    clients.sleep(5.0)
    clients.say("bob", seek())
    clients.sleep(4.9)
    assert not clients.seated("ada")
    clients.sleep(0.2)
    (seated,) = clients.seated("ada")
    assert sorted(p.robot for p in seated.players) == [False, False, True]


def test_robots_come_at_once_or_never_on_demand():
    clients = Clients(robots_after_s=10.0)
    clients.say("ada", seek(robots=True))
    clients.say("bob", seek(robots=False))
    clients.sleep(0.0)
    assert clients.seated("ada")
    clients.sleep(1000.0)
    assert not clients.seated("bob")
    clients = Clients()
    assert errors(clients.say("ada", seek(robots=True))) == [("bad_attributes", "$.attributes.robots")]


def test_nobody_comes():
    clients = Clients(wait_s=60.0)
    clients.say("ada", seek())
    clients.sleep(59.0)
    clients.core.waiting.tick("t-1", clients.now)  # a timer may fire early
    assert clients.core.waiting.tables
    clients.sleep(2.0)
    assert clients.received["ada"][-1] == wire.SeekEnded("s", "no other player came")
    assert len(clients.core.timers) == 0


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (wire.Seek("s", "chess"), ("unknown_game", "$.game")),
        (wire.Seek("s", "claims", {"seats": 99}), ("bad_rules", "$.rules")),
        (wire.Seek("s", "claims", {"name": 1}), ("bad_rules", "$.rules")),
        (wire.Seek("s", "claims", {"seats": 10**40}), ("bad_rules", "$.rules")),
        (wire.Seek("s", "claims", {"seats": [[]]}), ("bad_rules", "$.rules")),
        (seek(hands=0), ("bad_attributes", "$.attributes.hands")),
        (seek(hands=10**30), ("bad_message", "$.attributes[...]")),
        (seek(hands=True), ("bad_attributes", "$.attributes.hands")),
        (seek(hands="3"), ("bad_attributes", "$.attributes.hands")),
        (seek(grant_ms=-1), ("bad_attributes", "$.attributes.grant_ms")),
        (seek(level=1.5), ("bad_attributes", "$.attributes.level")),
        (seek(private=True), ("bad_attributes", "$.attributes.private")),
        (wire.Create("s", "claims", {}, {"private": 1}), ("bad_attributes", "$.attributes.private")),
        (wire.Create("s", "claims", password="x" * 257), ("bad_message", "$.password")),
        (seek(**{"x" * 65: 1}), ("bad_attributes", "$.attributes")),
        (seek(x="y" * 257), ("bad_attributes", "$.attributes")),
        (seek(**{str(n): n for n in range(17)}), ("bad_attributes", "$.attributes")),
        (seek(""), ("bad_message", "$.seek")),
        (seek("s" * 101), ("bad_message", "$.seek")),
        (wire.Act("nowhere", "r1", "pass"), ("unknown_table", "$.table")),
        (wire.Sync("nowhere"), ("unknown_table", "$.table")),
        (wire.Leave("nowhere"), ("unknown_table", "$.table")),
        (wire.Resign("nowhere"), ("unknown_table", "$.table")),
        (wire.Accept("nothing"), ("unknown_invitation", "$.invitation")),
        (wire.Hello(1, "x"), ("hello_repeated", "$.type")),
        ('{"type":"seek","seek":"s","game":7}', ("bad_message", "$.game")),
        ('{"type":"seek","seek":"s"}', ("bad_message", "$.game")),
        ('{"type":"act","table":"t","id":"r","action":"a","acton":1}', ("bad_message", "$.acton")),
        ('{"type":"dance"}', ("bad_message", "$.type")),
        ('{"type":"seek","seek":"s","game":"claims","attributes":{"a":[]}}', ("bad_message", "$.attributes[...]")),
        ("[]", ("bad_message", "$")),
        ("", ("bad_json", "")),
        (b"\xff", ("bad_json", "")),
        ("[" * 100_000, ("bad_message", "$")),
        ('{"type":"seek","seek":"s","game":"claims","rules":' + '{"a":' * 5_000, ("bad_json", "")),
    ],
)
def test_a_bad_frame_is_an_error_that_names_the_field(frame, error):
    clients = Clients()
    assert errors(clients.say("ada", frame)) == [error]
    assert clients.say("ada", wire.Ping()) == [wire.Pong()]
    assert not clients.core.waiting.tables


def test_the_error_of_an_unreadable_frame_names_its_seek():
    clients = Clients()
    (error,) = clients.say("ada", '{"type":"seek","seek":"s7","game":"claims","attributes":{"nested":{}}}')
    assert (error.code, error.seek) == ("bad_message", "s7")


def test_an_account_has_so_many_tables_and_the_lobby_too():
    clients = Clients(tables_per_account=2, tables=3)
    assert not errors(clients.say("ada", seek("a"), seek("b")))
    assert errors(clients.say("ada", seek("a"))) == [("seek_exists", "$.seek")]
    assert errors(clients.say("ada", seek("c"))) == [("limit", "")]
    assert not errors(clients.say("bob", wire.Create("a", "claims")))
    assert errors(clients.say("bob", wire.Create("b", "claims"))) == [("limit", "")]


def test_too_many_messages_are_dropped_with_a_word_and_then_the_line_is_cut():
    clients = Clients(messages_per_s=10.0, burst=5)
    answers = clients.say("ada", *[wire.Ping()] * 8)
    assert [type(a) for a in answers] == [wire.Pong] * 5 + [wire.Error]
    assert (answers[-1].code, answers[-1].retry_ms) == ("rate_limited", 101)
    clients.sleep(0.25)
    assert clients.say("ada", *[wire.Ping()] * 2) == [wire.Pong()] * 2
    assert clients.say("ada", *[wire.Ping()] * 20)[-1] == wire.CLOSE_RATE
    assert clients.say("ada", wire.Ping()) == []
    assert clients.say("bob", wire.Ping()) == [wire.Pong()]


def test_a_new_connection_brings_no_new_tokens():
    clients = Clients(messages_per_s=10.0, burst=5)
    assert clients.say("ada", *[wire.Ping()] * 5) == [wire.Pong()] * 5
    clients.core.closed(clients.conns["ada"], clients.now)
    clients.conns["ada"] = 9
    clients.core.opened(9, clients.now)
    assert errors(clients.say("ada", wire.Hello(1, "token-of-ada"), wire.Ping())) == [("rate_limited", "")]


def test_every_seek_that_is_not_heard_is_told():
    clients = Clients(messages_per_s=0.001, burst=3)
    answers = clients.say("ada", *[seek(f"s{n}") for n in range(6)])
    assert [(f.code, f.seek) for f in answers[3:]] == [("rate_limited", f"s{n}") for n in (3, 4, 5)]


def test_answers_to_questions_are_never_counted():
    clients = Clients(messages_per_s=0.001, burst=2, robots_after_s=0.0)
    clients.say("ada", seek(hands=50))
    clients.sleep(0.0)
    view, answered = None, 0
    for frame in clients.received["ada"]:
        if isinstance(frame, wire.HandStarted):
            view = rules.game("claims").new_view(frame.seat)
        elif isinstance(frame, wire.Events):
            view.observe_all(frame.events)
            if frame.ask is not None:
                clients.say("ada", wire.Act(frame.table, frame.ask.id, view.notation(int(view.legal()[0]))))
                answered += 1
        elif isinstance(frame, wire.HandEnded):
            clients.sleep(0.0)
        assert not isinstance(frame, wire.Error)
    assert answered > 50
    assert isinstance(clients.received["ada"][-1], wire.TableEnded)


def test_other_acts_are_counted():
    clients = Clients(messages_per_s=0.001, burst=3, robots_after_s=0.0)
    clients.say("ada", seek(hands=50))
    clients.sleep(0.0)
    (table,) = clients.core.tables
    answers = clients.say("ada", *[wire.Act(table, "r0", "pass")] * 5)
    assert [type(a) for a in answers] == [wire.Rejected] * 2 + [wire.Error]


def test_memory_of_ended_tables_is_bounded():
    clients = Clients(robots_after_s=0.0, remembered=3)
    for number in range(10):
        clients.say("ada", seek(f"s{number}", robots=True))
        clients.sleep(0.0)
        clients.say("ada", wire.Leave(f"t-{number + 1}"))
    assert len(clients.core.playing.ended) == 3
    assert not clients.core.tables and not clients.core.waiting.tables
    assert clients.core.players["ada"].tables == {}
    assert len(clients.core.timers) == 0


def test_every_answer_can_be_encoded():
    """Whatever a client stated comes back to it: nothing may be accepted that cannot be said again."""
    clients = Clients()
    clients.say("ada", seek(a=2**63 - 1, b=1e300, c=None))
    (tables,) = clients.say("bob", wire.List())
    assert tables.tables[0].attributes["a"] == 2**63 - 1
    assert msgspec.json.decode(wire.encode(tables))
