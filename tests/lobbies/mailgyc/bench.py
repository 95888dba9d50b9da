"""The adapter of mailgyc/doudizhu without sockets, and pictures of the lobby to feed it with."""

import json
from pathlib import Path

import msgspec

from bothost import messages as m
from bothost import rules
from bothost.lobbies.base import Account
from bothost.lobbies.mailgyc import MailgycLobby, MailgycOptions
from bothost.lobbies.mailgyc import protocol as wire

from ..adapter_bench import AdapterBench, told

ACCOUNT = Account(name="ada", url="ws://lobby.example:8080", user_agent="bot/1")
COOKIE = '"2|1:0|10:planted-cookie"'
GAME = rules.game("doudizhu", preset="mailgyc")
TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
LEVELS = [{"level": 1, "number": 33}, {"level": 2, "number": 0}, {"level": 3, "number": 0}]
HANDS = {
    2: [29, 4, 31, 44, 18, 6, 7, 20, 21, 34, 48, 22, 9, 24, 27, 1, 15],
    3: [3, 43, 5, 45, 47, 36, 23, 10, 49, 11, 25, 13, 26, 14, 41, 53, 54],
    4: [30, 17, 32, 19, 33, 46, 8, 35, 50, 37, 12, 38, 52, 39, 40, 28, 2],
}
BOTTOM = [16, 51, 42]


class Bench(AdapterBench):
    def __init__(self, uid=2, memo=None, **options):
        super().__init__(MailgycLobby(ACCOUNT, MailgycOptions(**options)), GAME, memo)
        self.uid = uid

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
        self.hear(wire.ROOM_LIST, rooms=LEVELS)
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


PLAYED = {2: sorted(HANDS[2] + BOTTOM), 3: HANDS[3], 4: HANDS[4]}


def playing(uid, turn=2, without=(), last=(2, [])):
    hands = {player: [c for c in cards if c not in without] for player, cards in PLAYED.items()}
    return picture(1, uid, 3, hands, turn, last, (1, 0, 0), landlord=2)


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
