"""The adapter of othello-platform: recorded frames and hostile ones."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothost.rules as rules
from bothost import messages as m
from bothost.lobbies.othello_platform import OthelloPlatform, OthelloPlatformOptions
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.position import START, Position, notation, text

from .bench import (
    ACCOUNT,
    TRANSCRIPTS,
    Server,
    begin,
    calls,
    frame,
    playing,
    ready,
    recorded,
    reply,
    room,
    seek,
)

# ------------------------------------------------------------------------------------------------------- transcripts


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_every_frame_of_the_real_lobby_is_understood(path):
    for line in recorded(path):
        if line["dir"] == "in":
            wire.decode(json.dumps(line["data"]))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_every_game_of_the_real_lobby_folds_to_the_boards_that_it_told(path):
    folds = {}
    for line in recorded(path):
        if line["dir"] != "in":
            continue
        told = wire.decode(json.dumps(line["data"]))
        if isinstance(told, wire.GameStart):
            fold = folds[line["conn"]] = Position(0)
            fold.observe(START)
            assert fold.board == text(told.board)
        elif isinstance(told, wire.Moved):
            fold = folds[line["conn"]]
            assert fold.place(told.color, notation(told.pos)) is not None
            assert (fold.board, fold.turn) == (text(told.board), told.next_turn)
    assert len(TRANSCRIPTS) == 6


def connections():
    for path in TRANSCRIPTS:
        lines = recorded(path)
        for name in sorted({line["conn"] for line in lines if line["dir"] == "in"}):
            frames = [line["data"] for line in lines if line["dir"] == "in" and line["conn"] == name]
            if any(data["type"] == "auth_ok" for data in frames):
                yield pytest.param(frames, id=f"{path.stem}-{name}")


@pytest.mark.parametrize("frames", list(connections()))
def test_a_whole_connection_gives_events_that_fold_without_a_gap(frames):
    adapter = OthelloPlatform(ACCOUNT, OthelloPlatformOptions())
    (login,) = calls(adapter.feed(m.Authenticate()))
    adapter.feed(reply(login, 200, token="jwt"))
    adapter.feed(m.SocketOpened(1))
    view = None
    for data in frames:
        for output in adapter.feed(m.Frame(1, json.dumps(data))):
            assert not isinstance(output, m.Unknown)
            match output:
                case m.HandStarted():
                    view = rules.game("othello").new_view(output.seat)
                case m.Delta():
                    assert output.seq == view.seq
                    view.observe_all(output.events)
                case m.ActionRequest():
                    assert view.asked and output.seq == view.seq and 64 not in view.legal()
                case m.HandEnded(reason="normal"):
                    assert view.terminal


# --------------------------------------------------------------------------------------------------- hostile frames

json_values = st.sampled_from(
    [None, True, -1, 0, 2, 64, 1.5, "", "BLACK", "1", [], [0] * 64, {}, {"x": 8, "y": 0}, "g_1"]
)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_whatever_arrives_feed_returns(data):
    adapter, _ = playing()
    server = Server()
    known = [begin(game="g_2"), room(), server.move("d3"), server.sync(), frame("error", code="X")]
    payload = json.loads(data.draw(st.sampled_from(known)).data)
    kind, fields = payload["type"], payload["payload"]
    for name in data.draw(st.sets(st.sampled_from(sorted(fields)))):
        fields[name] = data.draw(json_values)
    for output in adapter.feed(m.Frame(1, json.dumps({"type": kind, "payload": fields}))):
        assert output is not None


@pytest.mark.parametrize(
    "raw", ["", "[]", "{", '{"type":1}', '{"type":"move"}', '{"type":"new_thing","payload":{}}', b"\xff"]
)
def test_what_is_not_understood_is_told_and_never_fatal(raw):
    adapter, _ = playing()
    (told,) = adapter.feed(m.Frame(1, raw))
    assert isinstance(told, m.Unknown)


@pytest.mark.parametrize("raw", [room(roomId="9" * 5000), begin(remainingMs=10**400)])
def test_numbers_that_cannot_be_are_not_understood(raw):
    adapter, _ = ready()
    seek(adapter)
    (told,) = adapter.feed(raw)
    assert isinstance(told, m.Unknown)


def test_a_listed_room_whose_id_cannot_be_is_left_out():
    rooms = [{"id": "9" * 5000}, {"id": 7}]
    assert [found.id for found in wire.room_list(json.dumps({"items": rooms}).encode())] == ["7"]


def test_secrets_are_in_no_event():
    outputs = ready()[1] + playing()[1]
    events = [o for o in outputs if not isinstance(o, m.HttpRequest | m.SendFrame)]
    assert "planted-secret" not in repr(events) and "jwt-1" not in repr(events)
    assert "jwt-1" not in repr(wire.login(b'{"token":"jwt-1"}'))
