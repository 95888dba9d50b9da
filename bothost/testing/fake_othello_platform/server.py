"""A fake server of othello-platform on loopback, REST and websocket, for tests of its adapter.

It has the observed behaviour of the real one (``docs/reference/adapters/othello_platform.md``). The 21st message within
a second closes the socket. Passes have no message. The end of any socket of a player starts the time limit for
``reconnect``. Errors do not say what they are about. ``Traps`` adds further faults.

::

    async with FakeOthelloPlatform(traps=Traps(drop_every=9)) as lobby:
        ...                          # connect adapters or hosts to lobby.url
        assert lobby.most_per_second <= 20
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from bothost.testing.fake_othello_platform.accounts import Accounts
from bothost.testing.fake_othello_platform.games import Games
from bothost.testing.fake_othello_platform.parts import Json, Line, Room, Traps
from bothost.testing.fake_othello_platform.rooms import Rooms
from bothost.testing.fake_server import FakeServer
from bothost.testing.fake_server import Line as BaseLine

AUTH_S = 5.0
"""Close a connection that sends no token for this long."""


class FakeOthelloPlatform(FakeServer):
    """The server. Use it in an ``async with``."""

    def __init__(
        self,
        *,
        traps: Traps | None = None,
        seed: int = 0,
        move_s: float = 30.0,
        queue_s: float = 60.0,
        list_s: float = 0.0,
    ) -> None:
        """``move_s``: time for a move. ``queue_s``: longest wait in the queue. A room is listed after ``list_s``."""
        super().__init__(
            [
                WebSocketRoute("/ws", self.websocket),
                Route("/api/v1/auth/{what}", self._auth, methods=["POST"]),
                Route("/api/v1/rooms", self._rooms_call, methods=["GET", "POST"]),
                Route("/api/v1/rooms/{room:int}/{what}", self._room_call, methods=["POST"]),
            ],
            seed,
        )
        self.traps = traps or Traps()
        self.move_s = move_s
        self.queue_s = queue_s
        self.list_s = list_s
        self.accounts = Accounts(self.rng)
        self.play = Games(self)
        self.rooms = Rooms(self, self.play)
        self.lines: set[Line] = set()
        self.ended = self.play.ended
        """(game, result, reason) of every game."""
        self.heard: list[tuple[int, Json]] = []
        """(player, message) of all messages from clients."""
        self.errors: list[tuple[int, str]] = []
        self.calls: list[str] = []
        """REST calls: method, path, status."""
        self.most_per_second = 0
        """Most messages on one connection within a second."""
        self.numbers: Iterator[int] = itertools.count(1)
        self._handlers: dict[str, Callable[[Line, Json], None]] = {
            "match_join": self.rooms.join_queue,
            "match_leave": self.rooms.leave_queue,
            "room_join": self.rooms.join,
            "room_ready": self.rooms.ready,
            "room_start": self.rooms.start,
            "move": self.play.move,
            "resign": self.play.resign,
            "reconnect": self.play.reconnect,
        }

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    def add(self, name: str, password: str = "a-password") -> int:
        """An account. Returns its id."""
        return self.accounts.add(name, password)

    def restart(self) -> None:
        """Restart as after a crash: waiting rooms are lost, and games are restored from their moves."""
        self.rooms.forget_waiting()
        for line in self.lines:
            line.user = 0  # the game does not notice the end of these connections
            line.close()
        self.play.restore()

    # ----------------------------------------------------------------------------------------------------------- REST

    def _reply(self, request: Request, status: int, body: Json | str) -> Response:
        """An answer. ``body``: a string is the code of an error."""
        self.calls.append(f"{request.method} {request.url.path} {status}")
        return JSONResponse(body if isinstance(body, dict) else {"error": {"code": body, "msg": "不可"}}, status)

    async def _auth(self, request: Request) -> Response:
        accounts = self.accounts
        if accounts.throttled():
            return self._reply(request, 429, "RATE_LIMITED")
        body, what = await request.json(), request.path_params["what"]
        if what == "refresh":
            user = accounts.refreshed(body.get("refreshToken", ""))
            if user is None:
                return self._reply(request, 401, "AUTH_REQUIRED")
            tokens = {"token": accounts.token(user), "refreshToken": accounts.refresh_token(user)}
            return self._reply(request, 200, tokens)
        name, password = body["username"], body["password"]
        if what == "register":
            if len(password) < 8:
                return self._reply(request, 400, "VALIDATION_ERROR")
            if name in accounts.passwords:
                return self._reply(request, 409, "VALIDATION_ERROR")
            user = self.add(name, password)
            return self._reply(request, 201, {"userId": user, "token": accounts.token(user), "elo": 1500})
        if accounts.passwords.get(name) != password:
            return self._reply(request, 401, "AUTH_REQUIRED")
        user = accounts.ids[name]
        answer: Json = {"token": accounts.token(user), "user": {"id": user, "username": name, "elo": 1500}}
        if body.get("remember"):
            answer["refreshToken"] = accounts.refresh_token(user)
        return self._reply(request, 200, answer)

    async def _rooms_call(self, request: Request) -> Response:
        user = self.accounts.of_header(request.headers.get("authorization", ""))
        if user is None:
            return self._reply(request, 401, "AUTH_REQUIRED")
        if request.method == "GET":
            items = self.rooms.listed()
            return self._reply(request, 200, {"items": items, "total": len(items)})
        body = await request.json()
        room = self.rooms.open(body["name"], user, body["mode"], body.get("password", ""))
        return self._reply(request, 201, room.described())

    async def _room_call(self, request: Request) -> Response:
        user = self.accounts.of_header(request.headers.get("authorization", ""))
        if user is None:
            return self._reply(request, 401, "AUTH_REQUIRED")
        room = self.rooms.by_id.get(request.path_params["room"])
        if request.path_params["what"] == "join":
            if room is None:
                return self._reply(request, 404, "ROOM_NOT_FOUND")
            if room.password and (await request.json()).get("password") != room.password:
                return self._reply(request, 403, "VALIDATION_ERROR")
            self.rooms.enter(user, room)
        elif room is not None:
            self.rooms.quit(user, room)
        return self._reply(request, 200, {"ok": True})

    # ------------------------------------------------------------------------------------------------------ websocket

    def connected(self, socket: WebSocket) -> BaseLine:
        line = Line(socket)
        self.lines.add(line)
        self.later(AUTH_S, self._unknown, line)
        return line

    def _unknown(self, line: Line) -> None:
        if not line.user and line in self.lines:
            self.error(line, "AUTH_REQUIRED")
            line.close()

    def disconnected(self, line: BaseLine) -> None:
        self.lines.discard(line)
        if line.user:
            self.rooms.queue.pop(line.user, None)
            self.play.closed(line.user)

    def received(self, line: BaseLine, text: str) -> None:
        assert isinstance(line, Line)
        self.most_per_second = max(self.most_per_second, line.count(time.monotonic()))
        if len(line.times) > 20:
            self.error(line, "RATE_LIMITED")
            return line.close()
        try:
            message = json.loads(text)
            kind, payload = message["type"], message.get("payload", {})
        except (ValueError, TypeError, KeyError):
            return self.error(line, "VALIDATION_ERROR")
        self.heard.append((line.user, message))
        handler = self._handlers.get(kind)
        if kind == "ping":
            line.send('{"type":"pong"}')
        elif kind == "auth":
            self._log_in(line, payload["token"])
        elif not line.user:
            self.error(line, "AUTH_REQUIRED")
        elif handler is None:
            self.error(line, "VALIDATION_ERROR")
        else:
            handler(line, payload)

    def _log_in(self, line: Line, token: str) -> None:
        user = self.accounts.user_of(token)
        if user is None:
            self.error(line, "INVALID_TOKEN")
            return line.close()
        line.user = user
        line.say(
            "auth_ok", {"userId": str(user) if self.traps.text_ids else user, "username": self.accounts.name(user)}
        )

    # ------------------------------------------------------------------------------------ what rooms and games need

    def error(self, line: Line, code: str) -> None:
        self.errors.append((line.user, code))
        line.say("error", {"code": code, "msg": "不可"})

    def refuse(self, user: int, code: str) -> None:
        """Send an error to all connections of a user."""
        for line in self.lines:
            if line.user == user:
                self.error(line, code)

    def tell(self, user: int | None, kind: str, payload: Json) -> None:
        for line in self.lines:
            if line.user == user:
                line.say(kind, payload)

    def show(self, room: Room) -> None:
        self.rooms.show(room)

    def drop(self, user: int) -> None:
        """Close a player's connections."""
        for line in [line for line in self.lines if line.user == user]:
            line.close()
