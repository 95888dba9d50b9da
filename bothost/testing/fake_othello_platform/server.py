"""A server that speaks othello-platform's protocol on loopback, REST and websocket, for tests of its adapter.

Written from what was observed of the real one (``docs/reference/adapters/othello_platform.md``), with its traps: the
21st message within a second closes the socket, passes are not told, any closing socket of a player starts the window in
which ``reconnect`` must come, errors name nothing. ``Traps`` adds the accidents of a bad evening.

::

    async with FakeOthelloPlatform(traps=Traps(drop_every=9)) as lobby:
        ...                          # connect adapters or hosts to lobby.url
        assert lobby.most_per_second <= 20
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import time
from collections import deque

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bothost.testing.fake_othello_platform.parts import COLORS, Game, Json, Line, Room, Traps
from bothost.testing.loopback import Loopback

PASS = 64


class FakeOthelloPlatform(Loopback):
    """The server, for the length of an ``async with``."""

    def __init__(self, *, traps: Traps | None = None, seed: int = 0, **settings: float) -> None:
        """``settings``: seconds of ``reconnect_s``, ``move_s``, ``match_s``, ``queue_s``, ``auth_s``, ``token_s``,
        ``list_s`` (a room is listed only after this time); and ``logins_per_minute``."""
        self.traps = traps or Traps()
        known = {"reconnect_s": 30.0, "move_s": 30.0, "match_s": 0.02, "queue_s": 60.0, "auth_s": 5.0}
        self.settings = {**known, "token_s": 900.0, "list_s": 0.0, "logins_per_minute": 10.0, **settings}
        self.rng = random.Random(seed)
        self.passwords: dict[str, str] = {}
        self.ids: dict[str, int] = {}
        self.tokens: dict[str, tuple[int, float]] = {}
        self.refresh: dict[str, int] = {}
        self.rooms: dict[int, Room] = {}
        self.games: dict[str, Game] = {}
        self.queue: dict[int, float] = {}
        self.lines: set[Line] = set()
        self.ended: list[tuple[str, str, str]] = []
        """(game, result, reason) of every game."""
        self.heard: list[tuple[int, Json]] = []
        """(player, message) of everything that was said."""
        self.errors: list[tuple[int, str]] = []
        self.calls: list[str] = []
        """REST calls: method, path, status."""
        self.struck: list[str] = []
        """Traps that were sprung."""
        self.most_per_second = 0
        """Messages on one connection within any one second."""
        self.moves = 0
        self._logins: deque[float] = deque()
        self._numbers = itertools.count(1)
        super().__init__(
            [
                WebSocketRoute("/ws", self._websocket),
                Route("/api/v1/auth/{what}", self._auth, methods=["POST"]),
                Route("/api/v1/rooms", self._rooms, methods=["GET", "POST"]),
                Route("/api/v1/rooms/{room:int}/{what}", self._room, methods=["POST"]),
            ]
        )

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    def add(self, name: str, password: str = "a-password") -> int:
        """An account. Returns its id."""
        self.passwords[name] = password
        self.ids[name] = len(self.ids) + 1
        return self.ids[name]

    def opened(self) -> None:
        self.spawn(self._match_players())

    def closing(self) -> None:
        for game in self.games.values():
            self._stop(game)

    # ----------------------------------------------------------------------------------------------------------- REST

    def _reply(self, request: Request, status: int, body: Json) -> Response:
        self.calls.append(f"{request.method} {request.url.path} {status}")
        return JSONResponse(body, status)

    def _refuse(self, request: Request, status: int, code: str) -> Response:
        return self._reply(request, status, {"error": {"code": code, "msg": "不可"}})

    async def _auth(self, request: Request) -> Response:
        now = time.monotonic()
        while self._logins and self._logins[0] < now - 60.0:
            self._logins.popleft()
        if len(self._logins) >= self.settings["logins_per_minute"]:
            return self._refuse(request, 429, "RATE_LIMITED")
        self._logins.append(now)
        body, what = await request.json(), request.path_params["what"]
        if what == "refresh":
            user = self.refresh.pop(body.get("refreshToken", ""), None)
            if user is None:
                return self._refuse(request, 401, "AUTH_REQUIRED")
            return self._reply(request, 200, {"token": self._token(user), "refreshToken": self._refresh(user)})
        name, password = body["username"], body["password"]
        if what == "register":
            if name in self.passwords or len(password) < 8:
                return self._refuse(request, 409, "USERNAME_TAKEN")
            user = self.add(name, password)
            return self._reply(request, 201, {"userId": user, "token": self._token(user), "elo": 1500})
        if self.passwords.get(name) != password:
            return self._refuse(request, 401, "AUTH_REQUIRED")
        user = self.ids[name]
        answer: Json = {"token": self._token(user), "user": {"id": user, "username": name, "elo": 1500}}
        if body.get("remember"):
            answer["refreshToken"] = self._refresh(user)
        return self._reply(request, 200, answer)

    def _token(self, user: int) -> str:
        token = f"jwt-{user}-{self.rng.getrandbits(64):x}"
        self.tokens[token] = (user, time.monotonic() + self.settings["token_s"])
        return token

    def _refresh(self, user: int) -> str:
        token = f"refresh-{user}-{self.rng.getrandbits(64):x}"
        self.refresh[token] = user
        return token

    def user_of(self, token: str) -> int | None:
        user, until = self.tokens.get(token, (0, 0.0))
        return user if user and time.monotonic() < until else None

    def _bearer(self, request: Request) -> int | None:
        return self.user_of(request.headers.get("authorization", "").removeprefix("Bearer "))

    async def _rooms(self, request: Request) -> Response:
        user = self._bearer(request)
        if user is None:
            return self._refuse(request, 401, "AUTH_REQUIRED")
        if request.method == "GET":
            listed = time.monotonic() - self.settings["list_s"]
            waiting = [room for room in self.rooms.values() if room.status == "waiting" and room.opened_at <= listed]
            items = [self._described(room) for room in reversed(waiting)]  # the newest first
            return self._reply(request, 200, {"items": items, "total": len(items)})
        body = await request.json()
        room = self.new_room(body["name"], user, body["mode"], body.get("password", ""))
        return self._reply(request, 201, self._described(room))

    def new_room(self, name: str, owner: int, mode: str = "human_vs_human", password: str = "") -> Room:
        room = Room(next(self._numbers), name, owner, mode, password, opened_at=time.monotonic())
        self.rooms[room.id] = room
        return room

    def _described(self, room: Room) -> Json:
        level = 3 if room.mode == "human_vs_ai" else None
        described = {"id": room.id, "name": room.name, "mode": room.mode, "aiLevel": level, "status": room.status}
        return {**described, "hasPassword": bool(room.password)}

    async def _room(self, request: Request) -> Response:
        user, room = self._bearer(request), self.rooms.get(request.path_params["room"])
        if user is None:
            return self._refuse(request, 401, "AUTH_REQUIRED")
        if room is None:
            return self._refuse(request, 404, "ROOM_NOT_FOUND")
        if request.path_params["what"] == "join":
            if room.password and (await request.json()).get("password") != room.password:
                return self._refuse(request, 403, "WRONG_PASSWORD")
            if user not in room.seats and None not in room.seats:
                return self._refuse(request, 409, "ROOM_FULL")
            self._join(user, room)
        elif user in room.seats and room.game is None:
            room.seats[room.seats.index(user)] = None
            room.ready = [False, False]
            self._room_state(room)
            if room.seats == [None, None]:
                room.status = "finished"
        return self._reply(request, 200, {"ok": True})

    # ------------------------------------------------------------------------------------------------------ websocket

    async def _websocket(self, websocket: WebSocket) -> None:
        await websocket.accept()
        line = Line(websocket)
        self.lines.add(line)
        writer = asyncio.ensure_future(self._write(line))
        late = asyncio.get_running_loop().call_later(self.settings["auth_s"], self._unknown, line)
        try:
            while (message := await websocket.receive())["type"] == "websocket.receive":
                if not self._hear(line, message.get("text") or ""):
                    break
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            late.cancel()
            self.lines.discard(line)
            line.out.put_nowait(None)
            await asyncio.gather(writer, return_exceptions=True)
            if line.user:
                self._closed(line.user)

    async def _write(self, line: Line) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            while (text := await line.out.get()) is not None:
                await line.socket.send_text(text)
            await line.socket.close()

    def _unknown(self, line: Line) -> None:
        if not line.user:
            self.error(line, "AUTH_REQUIRED")
            line.out.put_nowait(None)

    def _hear(self, line: Line, text: str) -> bool:
        """One message; False closes the connection."""
        now = time.monotonic()
        line.times.append(now)
        while line.times[0] <= now - 1.0:
            line.times.popleft()
        self.most_per_second = max(self.most_per_second, len(line.times))
        if len(line.times) > 20:
            self.error(line, "RATE_LIMITED")
            return False
        try:
            message = json.loads(text)
            kind, payload = message["type"], message.get("payload", {})
        except (ValueError, TypeError, KeyError):
            self.error(line, "VALIDATION_ERROR")
            return True
        self.heard.append((line.user, message))
        if kind == "ping":
            line.out.put_nowait('{"type":"pong"}')
        elif kind == "auth":
            user = self.user_of(payload["token"])
            if user is None:
                self.error(line, "INVALID_TOKEN")
                return False
            line.user = user
            line.send("auth_ok", {"userId": str(user) if self.traps.text_ids else user, "username": self._name(user)})
        elif not line.user:
            self.error(line, "AUTH_REQUIRED")
        else:
            handler = getattr(self, f"_on_{kind}", None)
            if handler is None:
                self.error(line, "VALIDATION_ERROR")
            else:
                handler(line, payload)
        return True

    def error(self, line: Line, code: str) -> None:
        self.errors.append((line.user, code))
        line.send("error", {"code": code, "msg": "不可"})

    def tell(self, user: int | None, kind: str, payload: Json) -> None:
        for line in self.lines:
            if line.user == user:
                line.send(kind, payload)

    def drop(self, user: int) -> None:
        """Break a player's connections."""
        for line in [line for line in self.lines if line.user == user]:
            line.out.put_nowait(None)

    def _name(self, user: int | None) -> str | None:
        return next((name for name, number in self.ids.items() if number == user), None)

    # ---------------------------------------------------------------------------------------------- rooms and queue

    def _on_match_join(self, line: Line, payload: Json) -> None:
        self.queue[line.user] = time.monotonic()
        line.send("match_queued", {"size": len(self.queue)})

    def _on_match_leave(self, line: Line, payload: Json) -> None:
        self.queue.pop(line.user, None)
        line.send("match_left", {})

    async def _match_players(self) -> None:
        while True:
            await asyncio.sleep(self.settings["match_s"])
            now = time.monotonic()
            for user, since in list(self.queue.items()):
                if now - since > self.settings["queue_s"]:
                    del self.queue[user]
                    self.tell(user, "match_timeout", {})
            while len(self.queue) >= 2:
                black, white = list(self.queue)[:2]
                del self.queue[black], self.queue[white]
                room = self.new_room("匹配对局", black)
                self._join(black, room)
                self._join(white, room)
                number = str(room.id) if self.traps.text_ids else room.id
                for user in (black, white):
                    self.tell(user, "match_found", {"roomId": number, "opponent": None})

    def _on_room_join(self, line: Line, payload: Json) -> None:
        room = self.rooms.get(payload["roomId"])
        if room is None:
            self.error(line, "ROOM_NOT_FOUND")
        elif line.user not in room.seats and None not in room.seats:
            self.error(line, "ROOM_FULL")
        else:
            self._join(line.user, room)

    def _join(self, user: int, room: Room) -> None:
        if user not in room.seats:
            room.seats[room.seats.index(None)] = user
        if room.mode == "human_vs_ai" and room.game is None:
            self._begin(room)
            return
        self._room_state(room)
        if room.game is not None and room.game in self.games:
            self.tell(user, "game_start", self._game_start(self.games[room.game]))

    def _on_room_ready(self, line: Line, payload: Json) -> None:
        room = self.rooms.get(payload["roomId"])
        if room is None or line.user not in room.seats or room.game is not None:
            self.error(line, "VALIDATION_ERROR")
            return
        room.ready[room.seats.index(line.user)] = bool(payload["ready"])
        self._room_state(room)

    def _on_room_start(self, line: Line, payload: Json) -> None:
        room = self.rooms.get(payload["roomId"])
        if room is None or room.owner != line.user or not all(room.ready) or room.game is not None:
            self.error(line, "VALIDATION_ERROR")
            return
        self._begin(room)

    def _room_state(self, room: Room) -> None:
        black, white = room.seats
        state: Json = {
            "roomId": room.id, "gameId": room.game, "blackId": black, "whiteId": white, "status": room.status,
            "blackReady": room.ready[0], "whiteReady": room.ready[1], "blackName": self._name(black),
            "whiteName": self._name(white), "ownerId": room.owner, "roomName": room.name, "spectators": [],
        }  # fmt: skip
        for user in room.seats:
            self.tell(user, "room_state", state)

    # ---------------------------------------------------------------------------------------------------------- games

    def _begin(self, room: Room) -> None:
        game = Game(f"g_{next(self._numbers)}", room)
        room.game, room.status = game.id, "playing"
        self.games[game.id] = game
        for user in game.seats:
            self.tell(user, "game_start", self._game_start(game))
        room.ready = [False, False]
        self._room_state(room)
        self._clock(game, self.settings["move_s"])

    def _game_start(self, game: Game) -> Json:
        black, white = game.seats
        names = {"blackName": self._name(black), "whiteName": self._name(white)}
        ids = {"gameId": game.id, "blackId": black, "whiteId": white}
        return {**ids, **names, "turn": game.turn(), "board": game.board(), "aiLevel": None, "remainingMs": 30000}

    def _clock(self, game: Game, seconds: float) -> None:
        self._freeze(game)
        loop = asyncio.get_running_loop()
        game.left_ms, game.since = seconds * 1000.0, loop.time()
        game.timer = loop.call_later(seconds, self._late, game)

    def _freeze(self, game: Game) -> None:
        if game.timer is not None:
            game.timer.cancel()
            game.timer = None
            game.left_ms -= (asyncio.get_running_loop().time() - game.since) * 1000.0

    def _late(self, game: Game) -> None:
        self._end(game, COLORS[1 - COLORS.index(game.turn() or "BLACK")], "timeout")

    def restart(self) -> None:
        """Restart after a crash: waiting rooms are gone, and games are restored from their moves."""
        self.rooms = {number: room for number, room in self.rooms.items() if room.game is not None}
        self.queue.clear()
        for line in self.lines:
            line.user = 0  # nobody notices the end of these connections
            line.out.put_nowait(None)
        for game in self.games.values():
            self._stop(game)
            game.windows.clear()
            game.restore()
            self._clock(game, self.settings["move_s"])

    def _every(self, count: int, name: str) -> bool:
        if count and self.moves % count == 0:
            self.struck.append(name)
            return True
        return False

    def _on_move(self, line: Line, payload: Json) -> None:
        game = self.games.get(payload["gameId"])
        if game is None:
            self.error(line, "GAME_NOT_FOUND")
            return
        seat = game.seats.index(line.user)
        pos = payload["pos"]
        action = pos["y"] * 8 + pos["x"]
        if payload["color"] != COLORS[seat] or game.turn() != COLORS[seat]:
            self.error(line, "NOT_YOUR_TURN")
            return
        self.moves += 1
        legal = game.state.legal(seat)
        if action not in legal or self._unfair(game, len(legal)):
            self.error(line, "ILLEGAL_MOVE")
        elif not self._every(self.traps.lose_every, "lose"):
            self._place(game, seat, action)
            if self._every(self.traps.drop_every, "drop"):
                self.drop(line.user)

    def _unfair(self, game: Game, legal: int) -> bool:
        """Once at a position, and where another move is left: who is refused every move can only wait for the end."""
        if legal < 2 or game.refused_at == len(game.moves) or not self._every(self.traps.refuse_every, "refuse"):
            return False
        game.refused_at = len(game.moves)
        return True

    def _place(self, game: Game, seat: int, action: int) -> None:
        before = game.board()
        game.restored_turn = None
        game.state.apply(seat, action)
        passed = False
        while not game.state.terminal and list(game.state.legal(game.state.to_act[0])) == [PASS]:
            game.state.apply(game.state.to_act[0], PASS)
            passed = True
        board = game.board()
        pos = {"x": action % 8, "y": action // 8}
        flipped = [{"x": i % 8, "y": i // 8} for i in range(64) if before[i] and before[i] != board[i]]
        seq = len(game.moves) + 1
        game.moves.append({"seq": seq, "color": COLORS[seat], "pos": pos, "isPass": False, "flipped": flipped})
        told = list(board)
        if self._every(self.traps.lie_every, "lie"):
            told[flipped[0]["y"] * 8 + flipped[0]["x"]] = 2 - seat
        move = {
            **game.moves[-1], "gameId": game.id, "nextTurn": game.turn(), "board": told, "remainingMs": 30000,
            "blackCount": board.count(1), "whiteCount": board.count(2),
        }  # fmt: skip
        twice = self._every(self.traps.repeat_every, "repeat")
        noise = self._every(self.traps.noise_every, "noise")
        for user in game.seats:
            if noise:
                self.tell(user, "chat", {"from": 0, "text": "你好"})
                self.tell(user, "game_over", {"gameId": "g_0", "result": "WHITE", "endReason": "disconnect"})
            self.tell(user, "move", move)
            if twice:
                self.tell(user, "move", move)
        if game.state.terminal:
            lead = board.count(1) - board.count(2)
            self._end(game, "BLACK" if lead > 0 else "WHITE" if lead else "DRAW", "normal")
            return
        if not game.windows:
            self._clock(game, self.settings["move_s"])
        if passed and self.traps.restart_on_pass and "restart" not in self.struck:
            self.struck.append("restart")
            asyncio.get_running_loop().call_soon(self.restart)
        if game.room.mode == "human_vs_ai" and game.state.to_act[0] == 1:
            asyncio.get_running_loop().call_soon(self._play, game)

    def _play(self, game: Game) -> None:
        """The lobby's own player."""
        if not game.state.terminal:
            self._place(game, 1, int(self.rng.choice(list(game.state.legal(1)))))

    def _on_resign(self, line: Line, payload: Json) -> None:
        game = self.games.get(payload["gameId"])
        if game is not None:
            self._end(game, COLORS[1 - game.seats.index(line.user)], "resign")

    def _stop(self, game: Game) -> None:
        self._freeze(game)
        for timer in game.windows.values():
            timer.cancel()

    def _end(self, game: Game, result: str, reason: str) -> None:
        self._stop(game)
        self.games.pop(game.id, None)
        self.ended.append((game.id, result, reason))
        board = game.board()
        over = {"gameId": game.id, "result": result, "endReason": reason}
        for user in game.seats:
            self.tell(user, "game_over", {**over, "blackCount": board.count(1), "whiteCount": board.count(2)})
        self._room_state(game.room)

    def _closed(self, user: int) -> None:
        """Any closing socket, even when another one is open."""
        self.queue.pop(user, None)
        for game in self.games.values():
            if user in game.seats and user not in game.windows:
                self._freeze(game)
                winner = COLORS[1 - game.seats.index(user)]
                loop = asyncio.get_running_loop()
                wait = self.settings["reconnect_s"]
                game.windows[user] = loop.call_later(wait, self._end, game, winner, "disconnect")

    def _on_reconnect(self, line: Line, payload: Json) -> None:
        game = self.games.get(payload["gameId"])
        if game is None or line.user not in game.seats:
            self.error(line, "GAME_NOT_FOUND")
            return
        window = game.windows.pop(line.user, None)
        if window is not None:
            window.cancel()
            if not game.windows:
                self._clock(game, game.left_ms / 1000.0)
        moves = [move for move in game.moves if move["seq"] > payload["lastSeq"]]
        sync = {**self._game_start(game), "status": "playing", "remainingMs": game.left_ms, "moves": moves}
        line.send("state_sync", sync)
