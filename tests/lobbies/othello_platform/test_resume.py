"""Coming back at othello_platform: games and rooms after a lost connection."""

import pytest

from bothost import messages as m

from .bench import (
    Server,
    calls,
    frame,
    only,
    playing,
    proves,
    ready,
    reply,
    room,
    said,
    seek,
)

# ------------------------------------------------------------------------------------------------------ coming back


def back(adapter, conn=2):
    """A connection lost, and another one."""
    adapter.feed(m.SocketClosed(conn - 1, 1006))
    adapter.feed(m.Resume(("room-7",)))
    adapter.feed(m.SocketOpened(conn))
    return adapter.feed(frame("auth_ok", conn, userId=1, username="ada"))


@proves("resume", "resume_delivers")
def test_trap_thirty_seconds_to_return_with_the_games_id():
    adapter, _ = playing()
    server = Server()
    adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",)))
    server.move("d3")
    server.move("c3")
    outputs = back(adapter)
    assert only(outputs, m.Connected).resumed
    assert only(outputs, m.Seated).table == "room-7"
    assert said(outputs) == [{"type": "reconnect", "payload": {"gameId": "g_1", "lastSeq": 0}}]
    outputs = adapter.feed(server.sync(2))
    snapshot = only(outputs, m.Snapshot)
    assert snapshot.view["moves"] == ["d3", "c3"] and snapshot.view["complete"]
    asked = only(outputs, m.ActionRequest)
    assert (asked.request_id, asked.grant_ms) == ("g_1.3.0", 21000)


def test_trap_a_move_can_be_on_the_board_and_not_yet_among_the_moves():
    adapter, _ = playing()
    server = Server()
    adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",)))
    server.move("d3")
    server.move("c3")
    back(adapter)
    outputs = adapter.feed(server.sync(2, moves=server.moves[:-1]))
    assert not [o for o in outputs if isinstance(o, m.Notice)]
    assert only(outputs, m.Snapshot).view["moves"] == ["d3", "c3"]
    assert only(outputs, m.ActionRequest).request_id == "g_1.3.0"


def test_the_same_question_keeps_its_id_over_a_loss():
    adapter, _ = playing()
    server = Server()
    adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",)))
    back(adapter)
    assert only(adapter.feed(server.sync(2)), m.ActionRequest).request_id == "g_1.1.0"


def test_trap_nothing_tells_a_fresh_process_its_game():
    _, outputs = playing()
    memo = only(outputs, m.Remember).memo
    server = Server()
    fresh, outputs = ready(memo)
    assert only(outputs, m.Seated).seat == 0
    assert said(outputs)[0]["type"] == "reconnect"
    assert only(fresh.feed(server.sync()), m.ActionRequest).request_id == "g_1.1.0"


def test_a_game_that_is_gone_is_aborted_not_lost():
    adapter, _ = ready({"game": "g_1", "table": "room-7", "seat": 1})
    outputs = adapter.feed(frame("error", code="GAME_NOT_FOUND", msg="gone"))
    assert only(outputs, m.TableEnded).reason == "aborted"
    assert only(outputs, m.Remember).memo["game"] == ""


def test_a_game_whose_last_move_we_saw_has_a_result_though_the_lobby_has_forgotten_it():
    """The connection is lost between the last move and the message ``game_over``."""
    adapter, _ = playing()
    server = Server()
    for square in ("f5", "d6", "c5", "f4", "e7", "f6", "g5", "e6", "e3"):  # leaves White without a disc
        adapter.feed(server.move(square))
    assert server.turn() is None
    back(adapter)
    outputs = adapter.feed(frame("error", 2, code="GAME_NOT_FOUND", msg="gone"))
    assert only(outputs, m.HandEnded).scores == (1.0, -1.0)
    assert only(outputs, m.TableEnded).reason == "normal"


def test_a_game_that_ended_while_we_were_away():
    adapter, _ = ready({"game": "g_1", "table": "room-7", "seat": 0})
    server = Server()
    outputs = adapter.feed(server.sync(status="finished"))
    assert only(outputs, m.TableEnded).reason == "aborted"


def test_trap_any_closing_socket_starts_the_thirty_seconds():
    """An old connection may be noticed late: coming back is said again until that is over."""
    adapter, _ = playing()
    server = Server()
    back(adapter)
    times = 0
    outputs = adapter.feed(server.sync(2))
    while any(isinstance(o, m.SetTimer) and o.name == "window" and o.after_s < 30 for o in outputs):
        outputs = adapter.feed(m.TimerFired("window"))
        assert said(outputs) == [{"type": "reconnect", "payload": {"gameId": "g_1", "lastSeq": 0}}]
        assert adapter.feed(server.sync(2)) == [], "a decision that is being made is not disturbed"
        times += 1
    assert times * 12 >= 90


def test_trap_a_stale_game_over_on_a_connection_that_is_queueing():
    adapter, _ = ready()
    seek(adapter)
    outputs = adapter.feed(frame("game_over", gameId="g_0", result="WHITE", endReason="disconnect"))
    assert [type(o) for o in outputs] == [m.Notice]
    assert only(adapter.feed(room()), m.Seated).seek == "s", "the seek is still out"


def test_the_end_of_another_game_does_not_end_ours():
    adapter, _ = playing()
    adapter.feed(frame("game_over", gameId="g_0", result="WHITE", endReason="disconnect"))
    assert said(adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",))))[0]["type"] == "move"


def test_a_move_without_an_echo_is_said_again():
    adapter, _ = playing()
    server = Server()
    adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",)))
    for _ in range(2):
        adapter.feed(m.Resync("room-7"))
        assert said(adapter.feed(server.sync()))[0]["type"] == "move"
    adapter.feed(m.Resync("room-7"))
    outputs = adapter.feed(server.sync())
    assert not only(outputs, m.Rejected).resync
    assert only(outputs, m.ActionRequest).request_id == "g_1.1.1"


def test_an_answer_that_comes_while_the_position_is_asked_for_is_kept():
    """The host answers a question once: told again, it would get no answer."""
    adapter, _ = playing()
    server = Server()
    adapter.feed(m.Resync("room-7"))
    assert adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",))) == []
    outputs = adapter.feed(server.sync())
    assert only(outputs, m.ActionRequest).request_id == "g_1.1.0"
    assert said(outputs)[-1]["type"] == "move"


def test_a_waiting_room_is_entered_again_after_a_loss():
    adapter, _ = ready()
    seek(adapter)
    adapter.feed(room(whiteId=None))
    outputs = back(adapter)
    assert only(outputs, m.Seated).table == "room-7"
    assert said(outputs) == [{"type": "room_join", "payload": {"roomId": 7}}]
    outputs = adapter.feed(frame("error", 2, code="ROOM_NOT_FOUND", msg="gone"))
    assert only(outputs, m.TableEnded).reason == "aborted"


def alone(adapter, number):
    """In a room of our own, because the list was empty."""
    (listing,) = calls(seek(adapter, "room"))
    (create,) = calls(adapter.feed(reply(listing, 200, items=[])))
    adapter.feed(reply(create, 201, id=number))
    return adapter.feed(room(roomId=number, whiteId=None))


@pytest.mark.parametrize(("mine", "other", "leaves"), [(7, 9, True), (9, 7, False)])
def test_who_waits_alone_in_the_older_of_two_rooms_leaves_it(mine, other, leaves):
    adapter, _ = ready()
    assert only(alone(adapter, mine), m.Seated).table == f"room-{mine}"
    (look,) = calls(adapter.feed(m.TimerFired("look")))
    items = [{"id": n, "name": "x", "mode": "human_vs_human", "status": "waiting"} for n in (mine, other)]
    outputs = adapter.feed(reply(look, 200, items=items))
    assert [o.reason for o in outputs if isinstance(o, m.TableEnded)] == (["aborted"] if leaves else [])
    if leaves:
        assert calls(outputs)[0].url.endswith(f"/rooms/{mine}/quit")
        (listing,) = calls(seek(adapter, "room"))
        assert said(adapter.feed(reply(listing, 200, items=items)))[0]["payload"] == {"roomId": other}


def test_who_is_not_alone_does_not_look_for_another_room():
    adapter, _ = ready()
    alone(adapter, 7)
    (look,) = calls(adapter.feed(m.TimerFired("look")))
    adapter.feed(room())
    assert calls(adapter.feed(m.TimerFired("look"))) == []
    items = [{"id": 9, "name": "x", "mode": "human_vs_human", "status": "waiting"}]
    assert adapter.feed(reply(look, 200, items=items)) == []


def timers(outputs):
    return {output.name: output.after_s for output in outputs if isinstance(output, m.SetTimer)}


def test_a_room_that_was_entered_again_waits_and_looks_as_before():
    adapter, _ = ready(look_s=10.0, wait_s=300.0)
    alone(adapter, 7)
    adapter.feed(m.SocketClosed(1, 1006))
    adapter.feed(m.TimerFired("look"))
    again = back(adapter)
    shown = adapter.feed(frame("room_state", 2, roomId=7, blackId=1, ownerId=1))
    assert timers(again)["look"] == 10.0 and timers(shown) == {"room": 300.0}


def test_a_room_waits_for_another_opponent_as_long_as_for_the_first():
    adapter, _ = ready(start_s=30.0, wait_s=300.0)
    alone(adapter, 7)
    assert timers(adapter.feed(room()))["room"] == 30.0
    assert timers(adapter.feed(room(whiteId=None))) == {"room": 300.0}


def test_no_other_opponent_comes_to_a_room_of_the_queue():
    adapter, _ = ready(start_s=30.0, wait_s=300.0)
    seek(adapter)
    adapter.feed(room())
    assert timers(adapter.feed(room(whiteId=None))) == {"room": 30.0}
