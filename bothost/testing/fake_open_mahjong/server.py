"""A lobby that speaks the dialect of open_mahjong_unity, with the behaviour seen at the real server: a websocket
on loopback, every frame recorded, every trap a switch.

::

    async with FakeOpenMahjong(Traps(drop_every=9)) as lobby:
        ...                                     # connect adapters, or a host, to lobby.url
        assert lobby.matches == 20 and not lobby.repeated

Written from the frames of the real lobby (``docs/reference/adapters/open_mahjong.md``).
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.testing.fake_open_mahjong.game import Match
from bothost.testing.fake_open_mahjong.seat import Seat
from bothost.testing.fake_server import FakeServer
from bothost.testing.fake_server import Line as BaseLine

VERSION = wire.RELEASE_VERSION
NOISE: tuple[str, ...] = (
    "",
    "[",
    "null",
    '{"type":"fireworks"}',
    '{"type":"gamestate/guobiao/do_action","do_action_info":{"action_list":[]}}',
    '{"type":"gamestate/guobiao/game_start","game_info":{}}',
)
ROOM_MEMBERS = (
    "roomname",
    "gameround",
    "password",
    "roundTimerValue",
    "stepTimerValue",
    "tips",
    "random_seed",
    "open_cuohe",
)


class Traps(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong. All off by default; the behaviour of the lobby itself is always on."""

    drop_every: int = 0
    """Every so many moves, the connection of the mover breaks. The move counts; what follows is lost to it. The last
    player in the room is spared: the lobby would delete the game."""
    ignore: float = 0.0
    """Chance that a fitting discard is met by silence all the same."""
    repeat: float = 0.0
    """Chance that a frame of a game is sent twice."""
    noise: float = 0.0
    """Chance that an unknown frame comes before a frame."""


class Line(BaseLine):
    """One websocket."""

    checked = False
    """Whether the release version was accepted."""
    dead = False
    """The server's loop ended: the socket stands, answers protocol pings, and hears nothing."""


class FakeOpenMahjong(FakeServer):
    """A lobby on a free port of loopback. Use it in an ``async with``."""

    def __init__(self, traps: Traps | None = None, *, second: float = 1.0, seed: int = 0) -> None:
        super().__init__([WebSocketRoute("/game/{name}", self.websocket)], seed)
        self.traps = traps or Traps()
        self.second = second
        """How long a second of the lobby's clocks lasts."""
        self.accounts: dict[str, tuple[int, str]] = {}
        self.registered = 0
        self.lines: dict[int, Line] = {}
        """The connection that the lobby speaks to, by user."""
        self.rooms: dict[str, dict[str, Any]] = {}
        self.playing: dict[int, Match] = {}
        """By user."""
        self.frames: list[tuple[int, str, dict[str, Any]]] = []
        """(user, "in" | "out", frame), oldest first; ``in`` is what a client said."""
        self.silences: dict[tuple[int, str, str], int] = {}
        """(user, moment, move) → how often it was met by silence."""
        self.stale: list[tuple[int, str]] = []
        """(user, action) of moves that came too late, as a claim may that a higher one went before."""
        self.matches = 0
        self.hands = 0
        self.deleted = 0
        """Games that were deleted because everyone was gone."""
        self.logins = 0
        self._moves = 0
        self._rooms = 0
        self._guests = 0
        self._finished: set[str] = set()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def repeated(self) -> list[tuple[int, str, str]]:
        """Moves that were met by silence and made again at the same moment."""
        return [move for move, times in self.silences.items() if times > 1]

    def add(self, name: str, password: str) -> int:
        """Register an account, outside of the day's three."""
        user = 10_000_001 + len(self.accounts)
        self.accounts[name] = (user, password)
        return user

    def stopping(self) -> None:
        for match in list(self.playing.values()):
            match.stop()

    # ------------------------------------------------------------------------------------------------ connections

    def connected(self, socket: WebSocket) -> Line | None:
        return Line(socket) if len(socket.path_params["name"]) >= 24 else None

    def disconnected(self, line: BaseLine) -> None:
        if self.lines.get(line.user) is line:
            del self.lines[line.user]
            self._gone(line.user)

    def _gone(self, user: int) -> None:
        """A room removes a player who disconnects, for good. A game keeps the seat while people are left."""
        for room in list(self.rooms.values()):
            if user in room["player_list"]:
                self._leave(room, user)
        match = self.playing.get(user)
        if match is not None and not match.gone(user):
            self._delete(match)

    def _delete(self, match: Match) -> None:
        match.stop()
        self.deleted += 1
        self._forget(match)

    def last_in_room(self, user: int) -> bool:
        """Whether all other people of this player's room have disconnected once: the next loss deletes the game."""
        room = next((room for room in self.rooms.values() if user in room["player_list"]), None)
        return room is not None and sum(u >= wire.ROBOTS_BELOW for u in room["player_list"]) == 1

    def break_line(self, user: int) -> None:
        """Break a player's connection without a close frame."""
        line = self.lines.get(user)
        if line is not None:
            line.abort()
            self.disconnected(line)

    def tell(self, user: int, frame: dict[str, Any]) -> None:
        line = self.lines.get(user)
        if line is not None:
            self._say(line, frame)

    def _say(self, line: Line, frame: dict[str, Any]) -> None:
        if self.chance(self.traps.noise, "noise"):
            line.send(self.rng.choice(NOISE))
        text = json.dumps(frame)
        self.frames.append((line.user, "out", frame))
        line.send(text)
        if frame["type"].startswith("gamestate/") and self.chance(self.traps.repeat, "repeat"):
            line.send(text)

    def _tips(self, line: Line, text: str, kind: str = "tips") -> None:
        self._say(line, {"type": kind, "success": False, "message": text})

    # ------------------------------------------------------------------------------------------------------ hearing

    def received(self, line: BaseLine, text: str) -> None:
        assert isinstance(line, Line)
        if line.dead:
            return
        try:
            frame = json.loads(text)
            kind = frame["type"]
        except (ValueError, KeyError, TypeError):
            line.dead = True  # without a word
            return
        self.frames.append((line.user, "in", frame))
        if kind == "ping":
            self._say(line, {"type": "pong", "success": True, "message": "pong", "client_ts": frame["client_ts"]})
        elif kind == "send_release_version":
            self._check_version(line, frame)
        elif kind == "login":
            self._login(line, frame)
        elif kind == "room/get_room_list":
            rooms = [self._public(room) for room in self.rooms.values()] if line.user else []
            self._say(line, {"type": kind, "success": True, "message": "-", "show_tip": False, "room_list": rooms})
        elif not line.user:
            self._tips(line, "请先登录")
        elif kind == "reconnect_response":
            self._reconnect(line, frame)
        elif kind.startswith("room/"):
            self._room_frame(line, kind, frame)
        elif kind in ("gamestate/GB/cut_tile", "gamestate/GB/send_action"):
            match = self.playing.get(line.user)
            if frame.get("gamestate_id") in self._finished:
                return self.stale.append((line.user, str(frame.get("action"))))
            if match is None or match.id != frame.get("gamestate_id"):
                return self.silence(line.user, "no game", str(frame))
            match.heard(line.user, frame)
        # An unknown type is met by silence.

    def _check_version(self, line: Line, frame: dict[str, Any]) -> None:
        line.checked = frame.get("release_version") == VERSION
        if not line.checked:
            info = {"title": "版本检查失败", "content": "您的客户端版本与服务器版本不匹配"}
            self._say(line, {"type": "message", "success": False, "message": "error_version", "message_info": info})
            self.later(0.02, line.close)

    def _login(self, line: Line, frame: dict[str, Any]) -> None:
        if not line.checked:
            return
        self.logins += 1
        if frame.get("is_tourist"):
            self._guests += 1
            user, name = 9_000_000 + self._guests, f"游客_{self._guests}"
        else:
            name, password = frame["username"], frame["password"]
            if name not in self.accounts:
                if self.registered >= 3:
                    return self._tips(line, "该 IP 今日注册次数已达上限")
                self.registered += 1
                self.add(name, password)
            user, known = self.accounts[name]
            if password != known:
                return self._tips(line, "密码错误")
        old = self.lines.get(user)
        if old is not None:
            info = {"title": "账户于其他地方登陆", "content": "您的账户已在其他地方登录"}
            self._say(old, {"type": "message", "success": False, "message": "login_kickout", "message_info": info})
            self._gone(user)
            old.user = 0  # stays open, and answers pings
        line.user = user
        self.lines[user] = line
        told: dict[str, Any] = {"user_id": user, "username": name, "userkey": "planted-userkey"}
        told["is_tourist"] = user < 10_000_000
        self._say(line, {"type": "login", "success": True, "message": "登录成功", "login_info": told})
        if user in self.playing:
            info = {"title": "对局重连", "content": "检测到您有一场正在进行的游戏"}
            self._say(line, {"type": "message", "success": True, "message": "reconnect_ask", "message_info": info})

    def _reconnect(self, line: Line, frame: dict[str, Any]) -> None:
        match = self.playing.get(line.user)
        if not frame.get("reconnect"):
            return
        if match is None:
            return self._tips(line, "游戏已结束")
        match.back(line.user)
        self._say(line, {"type": "tips", "success": True, "message": "重连成功"})

    # -------------------------------------------------------------------------------------------------------- rooms

    def _room_frame(self, line: Line, kind: str, frame: dict[str, Any]) -> None:
        user = line.user
        if kind == "room/create_GB_room":
            if any(member not in frame for member in ROOM_MEMBERS):
                line.dead = True
                return
            return self._create(line, frame)
        room = self.rooms.get(frame.get("room_id", ""))
        if room is None:
            return self._tips(line, "房间不存在", "error_message")
        if kind == "room/join_room":
            return self._join(line, room, frame)
        if user not in room["player_list"]:
            return self._tips(line, "玩家不在房间中", "error_message")
        host = user == room["host_user_id"]
        if kind == "room/set_ready":
            room["ready_list"] = [u for u in room["ready_list"] if u != user] + ([user] if frame["ready"] else [])
            self._refresh(room)
        elif kind == "room/leave_room":
            self._leave(room, user)
        elif kind == "room/add_bot" and host and len(room["player_list"]) < 4:
            room["player_list"].append(0)
            self._refresh(room)
        elif kind == "room/start_game":
            people = [u for u in room["player_list"] if u >= wire.ROBOTS_BELOW and u != room["host_user_id"]]
            if not host or len(room["player_list"]) != 4 or set(people) - set(room["ready_list"]):
                return self._tips(line, "人数不足", "error_message")
            self._start(room)

    def _create(self, line: Line, frame: dict[str, Any]) -> None:
        if any(line.user in room["player_list"] for room in self.rooms.values()):
            return self._tips(line, "您已在房间中")
        self._rooms += 1
        room = self.rooms[str(self._rooms)] = {
            "room_id": str(self._rooms),
            "room_rule": "guobiao",
            "sub_rule": frame.get("sub_rule", "guobiao/standard"),
            "hepai_limit": frame.get("hepai_limit", 8),
            "max_player": 4,
            "player_list": [line.user],
            "password": frame["password"],
            "host_user_id": line.user,
            "is_game_running": False,
            "room_name": frame["roomname"],
            "game_round": frame["gameround"],
            "round_timer": frame["roundTimerValue"],
            "step_timer": frame["stepTimerValue"],
            "ready_list": [],
        }
        self._refresh(room)
        done = {"type": "room/create_room_done", "success": True, "message": "-", "room_info": self._public(room)}
        self._say(line, done)

    def _join(self, line: Line, room: dict[str, Any], frame: dict[str, Any]) -> None:
        if len(room["player_list"]) >= 4 or room["is_game_running"]:
            return self._tips(line, "房间已满", "error_message")
        if room["password"] != frame.get("password", ""):
            return self._tips(line, "密码错误", "error_message")
        room["player_list"].append(line.user)
        self._refresh(room)
        self._say(line, {"type": "room/join_room_done", "success": True, "message": "加入房间成功"})

    def _leave(self, room: dict[str, Any], user: int) -> None:
        room["player_list"].remove(user)
        room["ready_list"] = [u for u in room["ready_list"] if u != user]
        people = [u for u in room["player_list"] if u >= wire.ROBOTS_BELOW]
        if not people:
            self.rooms.pop(room["room_id"], None)
            match = next((m for m in self.playing.values() if m.room["room_id"] == room["room_id"]), None)
            if match is not None:
                self._delete(match)  # although all may be online
            return
        if user == room["host_user_id"]:
            room["host_user_id"] = people[0]
        self._refresh(room)

    def _refresh(self, room: dict[str, Any]) -> None:
        for user in room["player_list"]:
            frame = {"type": "room/refresh_room_info", "success": True, "message": "-"}
            self.tell(user, {**frame, "room_info": self._public(room)})

    @staticmethod
    def _public(room: dict[str, Any]) -> dict[str, Any]:
        public = {key: list(value) if isinstance(value, list) else value for key, value in room.items()}
        return public | {"has_password": bool(public.pop("password"))}

    def _start(self, room: dict[str, Any]) -> None:
        room["is_game_running"] = True
        self._refresh(room)
        names = {user: name for name, (user, _) in self.accounts.items()}
        seats = [Seat(user, names.get(user, f"p{user}"), room["round_timer"]) for user in room["player_list"]]
        match = Match(self, str(uuid.UUID(int=self.rng.getrandbits(128))), dict(room), seats)
        for seat in seats:
            if not seat.robot:
                self.playing[seat.user] = match
        match.deal()

    # ------------------------------------------------------------------------------------------- what a match needs

    def silence(self, user: int, where: str, what: str) -> None:
        self.silences[user, where, what] = self.silences.get((user, where, what), 0) + 1

    def ignores(self) -> bool:
        return self.chance(self.traps.ignore, "ignore")

    def moved(self, user: int) -> None:
        self._moves += 1
        if not self.last_in_room(user) and self.every(self.traps.drop_every, self._moves, "drop"):
            self.break_line(user)

    def finished(self, match: Match) -> None:
        self.matches += 1
        self.hands += match.round
        self._forget(match)
        room = self.rooms.get(match.room["room_id"])
        if room is not None:
            room["is_game_running"], room["ready_list"] = False, []
            self._refresh(room)

    def _forget(self, match: Match) -> None:
        self._finished.add(match.id)
        self.playing = {user: other for user, other in self.playing.items() if other is not match}
