"""The adapter of mailgyc/doudizhu: coming back to a hand."""

import pytest

from bothost import messages as m
from bothost.lobbies.mailgyc import protocol as wire

from ..adapter_bench import told
from .bench import HANDS, LEVELS, Bench, Transcript, picture, playing, said


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


@pytest.mark.parametrize("reason", ["TURN ERROR", "STATE[3]"])
def test_trap_a_reconnect_is_refused_while_the_lobby_keeps_the_dead_socket(reason):
    """It takes about 6 s. The table is not lost: its room is named again."""
    bench = Bench().play()
    bench.lose()
    bench.resume()
    assert not told(bench.hear(wire.FAILURE, reason=reason), m.Connected | m.TableEnded)
    assert said(bench.fire("rejoin")) == [[1005, {"room": 1, "level": 1}]]
    assert told(bench.hear(wire.JOINED, **playing(2)), m.ActionRequest)


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
    outputs = bench.hear(wire.ROOM_LIST, rooms=LEVELS)
    assert [(end.table, end.reason) for end in told(outputs, m.TableEnded)] == [("1", "aborted")]


def test_coming_back_to_another_room_means_that_ours_is_gone():
    bench = Bench().play()
    bench.lose()
    bench.resume()
    outputs = bench.hear(wire.JOINED, **picture(5, 2))
    assert told(outputs, m.TableEnded)[0].table == "1" and said(outputs)[0] == [1007, {}]


def test_trap_a_room_in_which_we_lost_our_seat_does_not_answer_our_return():
    """The lobby removes the absent when a hand ends, and goes on naming their room at the login."""
    bench = Bench().play()
    bench.lose()
    assert [frame.data for frame in told(bench.resume(), m.SendFrame)][-1] == wire.PING
    outputs = bench.feed(m.Frame(bench.conn, wire.PONG))
    assert [end.reason for end in told(outputs, m.TableEnded)] == ["aborted"]
    assert said(outputs) == [[1007, {}], [1001, {}]]  # it must forget the seat before it gives us another


def test_trap_a_lobby_that_keeps_the_dead_socket_refuses_the_return_to_a_lost_seat_until_it_drops_it():
    bench = Bench().play()
    bench.lose()
    bench.resume()
    assert not told(bench.hear(wire.FAILURE, reason="STATE[4]"), m.TableEnded)
    assert not told(bench.feed(m.Frame(bench.conn, wire.PONG)), m.TableEnded)
    bench.fire("rejoin")
    assert told(bench.feed(m.Frame(bench.conn, wire.PONG)), m.TableEnded)


def test_a_lobby_that_does_not_answer_at_all_keeps_the_seat():
    bench = Bench().play()
    bench.lose()
    bench.resume()
    assert told(bench.fire("hello"), m.Disconnected)
    assert said(bench.resume()) == [[1005, {"room": 1, "level": 1}]]


def test_a_lobby_that_refuses_our_return_for_long_keeps_the_seat():
    bench = Bench().play()
    bench.lose()
    bench.resume()
    bench.hear(wire.FAILURE, reason="TURN ERROR")
    assert told(bench.fire("hello"), m.Disconnected)
    assert said(bench.resume()) == [[1005, {"room": 1, "level": 1}]]


def test_a_hand_ends_once():
    """Not again when we come back to its table, also in a new process."""
    bench = Transcript("mailgyc_full_game").replay()[2]
    assert len(told(bench.out, m.HandEnded)) == 1
    table = told(bench.out, m.Seated)[0].table
    bench.lose()
    for back in (bench, Bench(memo=bench.memo)):
        back.log_in(int(table), m.Resume((table,), bench.memo))
        outputs = back.hear(wire.JOINED, **picture(int(table), 2))
        assert told(outputs, m.Seated) and not told(outputs, m.HandEnded)


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


def test_somebody_elses_return_is_compared_with_our_picture():
    bench = Bench().play()
    assert not told(bench.hear(wire.JOINED, **playing(2)), m.Snapshot | m.Notice)
    outputs = bench.hear(wire.JOINED, **playing(2, turn=3, without=(4,), last=(2, [4])))
    assert told(outputs, m.Notice) and told(outputs, m.Snapshot)  # logged, and the lobby's picture wins


def test_who_left_and_who_came_back_is_told():
    bench = Bench().play()
    assert bench.hear(wire.LEFT, uid=4) == [m.Presence("1", 2, False)]
    back = playing(2)
    back["players"][1]["leave"] = 1
    assert [event.online for event in told(bench.hear(wire.JOINED, **back), m.Presence)] == [True, False, True]
    bench.lose()
    bench.resume()
    back["players"][2]["leave"] = 1
    outputs = bench.hear(wire.JOINED, **back)
    assert [event.online for event in told(outputs, m.Presence)] == [True, False, False]


def test_a_contradiction_is_met_by_asking_anew_a_few_times():
    bench = Bench().play()
    for _ in range(3):
        assert told(bench.hear(wire.SHOT, uid=3, pokers=[3]), m.Disconnected)
        bench.resume()
        bench.hear(wire.JOINED, **playing(2))
    assert told(bench.hear(wire.SHOT, uid=3, pokers=[3]), m.TableEnded)
