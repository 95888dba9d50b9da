"""Who meets whom: seeks, private tables, invitations, robots, limits."""

import msgspec
import pytest
from memory_lobby import MemoryLobby

from bothost import rules
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.waiting import WaitingTable

NAMES = ("ada", "bob", "cyd", "dan")


class House:
    """The core of a lobby with raw frames: what each player sends and receives."""

    def __init__(self, **settings):
        self.lobby = MemoryLobby({name: f"token-of-{name}" for name in NAMES}, **settings)
        self.core = self.lobby.core
        self.told = {name: [] for name in NAMES}
        self.conns = {}
        self.now = 0.0
        for number, name in enumerate(NAMES, start=1):
            self.core.opened(number, self.now)
            self.conns[name] = number
            self.say(name, wire.Hello(1, f"token-of-{name}"))

    def say(self, name, *frames):
        """Send these. Returns what this player receives, without the welcome."""
        before = len(self.told[name])
        for frame in frames:
            data = frame if isinstance(frame, str | bytes) else wire.encode(frame)
            self.core.received(self.conns[name], data, self.now)
            self.deliver()
        return [f for f in self.told[name][before:] if not isinstance(f, wire.Welcome)]

    def sleep(self, seconds):
        self.now += seconds
        self.core.tick(self.now)
        self.deliver()

    def deliver(self):
        names = {number: name for name, number in self.conns.items()}
        for output in self.core.take():
            if hasattr(output, "data"):
                self.told[names[output.conn]].append(wire.decode_server(output.data))
            else:
                self.told[names[output.conn]].append(output.code)

    def seated(self, name):
        return [f for f in self.told[name] if isinstance(f, wire.Seated)]


def seek(name="s", **attributes):
    return wire.Seek(name, "claims", {}, attributes)


def errors(frames):
    return [(f.code, f.field) for f in frames if isinstance(f, wire.Error)]


def test_seeks_that_fit_meet_and_others_wait():
    house = House()
    house.say("ada", seek(level=3))
    house.say("bob", seek(level=4))
    house.say("cyd", seek())  # no preference: the oldest table
    (waiting,) = house.say("dan", seek(level=3))[:1]
    assert isinstance(waiting, wire.Seated)
    assert waiting.attributes == {"level": 3}
    assert {p.player for p in waiting.players} == {"ada", "cyd", "dan"}
    assert not house.seated("bob")


def test_a_seek_looks_only_at_tables_with_its_rarest_label(monkeypatch):
    """Else seeks with labels of their own cost the more the more of them wait."""
    looked = []
    meets = WaitingTable.meets
    monkeypatch.setattr(WaitingTable, "meets", lambda table, wish: looked.append(table.name) or meets(table, wish))
    house = House()
    for number in range(50):
        house.say("ada", seek(f"s{number}", club="a", room=number))
    (alone,) = house.say("bob", seek("none", club="a", room=50))
    assert (alone.taken, looked) == (1, [])
    found = [house.say("bob", wish)[-1].table for wish in (seek("one", club="a", room=7), seek("any"))]
    assert len(looked) == 2 and looked == found


def test_rules_must_be_the_same_but_not_spelt_the_same():
    house = House()
    settled = rules.game("claims").rules
    house.say("ada", wire.Seek("s", "claims", {}))
    house.say("bob", wire.Seek("s", "claims", settled))
    house.say("cyd", wire.Seek("s", "claims", {"hand": settled["hand"] + 1}))
    assert not house.seated("cyd")
    house.say("dan", wire.Seek("s", "claims", {"seats": settled["seats"]}))
    assert house.seated("ada") and house.seated("bob") and house.seated("dan")


def test_nobody_meets_themselves():
    house = House()
    for number in range(5):
        house.say("ada", seek(f"s{number}"))
    assert len(house.core.waiting.tables) == 5
    house.say("bob", *[seek(f"s{number}") for number in range(5)])
    house.say("cyd", *[seek(f"s{number}") for number in range(5)])
    assert [f.seek for f in house.seated("ada")] == [f"s{number}" for number in range(5)]
    assert not house.core.waiting.tables


def test_a_cancelled_seek_leaves_no_trace():
    house = House()
    house.say("ada", seek())
    assert house.say("ada", wire.Cancel("s")) == [wire.SeekEnded("s", "cancelled")]
    assert errors(house.say("ada", wire.Cancel("s"))) == [("unknown_seek", "$.seek")]
    assert not house.core.waiting.tables
    assert len(house.core.timers) == 0
    house.say("bob", seek())
    house.say("cyd", seek())
    assert not house.seated("bob")


def test_who_loses_the_connection_loses_the_seek():
    house = House()
    house.say("ada", seek())
    house.core.closed(house.conns["ada"], house.now)
    house.say("bob", seek())
    house.say("cyd", seek())
    assert not house.seated("bob")
    assert house.core.waiting.tables


def test_a_private_table_is_joined_by_name_and_password():
    house = House()
    private = wire.Create("s", "claims", {}, {"private": True}, "swordfish")
    (waiting,) = house.say("ada", private)
    assert house.say("bob", wire.List()) == [wire.Tables(())]
    assert errors(house.say("bob", wire.Join("j", waiting.table))) == [("forbidden", "$.password")]
    assert errors(house.say("bob", wire.Join("j", "t-999", "swordfish"))) == [("unknown_table", "$.table")]
    house.say("bob", wire.Join("j", waiting.table, "swordfish"))
    assert errors(house.say("bob", wire.Join("k", waiting.table, "swordfish"))) == [("table_full", "$.table")]
    house.say("dan", seek())
    house.say("cyd", wire.Join("j", waiting.table, "swordfish"))
    (seated,) = house.seated("bob")
    assert (seated.table, seated.seek) == (waiting.table, "j")
    assert not house.seated("dan")
    assert house.say("dan", wire.List())[0].tables[0].free == 2, "only the public one is listed"


def test_a_table_with_a_password_is_listed_but_not_found_by_seeks():
    house = House()
    house.say("ada", wire.Create("s", "claims", password="swordfish"))
    house.say("bob", seek())
    (tables,) = house.say("cyd", wire.List("claims"))
    assert [(t.locked, t.free) for t in tables.tables] == [(True, 2), (False, 2)]
    assert house.say("cyd", wire.List("doudizhu")) == [wire.Tables(())]


def test_a_list_has_200_tables_and_costs_no_more_than_these(monkeypatch):
    described = []
    info = WaitingTable.info
    monkeypatch.setattr(WaitingTable, "info", lambda table: described.append(table) or info(table))
    house = House()
    house.say("ada", *(wire.Create(f"s{number}", "claims", {}, {"level": number}) for number in range(300)))
    (tables,) = house.say("bob", wire.List())
    assert [table.attributes["level"] for table in tables.tables] == list(range(200))
    assert len(described) == 200


def test_everybody_must_accept():
    house = House(accept_s=10.0)
    for name in ("ada", "bob", "cyd"):
        house.say(name, seek(accept=True))
    invitation = next(f for f in house.told["ada"] if isinstance(f, wire.Invitation))
    assert invitation.info.free == 0
    accept = wire.Accept(invitation.invitation)
    house.say("ada", accept)
    house.say("bob", accept)
    assert not house.seated("ada")
    assert errors(house.say("dan", accept)) == [("unknown_invitation", "$.invitation")]
    house.say("cyd", accept)
    assert all(house.seated(name) for name in ("ada", "bob", "cyd"))
    assert errors(house.say("ada", accept)) == [("unknown_invitation", "$.invitation")]


@pytest.mark.parametrize("how", ["decline", "silence", "leave"])
def test_who_does_not_accept_makes_room(how):
    house = House(accept_s=10.0)
    for name in ("ada", "bob", "cyd"):
        house.say(name, seek(accept=True))
    first = next(f for f in house.told["ada"] if isinstance(f, wire.Invitation)).invitation
    house.say("ada", wire.Accept(first))
    house.say("bob", wire.Accept(first))
    match how:
        case "decline":
            house.say("cyd", wire.Decline(first))
        case "leave":
            house.say("cyd", wire.Cancel("s"))
    if how == "silence":
        house.sleep(10.1)
    assert isinstance(house.told["cyd"][-1], wire.SeekEnded)
    assert house.told["ada"][-1] == wire.Waiting("s", "t-1", 3, 2)
    assert errors(house.say("ada", wire.Accept(first))) == [("unknown_invitation", "$.invitation")]
    house.say("dan", seek(accept=True))
    second = house.told["ada"][-1].invitation
    assert second != first
    for name in ("ada", "bob", "dan"):
        house.say(name, wire.Accept(second))
    assert house.seated("dan")


def test_robots_come_after_a_while():
    house = House(robots_after_s=10.0)
    house.say("ada", seek())
    house.sleep(5.0)
    house.say("bob", seek())
    house.sleep(4.9)
    assert not house.seated("ada")
    house.sleep(0.2)
    (seated,) = house.seated("ada")
    assert sorted(p.robot for p in seated.players) == [False, False, True]


def test_robots_come_at_once_or_never_on_demand():
    house = House(robots_after_s=10.0)
    house.say("ada", seek(robots=True))
    house.say("bob", seek(robots=False))
    house.sleep(0.0)
    assert house.seated("ada")
    house.sleep(1000.0)
    assert not house.seated("bob")
    house = House()
    assert errors(house.say("ada", seek(robots=True))) == [("bad_attributes", "$.attributes.robots")]


def test_nobody_comes():
    house = House(wait_s=60.0)
    house.say("ada", seek())
    house.sleep(59.0)
    house.core.waiting.tick("t-1", house.now)  # a timer may fire early
    assert house.core.waiting.tables
    house.sleep(2.0)
    assert house.told["ada"][-1] == wire.SeekEnded("s", "no other player came")
    assert len(house.core.timers) == 0


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
    house = House()
    assert errors(house.say("ada", frame)) == [error]
    assert house.say("ada", wire.Ping()) == [wire.Pong()]
    assert not house.core.waiting.tables


def test_the_error_of_an_unreadable_frame_names_its_seek():
    house = House()
    (error,) = house.say("ada", '{"type":"seek","seek":"s7","game":"claims","attributes":{"nested":{}}}')
    assert (error.code, error.seek) == ("bad_message", "s7")


def test_an_account_has_so_many_tables_and_the_lobby_too():
    house = House(tables_per_account=2, tables=3)
    assert not errors(house.say("ada", seek("a"), seek("b")))
    assert errors(house.say("ada", seek("a"))) == [("seek_exists", "$.seek")]
    assert errors(house.say("ada", seek("c"))) == [("limit", "")]
    assert not errors(house.say("bob", wire.Create("a", "claims")))
    assert errors(house.say("bob", wire.Create("b", "claims"))) == [("limit", "")]


def test_too_many_messages_are_dropped_with_a_word_and_then_the_line_is_cut():
    house = House(messages_per_s=10.0, burst=5)
    answers = house.say("ada", *[wire.Ping()] * 8)
    assert [type(a) for a in answers] == [wire.Pong] * 5 + [wire.Error]
    assert (answers[-1].code, answers[-1].retry_ms) == ("rate_limited", 101)
    house.sleep(0.25)
    assert house.say("ada", *[wire.Ping()] * 2) == [wire.Pong()] * 2
    assert house.say("ada", *[wire.Ping()] * 20)[-1] == wire.CLOSE_RATE
    assert house.say("ada", wire.Ping()) == []
    assert house.say("bob", wire.Ping()) == [wire.Pong()]


def test_a_new_connection_brings_no_new_tokens():
    house = House(messages_per_s=10.0, burst=5)
    assert house.say("ada", *[wire.Ping()] * 5) == [wire.Pong()] * 5
    house.core.closed(house.conns["ada"], house.now)
    house.conns["ada"] = 9
    house.core.opened(9, house.now)
    assert errors(house.say("ada", wire.Hello(1, "token-of-ada"), wire.Ping())) == [("rate_limited", "")]


def test_every_seek_that_is_not_heard_is_told():
    house = House(messages_per_s=0.001, burst=3)
    answers = house.say("ada", *[seek(f"s{n}") for n in range(6)])
    assert [(f.code, f.seek) for f in answers[3:]] == [("rate_limited", f"s{n}") for n in (3, 4, 5)]


def test_answers_to_questions_are_never_counted():
    house = House(messages_per_s=0.001, burst=2, robots_after_s=0.0)
    house.say("ada", seek(hands=50))
    house.sleep(0.0)
    view, answered = None, 0
    for frame in house.told["ada"]:
        if isinstance(frame, wire.HandStarted):
            view = rules.game("claims").new_view(frame.seat)
        elif isinstance(frame, wire.Events):
            view.observe_all(frame.events)
            if frame.ask is not None:
                house.say("ada", wire.Act(frame.table, frame.ask.id, view.notation(int(view.legal()[0]))))
                answered += 1
        elif isinstance(frame, wire.HandEnded):
            house.sleep(0.0)
        assert not isinstance(frame, wire.Error)
    assert answered > 50
    assert isinstance(house.told["ada"][-1], wire.TableEnded)


def test_other_acts_are_counted():
    house = House(messages_per_s=0.001, burst=3, robots_after_s=0.0)
    house.say("ada", seek(hands=50))
    house.sleep(0.0)
    (table,) = house.core.tables
    answers = house.say("ada", *[wire.Act(table, "r0", "pass")] * 5)
    assert [type(a) for a in answers] == [wire.Rejected] * 2 + [wire.Error]


def test_memory_of_ended_tables_is_bounded():
    house = House(robots_after_s=0.0, remembered=3)
    for number in range(10):
        house.say("ada", seek(f"s{number}", robots=True))
        house.sleep(0.0)
        house.say("ada", wire.Leave(f"t-{number + 1}"))
    assert len(house.core.playing.ended) == 3
    assert not house.core.tables and not house.core.waiting.tables
    assert house.core.players["ada"].tables == {}
    assert len(house.core.timers) == 0


def test_every_answer_can_be_encoded():
    """Whatever a client stated comes back to it: nothing may be accepted that cannot be said again."""
    house = House()
    house.say("ada", seek(a=2**63 - 1, b=1e300, c=None))
    (tables,) = house.say("bob", wire.List())
    assert tables.tables[0].attributes["a"] == 2**63 - 1
    assert msgspec.json.decode(wire.encode(tables))
