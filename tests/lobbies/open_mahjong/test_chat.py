"""Chat at open_mahjong: a second socket, which costs no game whatever happens to it."""

import json

import pytest

from bothost import messages as m
from bothost.lobbies.open_mahjong.chat import FIRST_CONN

from ..adapter_bench import told
from .bench import Bench

ROOM = "room-1"


class ChatBench(Bench):
    """A player in a room of the lobby, and the chat server's socket."""

    def __init__(self, url="/chat"):
        super().__init__(chat_url=url)
        self.chat = 0

    def feed(self, item):
        game = self.conn
        out = super().feed(item)
        if self.conn > FIRST_CONN:
            self.chat, self.conn = self.conn, game
        return out

    def hear_chat(self, kind, content="", room=0):
        return self.feed(m.Frame(self.chat, json.dumps({"responseType": kind, "roomId": room, "content": content})))

    def seated(self):
        self.sit()
        self.feed(m.SocketOpened(self.chat))
        self.hear_chat("Tips", "ok")
        self.hear_chat("Tips", "ok", 1)
        return self


def said(out):
    return [json.loads(o.data) for o in out if isinstance(o, m.SendFrame) and o.conn > FIRST_CONN]


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        ("/chat", "ws://lobby.example:8081/chat/"),
        ("ws://talk.example:8083/chat", "ws://talk.example:8083/chat/"),
        ("wss://talk.example/chat/", "wss://talk.example/chat/"),
    ],
)
def test_the_chat_server_has_a_url_of_its_own_or_a_path(url, opened):
    bench = ChatBench(url).connect()
    (socket,) = [o for o in told(bench.out, m.OpenSocket) if o.conn > FIRST_CONN]
    assert socket.url.startswith(opened)


def test_a_login_that_is_repeated_opens_no_further_socket():
    bench = ChatBench()
    bench.log_in()
    info = {"user_id": bench.user, "username": "ada", "userkey": "another-key"}
    assert bench.hear("login", login_info=info) == []


def test_without_the_option_there_is_no_chat():
    bench = Bench().sit()
    assert not [o for o in told(bench.out, m.OpenSocket) if o.conn > FIRST_CONN]
    assert bench.feed(m.Say(ROOM, "hello")) == []


def test_logging_in_with_the_key_of_the_game_server_then_the_room():
    bench = ChatBench().sit()
    (login,) = said(bench.feed(m.SocketOpened(bench.chat)))
    assert login == {"type": "login", "data": {"username": "ada", "userkey": "planted-key"}}
    (join,) = said(bench.hear_chat("Tips", "ok"))
    assert join == {"type": "joinRoom", "data": {"roomId": 1}}


def test_a_login_without_an_answer_is_given_up_and_tried_again():
    bench = ChatBench().sit()
    (timer,) = told(bench.feed(m.SocketOpened(bench.chat)), m.SetTimer)
    out = bench.feed(m.TimerFired(timer.name))
    assert m.CloseSocket(bench.chat) in out and told(out, m.Notice)
    (timer,) = told(out, m.SetTimer)
    (again,) = told(bench.feed(m.TimerFired(timer.name)), m.OpenSocket)
    assert again.conn > FIRST_CONN
    bench.feed(m.SocketOpened(again.conn))
    assert m.CancelTimer(timer.name) in bench.hear_chat("Tips", "ok")


def test_what_is_said_waits_for_the_room():
    bench = ChatBench().sit()
    assert bench.feed(m.Say(ROOM, "hello\x1b[31m")) == []
    bench.feed(m.SocketOpened(bench.chat))
    bench.hear_chat("Tips", "ok")
    (sent,) = said(bench.hear_chat("Tips", "ok", 1))
    assert sent == {"type": "sendChat", "data": {"content": "hello", "roomId": 1}}
    assert said(bench.feed(m.Say("room-2", "elsewhere"))) == []


def test_others_are_heard_and_neither_we_nor_the_hall():
    bench = ChatBench().seated()
    assert bench.hear_chat("Chat", "bob: hi: there", 1) == [m.Chat(ROOM, "bob", "hi: there")]
    for content, room in (("ada: hi", 1), ("bob: hi", 0), ("bob: hi", 2), ("nobody", 1)):
        assert bench.hear_chat("Chat", content, room) == []


@pytest.mark.parametrize("frame", ["", "[]", "{", '{"roomId":"x"}', '{"responseType":7}', "null"])
def test_any_frame_is_survived(frame):
    bench = ChatBench().seated()
    assert bench.feed(m.Frame(bench.chat, frame)) == []


@pytest.mark.parametrize("end", [m.SocketClosed, m.SocketFailed])
def test_a_lost_chat_costs_no_session_and_is_tried_again(end):
    bench = ChatBench().seated()
    before = bench.chat
    out = bench.feed(end(before, 1006))
    assert not told(out, m.Disconnected) and told(out, m.Notice)
    assert told(bench.fire("chat"), m.OpenSocket)
    assert bench.chat > before


def test_a_kickout_ends_the_chat_alone():
    bench = ChatBench().seated()
    out = bench.hear_chat("login_kickout", "elsewhere")
    assert told(out, m.CloseSocket)[0].conn == bench.chat
    assert not told(out, m.Superseded)


def test_the_end_of_the_session_closes_the_chat():
    bench = ChatBench().seated()
    assert bench.chat in [o.conn for o in told(bench.lose(), m.CloseSocket)]
    assert "planted-key" not in repr([o for o in bench.out if not isinstance(o, m.SendFrame)])
