"""The adapter of mailgyc/doudizhu: logging in, seats and hands."""

import json

import pytest

from bothost import messages as m
from bothost.lobbies.mailgyc import protocol as wire

from ..adapter_bench import told
from .bench import COOKIE, HANDS, LEVELS, PLAYED, Bench, Transcript, picture, playing, said

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
    assert told(bench.hear(wire.ROOM_LIST, rooms=LEVELS), m.Connected) == [m.Connected("2", False, "ada")]


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
    outputs = bench.feed(m.HttpResult(request.request, status, (), b"planted-jwt" if status else b"ConnectError: why"))
    assert told(outputs, end) and "planted" not in repr(outputs)
    assert status or told(outputs, end)[0].reason == "login: ConnectError: why"


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
    assert said(outputs) == [[1007, {}], [1001, {}]]
    assert told(outputs, m.SeekEnded) and not told(outputs, m.Seated)


def test_trap_the_first_request_for_a_room_by_number_may_have_no_answer():
    """That of a player who was here before. The second has one."""
    bench = Bench().connect()
    asked = said(bench.feed(m.Seek("s", m.Wish("doudizhu", {}, {"room": 7}))))
    assert said(bench.fire("rejoin")) == asked == [[1005, {"room": 7, "level": 1}]]
    assert told(bench.hear(wire.JOINED, **picture(7, 2)), m.Seated)
    assert bench.fire("rejoin") == []


@pytest.mark.parametrize(
    "wish",
    [
        m.Wish("othello"),
        m.Wish("doudizhu", {"bidding": "score"}),
        m.Wish("doudizhu", {}, {"level": 9}),
        m.Wish("doudizhu", {}, {"room": "x"}),
        m.Wish("doudizhu", {}, {"lvel": 2}),
    ],
)
def test_a_wish_that_the_lobby_cannot_fulfil_costs_no_word(wish):
    bench = Bench().connect()
    outputs = bench.feed(m.Seek("s", wish))
    assert said(outputs) == [] and told(outputs, m.SeekEnded)


def test_trap_leaving_is_not_answered_so_the_list_of_rooms_shows_when_the_next_seat_can_be_asked_for():
    bench = Bench().seat()
    assert said(bench.feed(m.Leave("1"))) == [[1007, {}], [1001, {}]]
    assert said(bench.feed(m.Seek("s2", m.Wish("doudizhu")))) == []
    assert bench.hear(wire.JOINED, **picture(1, 2)) == []  # of the room that we left
    assert said(bench.hear(wire.ROOM_LIST, rooms=LEVELS)) == [[1005, {"room": -1, "level": 1}]]


def test_a_seat_that_the_lobby_keeps_all_the_same_is_found_by_logging_in():
    bench = Bench().play()
    bench.feed(m.Leave("1"))
    assert bench.hear(wire.SHOT, uid=2, pokers=[4], multiple=30) == [], "of the room that we left"
    bench.feed(m.Seek("s2", m.Wish("doudizhu")))
    bench.hear(wire.ROOM_LIST, rooms=LEVELS)
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
    bench.hear(wire.ROOM_LIST, rooms=LEVELS)
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


def test_trap_the_lobby_compares_only_plays_of_the_same_kind():
    """A single card on a pair costs the view its history, and not the connection."""
    bench = Bench(uid=4).play()
    bench.hear(wire.SHOT, uid=2, pokers=[29, 16], multiple=30)
    before = bench.view.seq
    outputs = bench.hear(wire.SHOT, uid=3, pokers=[43], multiple=30)
    assert told(outputs, m.Snapshot) and told(outputs, m.ActionRequest) and not told(outputs, m.Disconnected)
    assert bench.view.to_json()["last"] == [1, "4"] and bench.view.seq > before
    assert said(bench.act("8")) == [[3001, {"pokers": [8]}]]
    assert told(bench.hear(wire.SHOT, uid=4, pokers=[8], multiple=30), m.MoveAcknowledged)
    bench.lose()
    bench.resume()
    hands = {uid: [card for card in cards if card not in (29, 16, 43, 8)] for uid, cards in PLAYED.items()}
    bench.hear(wire.JOINED, **picture(1, 4, 3, hands, 2, (4, [8]), (1, 0, 0), landlord=2))
    assert bench.view.to_json()["bottom"] == "33Q"


def test_a_last_card_that_beats_nothing_ends_the_hand():
    bench = Bench(uid=4)
    bench.log_in(room=1)
    hands = {2: [4], 3: [43], 4: HANDS[4]}
    bench.hear(wire.JOINED, **picture(1, 4, 3, hands, 3, (2, [29, 16]), (1, 0, 0), landlord=2))
    assert not told(bench.hear(wire.SHOT, uid=3, pokers=[43], multiple=30), m.Disconnected)
    results = [{"uid": uid, "point": point, "pokers": []} for uid, point in ((2, -20), (3, 10), (4, 10))]
    (ended,) = told(bench.hear(wire.ENDED, winner=3, players=results), m.HandEnded)
    assert ended.scores == (-20.0, 10.0, 10.0)


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
    assert said(outputs)[0] == [1007, {}]
    assert [end.reason for end in told(outputs, m.TableEnded)] == ["aborted"]


def test_trap_a_seat_that_is_left_between_two_hands_stays_empty():
    """A room that was full once gets nobody new. A player who was only disconnected comes back."""
    bench = Bench(stall_s=8.0, wait_s=80.0).seat()
    assert m.SetTimer("stall", 15.0) in bench.out
    assert m.SetTimer("stall", 2.0) in bench.hear(wire.LEFT, uid=4)
    assert m.SetTimer("stall", 2.0) in bench.feed(m.TimerFired("stall"))
    assert m.SetTimer("stall", 15.0) in bench.hear(wire.JOINED, **picture(1, 2))


def test_trap_the_lobby_removes_the_absent_when_a_hand_ends_and_fills_no_seat():
    bench = Bench().play()
    bench.hear(wire.LEFT, uid=4)
    results = [{"uid": uid, "point": 10, "pokers": []} for uid in (2, 3, 4)]
    outputs = bench.hear(wire.ENDED, winner=2, players=results)
    assert [end.reason for end in told(outputs, m.HandEnded)] == ["normal"]
    assert [end.reason for end in told(outputs, m.TableEnded)] == ["aborted"]
    assert said(outputs) == [[1007, {}], [1001, {}]]


def test_a_table_where_a_hand_was_dealt_was_full_though_no_frame_showed_the_third_player():
    shown = picture(1, 2)
    shown["players"][2] = {}
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("doudizhu", {}, {})))
    bench.hear(wire.JOINED, **shown)
    bench.hear(wire.DEALT, uid=2, timer=40, pokers=HANDS[2])
    bench.hear(wire.LEFT, uid=3)
    outputs = bench.hear(wire.ENDED, winner=2, players=[{"uid": uid, "point": 10, "pokers": []} for uid in (2, 3)])
    assert [end.reason for end in told(outputs, m.TableEnded)] == ["aborted"]


def test_an_empty_seat_ends_a_table_that_was_full_but_not_one_that_never_was():
    shown = picture(1, 2)
    for seat in (1, 2):
        shown["players"][seat] = {}
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("doudizhu", {}, {})))
    assert not told(bench.hear(wire.JOINED, **shown), m.TableEnded)
    bench.hear(wire.JOINED, **picture(1, 2))
    assert told(bench.hear(wire.JOINED, **shown), m.TableEnded)


def test_trap_a_player_whom_the_lobby_removed_unnoticed_hears_it_from_a_refusal():
    """It shows the room to those who return while a hand ends, and then takes their seats."""
    bench = Bench().seat()
    assert said(bench.feed(m.TimerFired("ready"))) == [[2001, {"ready": 1}]]
    assert told(bench.hear(wire.FAILURE, reason="STATE[4]"), m.TableEnded)


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
