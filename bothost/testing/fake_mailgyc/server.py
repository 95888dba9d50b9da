"""A fake of the lobby mailgyc/doudizhu with the behaviour of the real server: HTTP and websocket on one loopback port,
recorded frames, and faults as switches.

::

    async with MailgycFake(Traps(drop_every=9)) as lobby:
        ...                                     # connect adapters, or a host, to lobby.url
        assert lobby.play.played == 20 and not lobby.repeated

Written from the frames of the real lobby (``docs/reference/adapters/mailgyc.md``); the rules are our own.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from bothost.lobbies.mailgyc import protocol as wire
from bothost.testing.fake_mailgyc.hands import Hands
from bothost.testing.fake_mailgyc.parts import INIT, NOISE, FakePlayer, Room, Traps
from bothost.testing.fake_server import FakeServer, Line

SECRET = "2|1:0|planted-cookie-secret"


class MailgycFake(FakeServer):
    """A lobby on a free port of loopback. Use it in an ``async with``."""

    def __init__(self, traps: Traps | None = None, *, robots_after_s: float = 0.05, seed: int = 0) -> None:
        super().__init__([Route("/login", self._login, methods=["POST"]), WebSocketRoute("/ws", self.websocket)], seed)
        self.traps = traps or Traps()
        self.play = Hands(self)
        self.robots_after_s = robots_after_s
        self.players: dict[str, FakePlayer] = {}
        """By name, in the order of their first login."""
        self.rooms: dict[int, Room] = {}
        self.frames: list[tuple[int, str, str]] = []
        """(player, "in" | "out", text), oldest first. ``in`` is a frame of a client."""
        self.logins = 0
        self.errors: list[str] = []
        self._numbers = 0

    @property
    def repeated(self) -> list[tuple[int, int, str]]:
        """Refused moves that were made again at the same position."""
        return [move for move, times in self.play.refusals.items() if times > 1]

    # ----------------------------------------------------------------------------------------------------- transport

    async def _login(self, request: Request) -> Response:
        name = (await request.json())["name"]
        self.logins += 1
        player = self.players.setdefault(name, FakePlayer(len(self.players) + 2, name))
        room = -1 if player.room is None else player.room.number
        answer = {"uid": player.uid, "name": name, "sex": 1, "avatar": "", "room": room}
        answer |= {"rooms": self.counts(), "token": "planted-jwt"}
        cookie = f"userinfo={player.uid}|{SECRET}; expires=Sun, 20 Dec 2099 12:00:00 GMT; Path=/"
        return JSONResponse(answer, self.traps.login_status, {"Set-Cookie": cookie})

    def connected(self, socket: WebSocket) -> Line | None:
        cookie = socket.headers.get("cookie", "")
        if not (cookie.startswith("userinfo=") and cookie.endswith(SECRET)):
            return None  # closed without a message, as the real lobby does
        line = Line(socket)
        line.user = int(cookie.split("=")[1].split("|")[0])
        self._player(line).line = line
        return line

    def disconnected(self, line: Line) -> None:
        """When any socket of a player ends, the player counts as gone, also on another socket."""
        self.later(self.traps.notices_after_s, self._leave, self._player(line))

    def _player(self, line: Line) -> FakePlayer:
        return next(player for player in self.players.values() if player.uid == line.user)

    # ------------------------------------------------------------------------------------------------------- telling

    def say(self, player: FakePlayer, code: int, /, **body: Any) -> None:
        """Send a frame to a player, even to one who left."""
        if player.line is None:
            return
        if self.rng.random() < self.traps.noise:
            player.line.send(self.rng.choice(NOISE))
        text = wire.encode(code, **body)
        self.frames.append((player.uid, "out", text))
        player.line.send(text)

    def broadcast(self, room: Room, code: int, /, **body: Any) -> None:
        for player in room.players:
            if not player.left:
                self.say(player, code, **body)

    def show(self, room: Room) -> None:
        """Frame 1006, to everybody."""
        for player in room.players:
            if not player.left:
                self.say(player, wire.JOINED, **room.picture(player))

    def fail(self, player: FakePlayer, reason: str) -> None:
        self.errors.append(reason)
        self.say(player, wire.FAILURE, reason=reason)

    def counts(self) -> list[dict[str, int]]:
        filled = [room.level for room in self.rooms.values() if room.filled]
        return [{"level": level, "number": 33 * (level == 1) + 3 * filled.count(level)} for level in (1, 2, 3)]

    # ------------------------------------------------------------------------------------------------------- hearing

    def received(self, line: Line, text: str) -> None:
        player = self._player(line)
        self.frames.append((player.uid, "in", text))
        if text == wire.PING:
            return line.send(wire.PONG)
        try:
            code, body = msgspec.json.decode(text, type=tuple[int, dict[str, Any]])
        except msgspec.DecodeError:
            return self.fail(player, "Protocol cannot be resolved")
        if code == wire.ROOMS:
            return self.say(player, wire.ROOM_LIST, rooms=self.counts())
        if player.left and self._returns(player, code, body):
            return
        if code == wire.LEAVE:
            return self._leave(player)
        if player.state == INIT:
            return self._join(player, body) if code == wire.JOIN else self.fail(player, "ERROR STATE[0]")
        playing = player.state in (wire.CALLING, wire.PLAYING)
        expected = {wire.WAITING: wire.READY, wire.CALLING: wire.CALL, wire.PLAYING: wire.SHOOT}.get(player.state)
        if playing and (player.room is None or player.room.mover is not player):
            self.fail(player, "TURN ERROR")  # for any message
        elif code != expected:
            self.fail(player, f"STATE[{player.state}]")
        elif player.room is not None and playing:
            self.play.move(player.room, player, text, body)
        elif player.room is not None:
            self.play.ready(player, player.room, int(body["ready"]))

    def _returns(self, player: FakePlayer, code: int, body: dict[str, Any]) -> bool:
        """A message of a player who left. Returns whether it is dealt with: all are ignored but the wish for a room."""
        if code != wire.JOIN:
            return True
        player.left = 0
        number, room = body.get("room", -1), player.room
        if number == -1:
            player.restart(INIT)
            if room is not None:
                self.remove(player, room)
                player.room = None
            return False
        if self._find(body).number != number:
            self.fail(player, f"Room[{number}] Not Found")
        elif room is not None:
            self.show(room)  # also if the player has no seat there any more, and so gets nothing
        return True

    def _find(self, body: dict[str, Any]) -> Room:
        """The room of this number, or one of this level that waits for players, or a new one."""
        level = int(body.get("level", 1))
        if (named := self.rooms.get(body.get("room", -1))) is not None:
            return named
        for room in self.rooms.values():
            if room.level == level and not room.filled and not any(player.robot for player in room.players):
                return room
        self._numbers += 1
        room = self.rooms[self._numbers] = Room(self._numbers, level)
        return room

    def _join(self, player: FakePlayer, body: dict[str, Any]) -> None:
        room = self._find(body)
        player.state = wire.WAITING  # even if there is no free seat
        if None not in room.seats:
            return self.fail(player, f"Room[{room.number}] FULL")
        player.room = room
        self.sit(player, room)
        if room.level == 1:
            self.later(self.robots_after_s, self.play.fill_with_robots, room)

    def sit(self, player: FakePlayer, room: Room) -> None:
        room.seats[room.seats.index(None)] = player
        room.filled |= None not in room.seats
        self.show(room)

    def _leave(self, player: FakePlayer) -> None:
        """The seat stays taken until the hand ends, or until the player asks for another."""
        player.left = 1
        if player.room is not None:
            self.broadcast(player.room, wire.LEFT, uid=player.uid)

    def remove(self, player: FakePlayer, room: Room) -> None:
        if player in room.players:
            room.seats[room.seats.index(player)] = None
        if not room.players:
            self.rooms.pop(room.number, None)
