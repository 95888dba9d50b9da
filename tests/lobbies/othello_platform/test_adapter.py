"""The adapter of othello-platform, step by step: every trap of the real lobby, every capability."""

import json

import pytest

import bothost.rules as rules
from bothost import messages as m
from bothost.lobbies import bothost_lobbies
from bothost.lobbies.base import Capabilities
from bothost.lobbies.othello_platform import OthelloPlatform
from bothost.lobbies.othello_platform.position import START, text

from . import test_login, test_resume
from .bench import (
    PROVEN,
    START_BOARD,
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

# ------------------------------------------------------------------------------------------------------------ seats


@proves("tables_per_connection", "connections_per_identity", "games")
def test_one_table_at_a_time_of_othello():
    adapter, _ = ready()
    assert said(seek(adapter)) == [{"type": "match_join", "payload": {}}]
    assert only(adapter.feed(m.Seek("t", m.Wish("othello"))), m.SeekEnded).seek == "t"
    other, _ = ready()
    assert only(other.feed(m.Seek("t", m.Wish("doudizhu"))), m.SeekEnded).seek == "t"
    outputs = adapter.feed(m.Resume(()))
    assert m.CloseSocket(1) in outputs and only(outputs, m.OpenSocket).conn == 2, "never two sockets"


def test_a_misspelt_attribute_of_a_wish_is_named():
    adapter, _ = ready()
    outputs = seek(adapter, "room", pasword="x")
    assert outputs == [m.SeekEnded("s", "a wish has no attribute 'pasword'; did you mean 'password'?")]
    assert not only(seek(adapter, "room", level=3), m.HttpRequest).body, "a label for our routes"


def test_matchmaking_still_needs_ready_and_start():
    adapter, _ = ready()
    seek(adapter)
    outputs = adapter.feed(room(whiteId=None))
    assert only(outputs, m.Seated).seek == "s" and said(outputs) == []
    outputs = adapter.feed(room())
    assert [x["type"] for x in said(outputs)] == ["room_ready"]
    assert said(adapter.feed(frame("match_found", roomId="7", opponent=None))) == []
    assert said(adapter.feed(room(blackReady=True))) == []
    assert said(adapter.feed(room(blackReady=True, whiteReady=True))) == [
        {"type": "room_start", "payload": {"roomId": 7}}
    ]
    assert said(adapter.feed(room(blackReady=True, whiteReady=True))) == [], "it is said once"


def test_only_the_owner_starts():
    adapter, _ = ready()
    seek(adapter)
    adapter.feed(room(ownerId=2))
    assert said(adapter.feed(room(ownerId=2, blackReady=True, whiteReady=True))) == []


def test_trap_match_timeout_after_a_minute_ends_the_seek():
    adapter, _ = ready()
    seek(adapter)
    assert only(adapter.feed(frame("match_timeout")), m.SeekEnded).seek == "s"
    assert said(seek(adapter))[0]["type"] == "match_join"


def test_a_full_room_means_the_next_one_then_our_own():
    adapter, _ = ready()
    (listing,) = calls(seek(adapter, "room"))
    items = [{"id": n, "name": "x", "mode": "human_vs_human", "status": "waiting"} for n in (4, 5)]
    assert said(adapter.feed(reply(listing, 200, items=items)))[0]["payload"] == {"roomId": 4}
    outputs = adapter.feed(frame("error", code="ROOM_FULL", msg="full"))
    assert said(outputs)[0]["payload"] == {"roomId": 5}
    (create,) = calls(adapter.feed(frame("error", code="ROOM_NOT_FOUND", msg="gone")))
    assert said(adapter.feed(reply(create, 201, id=6)))[0] == {"type": "room_join", "payload": {"roomId": 6}}


def test_a_room_may_be_called_by_a_number():
    adapter, _ = ready()
    (listing,) = calls(adapter.feed(m.Seek("s", m.Wish("othello", {}, {"mode": "room", "name": 17}))))
    items = [
        {"id": n, "name": name, "mode": "human_vs_human", "status": "waiting"} for n, name in ((4, "1"), (5, "17"))
    ]
    assert said(adapter.feed(reply(listing, 200, items=items)))[0]["payload"] == {"roomId": 5}


def test_a_cancelled_seek_leaves_queue_and_room():
    adapter, _ = ready()
    seek(adapter)
    assert [x["type"] for x in said(adapter.feed(m.CancelSeek("s")))] == ["match_leave"]
    (create,) = calls(seek(adapter, "create"))
    adapter.feed(m.CancelSeek("s"))
    assert calls(adapter.feed(reply(create, 201, id=6)))[0].url.endswith("/rooms/6/quit")


# ------------------------------------------------------------------------------------------------------------ games


@proves("sends_turn", "sends_legal_actions", "clock", "takes_composites")
def test_a_game_begins_and_asks():
    _, outputs = playing()
    told = [o for o in outputs if not isinstance(o, m.CancelTimer)]
    assert told[0] == m.Remember({"game": "g_1", "table": "room-7", "seat": 0, "attributes": {"mode": "match"}}), (
        "what a fresh process needs is remembered before the first move"
    )
    assert isinstance(told[1], m.HandStarted) and told[1].seat == 0
    assert told[2] == m.Delta("room-7", "g_1", 0, (START,))
    asked = told[3]
    assert (asked.request_id, asked.grant_ms, asked.bank_ms, asked.seq, asked.legal) == ("g_1.1.0", 30000, 0.0, 1, None)
    assert json.loads(asked.raw)["type"] == "game_start"


@proves("acks_moves")
def test_the_echo_of_our_move_acknowledges_it():
    adapter, _ = playing()
    server = Server()
    outputs = adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",)))
    assert said(outputs) == [
        {"type": "move", "payload": {"gameId": "g_1", "seq": 1, "color": "BLACK", "pos": {"x": 3, "y": 2}}}
    ]
    assert adapter.feed(server.move("d3")) == [
        m.Delta("room-7", "g_1", 1, ("move 0 d3",)),
        m.MoveAcknowledged("room-7", "g_1.1.0"),
    ]
    outputs = adapter.feed(server.move("c3"))
    assert only(outputs, m.Delta).events == ("move 1 c3",)
    assert only(outputs, m.ActionRequest).request_id == "g_1.3.0"
    assert adapter.feed(server.told()) == [], "told twice"


PASSING = ["d3", "c3", "f5", "d2", "d1", "e1", "b2", "d6", "d7", "c1"]
"""After the last of these black must pass: the game of ``othello_pass.jsonl``."""


@pytest.mark.parametrize("seat", [0, 1])
def test_trap_a_pass_has_no_message(seat):
    adapter, _ = playing(seat)
    server = Server()
    for square in PASSING:
        outputs = adapter.feed(server.move(square))
    assert only(outputs, m.Delta).events == ("move 1 c1", "pass 0")
    asked = [o for o in outputs if isinstance(o, m.ActionRequest)]
    assert said(outputs) == [], "no pass is sent"
    assert len(asked) == seat, "who must pass is not asked; who plays again is"


def test_a_pass_that_is_told_all_the_same_changes_nothing():
    adapter, _ = playing()
    server = Server()
    for square in PASSING:
        adapter.feed(server.move(square))
    assert adapter.feed(frame("pass", gameId="g_1", color="BLACK", nextTurn="WHITE")) == []


@proves("rejects_illegal")
@pytest.mark.parametrize("code", ["ILLEGAL_MOVE", "NOT_YOUR_TURN", "VALIDATION_ERROR"])
def test_trap_an_error_names_nothing(code):
    adapter, _ = playing()
    server = Server()
    adapter.feed(m.Act("room-7", "g_1.1.0", ("d3",)))
    outputs = adapter.feed(frame("error", code=code, msg="no"))
    assert outputs == [m.Rejected("room-7", "g_1.1.0", f"{code}: no", resync=True)]
    assert isinstance(adapter.feed(frame("error", code=code, msg="no"))[0], m.Notice), "no move is out any more"
    assert said(adapter.feed(m.Resync("room-7"))) == [{"type": "reconnect", "payload": {"gameId": "g_1", "lastSeq": 0}}]
    outputs = adapter.feed(server.sync())
    assert only(outputs, m.Snapshot) and only(outputs, m.ActionRequest).request_id == "g_1.1.1"


def test_refusals_are_bounded():
    adapter, _ = playing()
    server = Server()
    for attempt in range(4):
        adapter.feed(m.Act("room-7", f"g_1.1.{attempt}", ("d3",)))
        adapter.feed(frame("error", code="ILLEGAL_MOVE", msg="no"))
        adapter.feed(m.Resync("room-7"))
        outputs = adapter.feed(server.sync())
    assert not [o for o in outputs if isinstance(o, m.ActionRequest)]


def test_refusals_are_bounded_however_often_the_position_is_sent():
    """A restarted lobby forgets a forced pass and refuses every move: no request may tempt the host again."""
    adapter, _ = playing(1)
    server = Server()
    for square in PASSING:
        outputs = adapter.feed(server.move(square))
    assert only(outputs, m.ActionRequest), "white moves again, as black must pass"
    moves, asked = 0, outputs
    for _ in range(20):
        for request in [o for o in asked if isinstance(o, m.ActionRequest)]:
            moves += len(said(adapter.feed(m.Act("room-7", request.request_id, ("c2",)))))
            adapter.feed(frame("error", code="NOT_YOUR_TURN", msg="no"))
        adapter.feed(m.Resync("room-7"))
        asked = adapter.feed(server.sync(turn="BLACK", blackId=2, whiteId=1))
        assert only(asked, m.Snapshot)
    assert moves == 1
    assert "must pass" in only(asked, m.Notice).text


def test_moves_refused_at_one_board_are_counted_over_resyncs():
    adapter, outputs = playing()
    server = Server()
    moves = 0
    for _ in range(12):
        for request in [o for o in outputs if isinstance(o, m.ActionRequest)]:
            moves += len(said(adapter.feed(m.Act("room-7", request.request_id, ("d3",)))))
            adapter.feed(frame("error", code="ILLEGAL_MOVE", msg="no"))
        adapter.feed(m.Resync("room-7"))
        outputs = adapter.feed(server.sync())
    assert moves == 4


def test_a_board_that_is_not_ours_is_logged_and_the_lobbys_counts():
    adapter, _ = playing()
    server = Server()
    server.move("d3")
    board = server.board()
    board[19] = 2
    told = json.loads(server.told().data)
    outputs = adapter.feed(frame("move", **{**told["payload"], "board": board, "nextTurn": "BLACK"}))
    assert only(outputs, m.Notice).level == "warning"
    snapshot = only(outputs, m.Snapshot)
    view = rules.game("othello").view_from_snapshot(snapshot.view)
    assert view.to_json()["board"] == text(board)
    assert view.asked and only(outputs, m.ActionRequest).seq == view.seq


@pytest.mark.parametrize("white", [59, 1], ids=["white must pass", "no side can play"])
def test_a_board_on_which_the_lobbys_turn_is_impossible_is_asked_for_again(white):
    adapter, _ = playing(1)
    board = [1] * 60 + [0] * 4
    board[white] = 2  # and yet it is white's turn, says the lobby
    outputs = adapter.feed(
        frame("move", gameId="g_1", seq=1, color="BLACK", pos={"x": 3, "y": 2}, board=board, nextTurn="WHITE")
    )
    assert said(outputs)[-1]["type"] == "reconnect"
    assert only(adapter.feed(Server().sync(blackId=2, whiteId=1, turn="WHITE")), m.Snapshot)


def test_a_move_that_our_rules_do_not_allow_is_the_lobbys_word():
    adapter, _ = playing(1)
    board = [*START_BOARD]
    board[0] = 1
    outputs = adapter.feed(
        frame("move", gameId="g_1", seq=1, color="BLACK", pos={"x": 0, "y": 0}, board=board, nextTurn="WHITE")
    )
    assert only(outputs, m.Notice) and only(outputs, m.Snapshot) and only(outputs, m.ActionRequest)


@pytest.mark.parametrize(
    ("result", "reason", "scores", "table"),
    [
        ("BLACK", "normal", (1.0, -1.0), "normal"),
        ("DRAW", "draw_agree", (0.0, 0.0), "normal"),
        ("WHITE", "resign", (-1.0, 1.0), "resigned"),
        ("WHITE", "timeout", (-1.0, 1.0), "timeout"),
        ("BLACK", "disconnect", (1.0, -1.0), "left"),
        (None, "cancelled", None, "aborted"),
    ],
)
def test_ends(result, reason, scores, table):
    adapter, _ = playing()
    outputs = adapter.feed(frame("game_over", gameId="g_1", result=result, endReason=reason))
    assert only(outputs, m.HandEnded).scores == scores
    assert only(outputs, m.TableEnded).reason == table
    assert only(outputs, m.Remember).memo["game"] == ""
    assert said(seek(adapter))[0]["type"] == "match_join", "and the next one"


@proves("plays_for_us")
def test_trap_thirty_seconds_a_move_then_loss():
    """The lobby never moves for us: a clock that ran out ends the game."""
    adapter, _ = playing()
    outputs = adapter.feed(frame("game_over", gameId="g_1", result="WHITE", endReason="timeout"))
    assert only(outputs, m.TableEnded).reason == "timeout"
    assert not [o for o in outputs if isinstance(o, m.ServerActedForUs)]


def test_leaving_resigns():
    adapter, _ = playing()
    outputs = adapter.feed(m.Leave("room-7"))
    assert said(outputs) == [{"type": "resign", "payload": {"gameId": "g_1", "color": "BLACK"}}]
    assert only(outputs, m.TableEnded).reason == "left"


@proves("messages_per_second", "on_rate_limit")
def test_trap_the_21st_message_within_a_second_closes_the_socket():
    """The host keeps to half of what is declared (the count is taken in the games against the fake lobby)."""
    adapter, _ = playing()
    assert adapter.capabilities.messages_per_second == 20.0
    assert only(adapter.feed(frame("error", code="RATE_LIMITED", msg="slow")), m.Throttled).retry_after_s > 1.0
    assert only(adapter.feed(m.SocketClosed(1, 1005)), m.Disconnected).retry_after_s > 1.0


@proves("heartbeat")
def test_heartbeat():
    adapter, _ = ready()
    assert adapter.feed(m.Ping()) == [m.SendFrame(1, '{"type":"ping"}')]
    assert adapter.feed(m.Frame(1, '{"type":"pong","ts":1}')) == [m.Alive()]


@proves("chat")
def test_the_lobby_has_no_chat():
    adapter, _ = playing()
    assert not adapter.capabilities.chat
    assert adapter.feed(m.Say("room-7", "hello")) == []


@proves("transport")
def test_every_capability_is_proven():
    assert test_login and test_resume  # they prove some
    assert set(Capabilities.__struct_fields__) == set(PROVEN)
    assert OthelloPlatform in [lazy.load() for lazy in bothost_lobbies()]
