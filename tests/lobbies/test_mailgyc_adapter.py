"""The adapter of mailgyc/doudizhu: every trap of the lobby by name, every capability, and recorded frames."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothost import messages as m
from bothost import rules
from bothost.lobbies import bothost_lobbies
from bothost.lobbies import mailgyc_protocol as wire
from bothost.lobbies.base import Account, Capabilities
from bothost.lobbies.mailgyc import MailgycLobby
from bothost.lobbies.mailgyc_hand import MailgycHand
from bothost.lobbies.mailgyc_session import MailgycOptions

ACCOUNT = Account(name="ada", url="ws://lobby.example:8080", user_agent="bot/1")
COOKIE = '"2|1:0|10:planted-cookie"'
TRANSCRIPTS = Path(__file__).parent / "transcripts"
LEVELS = [{"level": 1, "number": 33}, {"level": 2, "number": 0}, {"level": 3, "number": 0}]
HANDS = {
    2: [29, 4, 31, 44, 18, 6, 7, 20, 21, 34, 48, 22, 9, 24, 27, 1, 15],
    3: [3, 43, 5, 45, 47, 36, 23, 10, 49, 11, 25, 13, 26, 14, 41, 53, 54],
    4: [30, 17, 32, 19, 33, 46, 8, 35, 50, 37, 12, 38, 52, 39, 40, 28, 2],
}
BOTTOM = [16, 51, 42]


class Bench:
    """An adapter without sockets; keeps what it says and folds what it tells."""

    def __init__(self, uid=2, memo=None, **options):
        self.adapter = MailgycLobby(ACCOUNT, MailgycOptions(**options))
        self.uid = uid
        self.out = []
        self.view = None
        self.memo = dict(memo or {})
        self.conn = 0

    def feed(self, item):
        out = self.adapter.feed(item)
        for output in out:
            match output:
                case m.OpenSocket():
                    self.conn = output.conn
                case m.Remember():
                    self.memo.update(msgspec.json.decode(msgspec.json.encode(output.memo)))
                case m.HandStarted():
                    self.view = rules.game("doudizhu", preset="mailgyc").new_view(output.seat)
                case m.Snapshot():
                    self.view = rules.game("doudizhu", preset="mailgyc").view_from_snapshot(output.view)
                case m.Delta():
                    assert output.seq == self.view.seq
                    self.view.observe_all(output.events)
                case m.ActionRequest():
                    assert self.view.asked and output.seq == self.view.seq
        self.out += out
        return out

    def hear(self, code, **body):
        return self.feed(m.Frame(self.conn, wire.encode(code, **body)))

    def log_in(self, room=-1, command=None):
        """As far as the open socket."""
        (request,) = [o for o in self.feed(command or m.Authenticate(self.memo)) if isinstance(o, m.HttpRequest)]
        body = {"uid": self.uid, "name": "ada", "room": room, "rooms": LEVELS, "token": "planted-jwt"}
        headers = (("content-type", "application/json"), ("set-cookie", f"userinfo={COOKIE}; Path=/"))
        self.feed(m.HttpResult(request.request, 200, headers, msgspec.json.encode(body)))
        return self.feed(m.SocketOpened(self.conn))

    def connect(self):
        self.log_in()
        self.hear(wire.ROOMS_TOLD, rooms=LEVELS)
        return self

    def seat(self, room=1, **attributes):
        self.connect()
        self.feed(m.Seek("s", m.Wish("doudizhu", {}, attributes)))
        self.hear(wire.JOINED, **picture(room, self.uid))
        return self

    def deal(self, first=2):
        self.seat()
        self.hear(wire.DEALT, uid=first, timer=40, pokers=HANDS[self.uid])
        return self

    def play(self):
        """Player 2 is landlord and leads."""
        self.deal()
        self.hear(wire.CALLED, uid=2, rob=1, landlord=-1, multiple=30, pokers=[])
        self.hear(wire.CALLED, uid=3, rob=0, landlord=-1, multiple=30, pokers=[])
        self.hear(wire.CALLED, uid=4, rob=0, landlord=2, multiple=30, pokers=BOTTOM)
        return self

    def request(self):
        return [o for o in self.out if isinstance(o, m.ActionRequest)][-1]

    def act(self, action):
        request = self.request()
        return self.feed(m.Act(request.table, request.request_id, (action,)))

    def lose(self):
        return self.feed(m.SocketClosed(self.conn, 1006))

    def resume(self, room=1):
        return self.log_in(room, m.Resume(("1",), self.memo))


def picture(room, uid, state=1, hands=None, turn=2, last=(2, []), robs=(-1, -1, -1), landlord=None):
    """Frame 1006 as ``uid`` gets it."""
    hands = hands or {}
    players = [
        {
            "uid": player,
            "name": f"p{player}",
            "ready": int(state > 1),
            "rob": rob,
            "leave": 0,
            "landlord": int(landlord == player),
            "pokers": hands.get(player, []) if player == uid else [0] * len(hands.get(player, [])),
        }
        for player, rob in zip((2, 3, 4), robs, strict=True)
    ]
    about = {"id": room, "origin": 10, "multiple": 30, "state": state, "landlord_uid": 2, "whose_turn": turn}
    return {"room": {**about, "timer": 36, "last_shot_uid": last[0], "last_shot_poker": last[1]}, "players": players}


def said(outputs):
    return [json.loads(o.data) for o in outputs if isinstance(o, m.SendFrame) and o.data != "ping"]


def told(outputs, kind):
    return [o for o in outputs if isinstance(o, kind)]


PLAYED = {2: sorted(HANDS[2] + BOTTOM), 3: HANDS[3], 4: HANDS[4]}


def playing(uid, turn=2, without=(), last=(2, [])):
    hands = {player: [c for c in cards if c not in without] for player, cards in PLAYED.items()}
    return picture(1, uid, 3, hands, turn, last, (1, 0, 0), landlord=2)


# -------------------------------------------------------------------------------------------------------- logging in


def test_logging_in_takes_the_cookie_of_the_login_to_the_websocket():
    bench = Bench()
    (request,) = bench.feed(m.Authenticate())
    assert (request.method, request.url) == ("POST", "http://lobby.example:8080/login")
    assert json.loads(request.body) == {"name": "ada"}
    bench = Bench()
    outputs = bench.log_in()
    (opened,) = told(bench.out, m.OpenSocket)
    assert opened.url == "ws://lobby.example:8080/ws"
    assert ("Cookie", f"userinfo={COOKIE}") in opened.headers
    assert said(outputs) == [[1001, {}]]
    assert told(bench.out, m.Connected) == []
    assert told(bench.hear(wire.ROOMS_TOLD, rooms=LEVELS), m.Connected) == [m.Connected("2", False, "ada")]


def test_trap_a_refused_cookie_is_an_opened_socket_that_closes_without_a_word():
    bench = Bench()
    bench.log_in()
    assert told(bench.lose(), m.Disconnected)
    assert told(bench.out, m.Connected) == []


@pytest.mark.parametrize(
    ("status", "end"), [(401, m.AuthFailed), (403, m.AuthFailed), (502, m.Disconnected), (0, m.Disconnected)]
)
def test_a_login_that_fails(status, end):
    bench = Bench()
    (request,) = bench.feed(m.Authenticate())
    outputs = bench.feed(m.HttpResult(request.request, status, (), b"planted-jwt"))
    assert told(outputs, end) and "planted" not in repr(outputs)


def test_nothing_that_the_adapter_tells_holds_a_secret():
    bench = Bench().play()
    bench.act("4")
    bench.hear(wire.FAILURE, reason="TURN ERROR")
    events = [o for o in bench.out if not isinstance(o, m.OpenSocket)]
    assert "planted" not in repr(events) and "planted" not in json.dumps(bench.memo)


# -------------------------------------------------------------------------------------------------------------- seats


def test_a_wish_names_a_level_or_a_room():
    bench = Bench().connect()
    assert said(bench.feed(m.Seek("s", m.Wish("doudizhu", {}, {"level": 2})))) == [[1005, {"room": -1, "level": 2}]]
    (seated,) = told(bench.hear(wire.JOINED, **picture(7, 2)), m.Seated)
    assert (seated.table, seated.seat, seated.seek, seated.rules) == ("7", 0, "s", {"preset": "mailgyc"})
    assert said(bench.feed(m.TimerFired("ready"))) == [[2001, {"ready": 1}]]


def test_trap_an_unknown_room_seats_us_elsewhere():
    bench = Bench().connect()
    assert said(bench.feed(m.Seek("s", m.Wish("doudizhu", {}, {"room": 777})))) == [[1005, {"room": 777, "level": 1}]]
    outputs = bench.hear(wire.JOINED, **picture(2, 2))
    assert said(outputs) == [[1007, {}]]
    assert told(outputs, m.SeekEnded) and not told(outputs, m.Seated)


@pytest.mark.parametrize(
    "wish",
    [
        m.Wish("othello"),
        m.Wish("doudizhu", {"bidding": "score"}),
        m.Wish("doudizhu", {}, {"level": 9}),
        m.Wish("doudizhu", {}, {"room": "x"}),
    ],
)
def test_a_wish_that_the_lobby_cannot_fulfil_costs_no_word(wish):
    bench = Bench().connect()
    outputs = bench.feed(m.Seek("s", wish))
    assert said(outputs) == [] and told(outputs, m.SeekEnded)


def test_leaving_waits_for_its_confirmation_before_the_next_seat():
    bench = Bench().seat()
    assert said(bench.feed(m.Leave("1"))) == [[1007, {}]]
    assert said(bench.feed(m.Seek("s2", m.Wish("doudizhu")))) == []
    assert bench.hear(wire.JOINED, **picture(1, 2)) == []  # of the room that we left
    assert said(bench.hear(wire.LEFT, uid=2)) == [[1005, {"room": -1, "level": 1}]]


def test_trap_leaving_in_the_middle_of_a_hand_may_not_be_confirmed():
    """After a while another seat is asked for; where the lobby keeps us all the same, logging in tells so."""
    bench = Bench().play()
    assert said(bench.feed(m.Leave("1"))) == [[1007, {}]]
    assert bench.hear(wire.SHOT, uid=2, pokers=[4], multiple=30) == [], "of the room that we left"
    assert said(bench.feed(m.Seek("s2", m.Wish("doudizhu")))) == []
    assert said(bench.feed(m.TimerFired("away"))) == [[1005, {"room": -1, "level": 1}]]
    outputs = bench.hear(wire.FAILURE, reason="STATE[3]")
    assert told(outputs, m.SeekEnded) and told(outputs, m.Disconnected)
    bench.resume(room=1)
    outputs = bench.hear(wire.JOINED, **playing(2))
    assert [seated.table for seated in told(outputs, m.Seated)] == ["1"], "the seat is ours still"


def test_a_seat_that_we_do_not_know_of_is_found_by_logging_in_again_once():
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("doudizhu")))
    outputs = bench.hear(wire.FAILURE, reason="STATE[1]")
    assert told(outputs, m.SeekEnded) and told(outputs, m.Disconnected)
    bench.resume(room=-1)
    bench.hear(wire.ROOMS_TOLD, rooms=LEVELS)
    bench.feed(m.Seek("s", m.Wish("doudizhu")))
    assert not told(bench.hear(wire.FAILURE, reason="STATE[1]"), m.Disconnected)


# ------------------------------------------------------------------------------------------------------------ playing


def test_trap_nothing_says_whose_turn_it_is():
    bench = Bench(uid=3).deal()
    assert told(bench.out, m.ActionRequest) == []
    outputs = bench.hear(wire.CALLED, uid=2, rob=0, landlord=-1, multiple=15, pokers=[])
    (request,) = told(outputs, m.ActionRequest)
    assert request.grant_ms == 40_000
    assert said(bench.act("call")) == [[2005, {"rob": 1}]]


def test_the_first_caller_may_call_again():
    bench = Bench().deal()
    bench.hear(wire.CALLED, uid=2, rob=1, landlord=-1)
    bench.hear(wire.CALLED, uid=3, rob=1, landlord=-1)
    (request,) = told(bench.hear(wire.CALLED, uid=4, rob=0, landlord=-1), m.ActionRequest)
    assert request.seq == 4
    assert said(bench.act("grab")) == [[2005, {"rob": 1}]]


def test_the_landlord_plays_the_lobbys_cards_and_the_echo_acknowledges():
    bench = Bench().play()
    assert bench.view.phase == "play" and bench.view.to_json()["bottom"] == "33Q"
    request = bench.request()
    assert said(bench.act("4")) == [[3001, {"pokers": [4]}]]
    assert bench.act("4") == []  # answered once
    outputs = bench.hear(wire.SHOT, uid=2, pokers=[4], multiple=30)
    assert told(outputs, m.MoveAcknowledged) == [m.MoveAcknowledged("1", request.request_id)]
    bench.hear(wire.SHOT, uid=3, pokers=[], multiple=30)
    (request,) = told(bench.hear(wire.SHOT, uid=4, pokers=[], multiple=30), m.ActionRequest)
    assert said(bench.act("5"))[0][1]["pokers"][0] in (31, 44, 18)


def test_trap_errors_name_neither_request_nor_table():
    bench = Bench().play()
    first = bench.request()
    bench.act("4")
    outputs = bench.hear(wire.FAILURE, reason="Poker does not comply with the rules")
    (rejected,), (request,) = told(outputs, m.Rejected), told(outputs, m.ActionRequest)
    assert (rejected.request_id, rejected.resync) == (first.request_id, False)
    assert request.request_id != first.request_id and request.seq == first.seq


@pytest.mark.parametrize(
    "reason", ["TURN ERROR", "STATE[2]", "Poker does not exist", "Last shot player does not allow pass"]
)
def test_a_refusal_that_shows_our_picture_wrong_asks_for_the_lobbys(reason):
    bench = Bench().play()
    bench.act("4")
    (rejected,) = outputs = bench.hear(wire.FAILURE, reason=reason)
    assert isinstance(rejected, m.Rejected) and rejected.resync, outputs
    assert told(bench.feed(m.Resync("1")), m.CloseSocket)


def test_trap_a_dead_opponent_stalls_the_table_for_ever():
    bench = Bench(stall_s=8.0).play()
    assert [o.after_s for o in bench.out if isinstance(o, m.SetTimer) and o.name == "stall"][-1] == 2.0
    for _ in range(3):
        assert not told(bench.feed(m.TimerFired("stall")), m.TableEnded)
    outputs = bench.feed(m.TimerFired("stall"))
    assert said(outputs) == [[1007, {}]]
    assert [end.reason for end in told(outputs, m.TableEnded)] == ["aborted"]


def test_coming_back_to_a_stalled_table_is_no_progress():
    bench = Bench(stall_s=8.0).play()
    for _ in range(3):
        bench.feed(m.TimerFired("stall"))
    bench.lose()
    bench.resume()
    bench.hear(wire.JOINED, **playing(2))
    assert told(bench.feed(m.TimerFired("stall")), m.TableEnded)


def test_the_end_of_a_hand_reveals_it_and_gets_ready_for_the_next():
    frames = Transcript("mailgyc_full_game")
    benches = frames.replay()
    for uid, bench in benches.items():
        (ended,) = told(bench.out, m.HandEnded)
        assert ended.scores == (-600.0, 300.0, 300.0)
        deal, moves = bench.view.record()
        assert deal["hands"][bench.view.seat] == wire.text_of(HANDS[uid]) and len(moves) > 50
        assert said(bench.feed(m.TimerFired("ready"))) == [[2001, {"ready": 1}]]


# -------------------------------------------------------------------------------------------------------- coming back


def test_trap_after_a_reconnect_every_message_is_ignored_until_the_room_is_named():
    bench = Bench().play()
    request = bench.request()
    assert told(bench.lose(), m.Disconnected)
    assert said(bench.resume()) == [[1005, {"room": 1, "level": 1}]]
    assert told(bench.out, m.Connected)[1:] == []
    assert bench.hear(wire.SHOT, uid=2, pokers=[4]) == []
    outputs = bench.hear(wire.JOINED, **playing(2))
    kinds = [type(o) for o in outputs if isinstance(o, m.Connected | m.Seated | m.Snapshot | m.ActionRequest)]
    assert kinds == [m.Connected, m.Seated, m.Snapshot, m.ActionRequest]
    assert told(outputs, m.Connected)[0].resumed
    assert told(outputs, m.ActionRequest)[0].request_id == request.request_id
    assert bench.view.to_json()["complete"]


def test_what_was_missed_is_made_up_where_there_is_no_doubt():
    bench = Bench().play()
    bench.act("4")
    bench.lose()
    bench.resume()
    bench.hear(wire.JOINED, **playing(2, turn=4, without=(4, 43), last=(3, [43])))
    assert bench.view.to_json()["history"] == [[0, "4"], [1, "4"]] or not bench.view.to_json()["complete"]
    bench = Bench(uid=4).play()
    bench.lose()
    bench.resume()
    bench.hear(wire.JOINED, **playing(4, turn=4, without=(4,), last=(2, [4])))
    assert bench.view.to_json()["history"] == [[0, "4"], [1, "pass"]]
    assert told(bench.out, m.ActionRequest)


def test_trap_a_snapshot_tells_neither_bottom_nor_history():
    bench = Bench(uid=3)
    bench.log_in(room=1)
    outputs = bench.hear(wire.JOINED, **playing(3, turn=3, without=(4,), last=(2, [4])))
    told_view = bench.view.to_json()
    assert not told_view["complete"] and told_view["bottom"] is None
    assert told_view["last"] == [0, "4"] and told_view["counts"] == [19, 17, 17]
    assert told(outputs, m.ActionRequest)


def test_a_fresh_process_remembers_the_whole_hand():
    before = Bench().play()
    after = Bench(memo=before.memo)
    after.log_in(room=1)
    outputs = after.hear(wire.JOINED, **playing(2))
    assert after.view.to_bytes() == before.view.to_bytes()
    assert told(outputs, m.ActionRequest)[0].request_id == before.request().request_id
    assert told(outputs, m.Snapshot)[0].hand == told(before.out, m.HandStarted)[0].hand


def test_what_a_resume_needs_is_remembered_before_the_first_move():
    bench = Bench().deal()
    kinds = [type(o) for o in bench.out if isinstance(o, m.Remember | m.ActionRequest)]
    assert kinds[0] is m.Remember and bench.memo["table"] == "1"


def test_calls_are_rebuilt_from_the_snapshot():
    bench = Bench(uid=4)
    bench.log_in(room=1)
    bench.hear(wire.JOINED, **picture(1, 4, 2, HANDS, turn=4, robs=(1, 0, -1)))
    assert bench.view.to_json()["bids"] == [[0, "call"], [1, "bid0"]] and bench.view.asked


def test_a_table_that_the_lobby_forgot_is_aborted_not_lost():
    bench = Bench().play()
    bench.lose()
    bench.resume(room=-1)
    outputs = bench.hear(wire.ROOMS_TOLD, rooms=LEVELS)
    assert [(end.table, end.reason) for end in told(outputs, m.TableEnded)] == [("1", "aborted")]


def test_coming_back_to_another_room_means_that_ours_is_gone():
    bench = Bench().play()
    bench.lose()
    bench.resume()
    outputs = bench.hear(wire.JOINED, **picture(5, 2))
    assert told(outputs, m.TableEnded)[0].table == "1" and said(outputs) == [[1007, {}]]


def test_a_hand_that_ended_while_we_were_away_is_void():
    bench = Bench().play()
    bench.lose()
    bench.resume()
    outputs = bench.hear(wire.JOINED, **picture(1, 2))
    assert told(outputs, m.HandEnded)[0].scores is None
    assert said(bench.feed(m.TimerFired("ready"))) == [[2001, {"ready": 1}]]


def test_trap_a_second_socket_takes_over_so_the_first_is_closed_and_time_passes():
    bench = Bench().play()
    outputs = bench.feed(m.Resync("1"))
    assert told(outputs, m.CloseSocket)
    assert told(outputs, m.Disconnected)[0].retry_after_s >= 1.0


def test_trap_when_the_old_socket_closes_the_new_one_is_deaf_so_we_connect_again():
    bench = Bench().play()
    assert told(bench.hear(wire.LEFT, uid=2), m.Disconnected)


def test_somebody_elses_return_is_compared_with_our_picture():
    bench = Bench().play()
    assert not told(bench.hear(wire.JOINED, **playing(2)), m.Snapshot | m.Notice)
    outputs = bench.hear(wire.JOINED, **playing(2, turn=3, without=(4,), last=(2, [4])))
    assert told(outputs, m.Notice) and told(outputs, m.Snapshot)  # logged, and the lobby's picture wins


def test_a_contradiction_is_met_by_asking_anew_a_few_times():
    bench = Bench().play()
    for _ in range(3):
        assert told(bench.hear(wire.SHOT, uid=3, pokers=[3]), m.Disconnected)
        bench.resume()
        bench.hear(wire.JOINED, **playing(2))
    assert told(bench.hear(wire.SHOT, uid=3, pokers=[3]), m.TableEnded)


# ------------------------------------------------------------------------------------------------------- transcripts


class Transcript:
    """Recorded frames, as (connection, direction, data)."""

    def __init__(self, name):
        lines = (TRANSCRIPTS / f"{name}.jsonl").read_text().splitlines()
        self.lines = [(x["conn"], x["dir"], x["data"]) for x in map(json.loads, lines)]

    def replay(self):
        """An adapter for every player, fed with what the lobby said; by uid."""
        benches = {}
        for conn, direction, data in self.lines:
            if direction == "http" and conn not in benches:
                benches[conn] = Bench(uid=data["body"]["uid"]).connect()
            elif direction == "http":
                benches[conn].lose()
                benches[conn].resume(data["body"]["room"])
            elif direction == "out" and data[0] == wire.JOIN and not told(benches[conn].out, m.Seated):
                benches[conn].feed(m.Seek("s", m.Wish("doudizhu", {}, {"level": 2})))
            elif direction == "in" and data != "pong":
                benches[conn].hear(data[0], **data[1])
        return {bench.uid: bench for bench in benches.values()}


@pytest.mark.parametrize("name", ["mailgyc_full_game", "mailgyc_edge_cases"])
def test_every_recorded_frame_is_understood(name):
    count = 0
    for _, direction, data in Transcript(name).lines:
        if direction == "in":
            wire.decode(data if isinstance(data, str) else json.dumps(data))
            count += 1
    assert count > 30


def test_recorded_hands_fold_and_ask_whom_the_lobby_asked():
    transcript = Transcript("mailgyc_full_game")
    sent = {}
    for conn, direction, data in transcript.lines:
        if direction == "out" and data[0] in (wire.CALL, wire.SHOOT):
            sent[conn] = sent.get(conn, 0) + 1
    benches = transcript.replay()
    asked = {uid: len(told(bench.out, m.ActionRequest)) for uid, bench in benches.items()}
    assert asked == {2: sent["alice"], 3: sent["bob"], 4: sent["carol"] - 1}  # its last move came after the end


def test_recorded_edge_cases_fold():
    """rob = 7 was broadcast, and counted as a refusal."""
    benches = Transcript("mailgyc_edge_cases").replay()
    assert {bench.view.phase for bench in benches.values()} == {"play"}
    assert benches[5].view.to_json()["bids"] == [[0, "bid0"], [1, "bid0"], [2, "bid0"]]
    assert not any(told(bench.out, m.Unknown) for bench in benches.values())


# ------------------------------------------------------------------------------------------------------- hostile frames


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_frame_is_survived(data):
    bench = Bench().play()
    bench.feed(m.Frame(bench.conn, data))


values = st.recursive(
    st.none() | st.integers(-5, 60) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["uid", "rob", "pokers", "room", "id", "players", "landlord", "reason"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from([0, 1002, 1006, 1008, 2002, 2004, 2006, 3002, 4002, 9999]), values)
def test_any_content_of_a_known_frame_is_survived(code, body):
    bench = Bench().play()
    bench.feed(m.Frame(bench.conn, json.dumps([code, body])))
    bench.feed(m.Frame(bench.conn, json.dumps([code, {"uid": 3, "pokers": [1, 1], "rob": 1}])))


@given(
    st.integers(1, 4),
    st.integers(-1, 5),
    st.lists(st.integers(0, 54), max_size=20),
    st.lists(st.integers(1, 54), max_size=5),
)
def test_any_room_is_survived(state, turn, own, last):
    bench = Bench(uid=3)
    bench.log_in(room=1)
    bench.hear(
        wire.JOINED, **picture(1, 3, state, {2: [1] * 20, 3: own, 4: [1]}, turn, (2, last), (1, 0, 0), landlord=2)
    )


# -------------------------------------------------------------------------------------------------------- capabilities


def test_it_is_registered():
    assert MailgycLobby in bothost_lobbies()


PROVEN = {
    "games": ("doudizhu",),  # test_a_wish_that_the_lobby_cannot_fulfil_costs_no_word
    "tables_per_connection": 1,  # test_leaving_waits_for_its_confirmation_before_the_next_seat
    "connections_per_identity": 1,  # test_trap_a_second_socket_takes_over_…
    "acks_moves": True,  # test_the_landlord_plays_…_the_echo_acknowledges
    "rejects_illegal": "error",  # test_trap_errors_name_neither_request_nor_table
    "sends_turn": False,  # test_trap_nothing_says_whose_turn_it_is
    "sends_legal_actions": False,  # test_no_request_lists_legal_actions
    "takes_composites": False,  # test_one_action_at_a_time
    "clock": "per_move",  # test_trap_nothing_says_whose_turn_it_is
    "resume": "identity",  # test_a_fresh_process_remembers_the_whole_hand
    "resume_delivers": "snapshot",  # test_trap_a_snapshot_tells_neither_bottom_nor_history
    "heartbeat": "app",  # test_ping_is_a_text
    "messages_per_second": None,  # the lobby has no limit: test_three_accounts_of_ours_at_one_table at full speed
    "on_rate_limit": "none",
    "plays_for_us": False,  # test_trap_a_dead_opponent_stalls_the_table_for_ever
    "transport": "websocket",
    "needs_secret": False,  # test_the_name_is_all_that_the_lobby_asks_for
}


def test_every_capability_is_proven():
    assert {name: getattr(MailgycLobby.capabilities, name) for name in Capabilities.__struct_fields__} == PROVEN


def test_no_request_lists_legal_actions():
    assert Bench().play().request().legal is None


def test_one_action_at_a_time():
    bench = Bench().play()
    with pytest.raises(ValueError, match="one action at a time"):
        bench.feed(m.Act("1", bench.request().request_id, ("4", "5")))


def test_ping_is_a_text():
    bench = Bench().connect()
    assert bench.feed(m.Ping()) == [m.SendFrame(bench.conn, "ping")]
    assert bench.feed(m.Frame(bench.conn, "pong")) == [m.Alive()]


def test_a_hand_is_named_by_its_cards():
    hand, _ = MailgycHand.begin(0, (2, 3, 4), wire.Dealt(2, tuple(HANDS[2])))
    assert hand.dealt == set(HANDS[2])
