"""A fake of the lobby mailgyc/doudizhu with the behaviour of the real server: HTTP and websocket on one loopback port,
recorded frames, and faults as switches.

::

    async with MailgycFake(Traps(drop_every=9)) as lobby:
        ...                                     # connect adapters, or a host, to lobby.url
        assert lobby.play.played == 20 and not lobby.repeated

Written from the frames of the real lobby (``docs/reference/adapters/mailgyc.md``); the rules are our own.
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from bothost.lobbies.mailgyc import protocol as wire
from bothost.testing.fake_mailgyc.hands import Hands
from bothost.testing.fake_mailgyc.parts import NOISE, Line, Room, Seat, Traps
from bothost.testing.fake_server import FakeServer
from bothost.testing.fake_server import Line as BaseLine

SECRET = "2|1:0|planted-cookie-secret"


class MailgycFake(FakeServer):
    """A lobby on a free port of loopback. Use it in an ``async with``."""

    def __init__(self, traps: Traps | None = None, *, robots_after_s: float = 0.05, seed: int = 0) -> None:
        super().__init__([Route("/login", self._login, methods=["POST"]), WebSocketRoute("/ws", self.websocket)], seed)
        self.traps = traps or Traps()
        self.play = Hands(self)
        self.robots_after_s = robots_after_s
        self.uids: dict[str, int] = {}
        self.rooms: dict[int, Room] = {}
        self.lines: dict[int, Line] = {}
        """The connection to which the lobby sends, by player."""
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
        uid = self.uids.setdefault(name, len(self.uids) + 2)
        room = self.room_of(uid)
        answer = {"uid": uid, "name": name, "sex": 1, "avatar": "", "room": room.number if room else -1}
        answer |= {"rooms": self.counts(), "token": "planted-jwt"}
        cookie = f"userinfo={uid}|{SECRET}; expires=Sun, 20 Dec 2099 12:00:00 GMT; Path=/"
        return JSONResponse(answer, self.traps.login_status, {"Set-Cookie": cookie})

    def connected(self, socket: WebSocket) -> Line | None:
        cookie = socket.headers.get("cookie", "")
        if not (cookie.startswith("userinfo=") and cookie.endswith(SECRET)):
            return None  # closed without a message, as the real lobby does
        line = Line(socket)
        line.user = int(cookie.split("=")[1].split("|")[0])
        line.dumb = self._is_gone(line.user)
        self.lines[line.user] = line
        return line

    def disconnected(self, line: BaseLine) -> None:
        if self.traps.notices_after_s:
            self.later(self.traps.notices_after_s, self._closed, line)
        else:
            self._closed(line)

    def _is_gone(self, uid: int) -> bool:
        room = self.room_of(uid)
        return room is not None and any(seat.uid == uid and seat.leave for seat in room.taken)

    def _closed(self, line: BaseLine) -> None:
        """When any socket of a player ends, the player counts as gone, also on another socket."""
        current = self.lines.get(line.user)
        if current is line:
            del self.lines[line.user]
        elif current is not None:
            current.dumb = True
        room = self.room_of(line.user)
        if room is None:
            return
        if room.state == wire.WAITING:
            self.leave(room, line.user)
        else:
            room.seat(line.user).leave = 1
            self.broadcast(room, wire.LEFT, uid=line.user)

    # ------------------------------------------------------------------------------------------------------- telling

    def say(self, player: int, code: int, /, **body: Any) -> None:
        line = self.lines.get(player)
        if line is None or line.dumb:
            return
        if self.rng.random() < self.traps.noise:
            line.send(self.rng.choice(NOISE))
        text = wire.encode(code, **body)
        self.frames.append((player, "out", text))
        line.send(text)

    def broadcast(self, room: Room, code: int, /, **body: Any) -> None:
        for seat in room.taken:
            self.say(seat.uid, code, **body)

    def show(self, room: Room) -> None:
        """Frame 1006, to everybody."""
        for seat in room.taken:
            self.say(seat.uid, wire.JOINED, **room.picture(seat.uid))

    def fail(self, uid: int, reason: str) -> None:
        self.errors.append(reason)
        self.say(uid, wire.FAILURE, reason=reason)

    def counts(self) -> list[dict[str, int]]:
        return [
            {"level": level, "number": sum(len(r.taken) for r in self.rooms.values() if r.level == level)}
            for level in (1, 2, 3)
        ]

    def room_of(self, uid: int) -> Room | None:
        return next((room for room in self.rooms.values() if room.seat_of(uid) is not None), None)

    # ------------------------------------------------------------------------------------------------------- hearing

    def received(self, line: BaseLine, text: str) -> None:
        assert isinstance(line, Line)
        uid = line.user
        self.frames.append((uid, "in", text))
        if line.dumb:
            return self._returns(line, text)
        if text == wire.PING:
            return line.send(wire.PONG)
        try:
            code, body = msgspec.json.decode(text, type=tuple[int, dict[str, Any]])
        except msgspec.DecodeError:
            return self.fail(uid, "Protocol cannot be resolved")
        room = self.room_of(uid)
        if code == wire.ROOMS:
            return self.say(uid, wire.ROOM_LIST, rooms=self.counts())
        if room is None:
            if code == wire.JOIN:
                return self._join(uid, body)
            return self.fail(uid, "ERROR STATE[0]")
        if code == wire.LEAVE:
            return self.leave(room, uid)
        expected = {wire.WAITING: wire.READY, wire.CALLING: wire.CALL, wire.PLAYING: wire.SHOOT}[room.state]
        if room.state != wire.WAITING and room.seat_of(uid) != room.turn:
            return self.fail(uid, "TURN ERROR")  # for any message
        if code != expected:
            return self.fail(uid, f"STATE[{room.state}]")
        if code == wire.READY:
            return self.play.ready(room, uid, int(body["ready"]))
        self.play.move(room, uid, text, body)

    def _returns(self, line: Line, text: str) -> None:
        """Every message is ignored until the player names the room."""
        room = self.room_of(line.user)
        with contextlib.suppress(msgspec.DecodeError):
            code, body = msgspec.json.decode(text, type=tuple[int, dict[str, Any]])
            if code == wire.JOIN and room is not None and body.get("room") == room.number:
                line.dumb = False
                room.seat(line.user).leave = 0
                self.show(room)
            elif code == wire.JOIN and room is None:
                line.dumb = False
                self._join(line.user, body)

    def _join(self, uid: int, body: dict[str, Any]) -> None:
        level = int(body.get("level", 1))
        free = [room for room in self.rooms.values() if len(room.taken) < 3 and room.state == wire.WAITING]
        room = next((room for room in free if room.number == body.get("room")), None)
        room = room or next((room for room in free if room.level == level), None)
        if room is None:
            self._numbers += 1
            room = self.rooms[self._numbers] = Room(self._numbers, level)
        name = next(name for name, number in self.uids.items() if number == uid)
        room.seats[room.seats.index(None)] = Seat(uid, name)
        self.show(room)
        if level == 1 and len(room.taken) == 1:
            self.later(self.robots_after_s, self.play.fill_with_robots, room)

    def leave(self, room: Room, uid: int) -> None:
        """A seat that is left during a hand stays taken, and the table waits for it for ever."""
        self.broadcast(room, wire.LEFT, uid=uid)
        seat = room.seat(uid)
        place = room.seats.index(seat)
        if room.state == wire.WAITING:
            room.seats[place] = None
        else:
            dead = room.seats[place] = Seat(-(10**9) - uid, seat.name)
            dead.cards, dead.rob, dead.ready, dead.leave = seat.cards, seat.rob, 1, 1
        if all(seat.uid < 0 for seat in room.taken):
            self.rooms.pop(room.number, None)
