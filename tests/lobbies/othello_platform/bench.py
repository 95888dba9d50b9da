"""The adapter of othello-platform without sockets, and frames of the lobby to feed it with."""

import json
from pathlib import Path

import bothost.rules as rules
from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.othello_platform import OthelloPlatform, OthelloPlatformOptions

TRANSCRIPTS = sorted((Path(__file__).parents[1] / "transcripts").glob("othello_*.jsonl"))
ACCOUNT = Account(name="ada", url="ws://lobby.example:1/ws", password="planted-secret", user_agent="bot/1")
START_BOARD = [0] * 27 + [2, 1] + [0] * 6 + [1, 2] + [0] * 27
PROVEN = {}
"""Capability → the test that proves it."""


def proves(*names):
    def mark(test):
        PROVEN.update(dict.fromkeys(names, test.__name__))
        return test

    return mark


def recorded(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def frame(kind, conn=1, **payload):
    return m.Frame(conn, json.dumps({"type": kind, "payload": payload, "ts": 1}))


def said(outputs):
    return [json.loads(o.data) for o in outputs if isinstance(o, m.SendFrame)]


def only(outputs, kind):
    found = [o for o in outputs if isinstance(o, kind)]
    assert len(found) == 1, outputs
    return found[0]


def calls(outputs):
    return [o for o in outputs if isinstance(o, m.HttpRequest)]


def reply(request, status, **body):
    return m.HttpResult(request.request, status, (), json.dumps(body).encode())


def refusal(request, status, code):
    return reply(request, status, error={"code": code, "msg": "no"})


def ready(memo=None, **options):
    """Logged in as user 1."""
    adapter = OthelloPlatform(ACCOUNT, OthelloPlatformOptions(**options))
    (login,) = calls(adapter.feed(m.Authenticate(memo or {})))
    adapter.feed(reply(login, 200, token="jwt-1", refreshToken="r-1", user={"id": 1}))
    adapter.feed(m.SocketOpened(1))
    outputs = adapter.feed(frame("auth_ok", userId=1, username="ada"))
    return adapter, outputs


def seek(adapter, mode="match", **attributes):
    return adapter.feed(m.Seek("s", m.Wish("othello", {}, {"mode": mode, **attributes})))


def room(**changes):
    state = {
        "roomId": 7, "gameId": None, "blackId": 1, "whiteId": 2, "status": "waiting", "blackReady": False,
        "whiteReady": False, "blackName": "ada", "whiteName": "bob", "ownerId": 1,
    }  # fmt: skip
    return frame("room_state", **{**state, **changes})


def begin(black=1, white=2, game="g_1", **changes):
    board = {"board": START_BOARD, "turn": "BLACK", "remainingMs": 30000}
    return frame("game_start", gameId=game, blackId=black, whiteId=white, **{**board, **changes})


def playing(seat=0):
    """At game g_1; black is asked."""
    adapter, _ = ready()
    seek(adapter)
    adapter.feed(room() if seat == 0 else room(blackId=2, whiteId=1))
    outputs = adapter.feed(begin() if seat == 0 else begin(2, 1))
    return adapter, outputs


class Server:
    """The truth of a game, as the lobby would tell it."""

    def __init__(self):
        self.state = rules.game("othello").new_state(0)
        self.moves = []

    def board(self):
        return ["-XO".index(disc) for disc in self.state.view(0).to_json()["board"]]

    def turn(self):
        return None if self.state.terminal else ["BLACK", "WHITE"][self.state.to_act[0]]

    def move(self, square, conn=1):
        (seat,) = self.state.to_act
        self.state.apply(seat, rules.game("othello").parse(square))
        while not self.state.terminal and list(self.state.legal(self.state.to_act[0])) == [64]:
            self.state.apply(self.state.to_act[0], 64)
        pos = {"x": "abcdefgh".index(square[0]), "y": int(square[1]) - 1}
        color = ["BLACK", "WHITE"][seat]
        self.moves.append({"seq": len(self.moves) + 1, "color": color, "pos": pos, "isPass": False, "flipped": []})
        return self.told(conn)

    def told(self, conn=1):
        last = self.moves[-1]
        return frame("move", conn, gameId="g_1", board=self.board(), nextTurn=self.turn(), remainingMs=30000, **last)

    def sync(self, conn=1, **changes):
        told = {"gameId": "g_1", "blackId": 1, "whiteId": 2, "turn": self.turn(), "board": self.board()}
        more = {"remainingMs": 21000, "status": "playing", "moves": self.moves}
        return frame("state_sync", conn, **{**told, **more, **changes})
