"""A fake of the lobby open_mahjong_unity with the behaviour of the real server: a websocket on loopback, recorded
frames, and faults as switches.

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

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.testing.fake_open_mahjong.board import Board
from bothost.testing.fake_open_mahjong.chat import ChatLine, ChatServer, key_of
from bothost.testing.fake_open_mahjong.game import Match
from bothost.testing.fake_open_mahjong.rooms import Line, Rooms
from bothost.testing.fake_open_mahjong.seat import Seat
from bothost.testing.fake_open_mahjong.traps import Traps
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


class FakeOpenMahjong(FakeServer):
    """A lobby on a free port of loopback. Use it in an ``async with``."""

    def __init__(self, traps: Traps | None = None, *, second: float = 1.0, seed: int = 0) -> None:
        super().__init__([WebSocketRoute(f"/{part}/{{name}}", self.websocket) for part in ("game", "chat")], seed)
        self.chat = ChatServer()
        self.traps = traps or Traps()
        self.second = second
        """Real seconds per second of the lobby's clocks."""
        self.accounts: dict[str, tuple[int, str]] = {}
        self.registered = 0
        self.lines: dict[int, Line] = {}
        """The connection to which the lobby sends, by user."""
        self.rooms = Rooms(self)
        self.playing: dict[int, Match] = {}
        """By user."""
        self.frames: list[tuple[int, str, dict[str, Any]]] = []
        """(user, "in" | "out", frame), oldest first. ``in`` is a frame of a client."""
        self.silences: dict[tuple[int, str, str], int] = {}
        """(user, moment, move) → how often it was ignored."""
        self.stale: list[tuple[int, str]] = []
        """(user, action) of moves that came late, such as a claim after a higher one was made."""
        self.matches = 0
        self.hands = 0
        self.deleted = 0
        """Number of games that were deleted because everyone was offline."""
        self.logins = 0
        self._moves = 0
        self._guests = 0
        self._finished: set[str] = set()

    @property
    def repeated(self) -> list[tuple[int, str, str]]:
        """Ignored moves that were sent again at the same moment."""
        return [move for move, times in self.silences.items() if times > 1]

    def add(self, name: str, password: str) -> int:
        """Register an account, without counting it towards the day's limit."""
        user = 10_000_001 + len(self.accounts)
        self.accounts[name] = (user, password)
        return user

    # ------------------------------------------------------------------------------------------------ connections

    def connected(self, socket: WebSocket) -> BaseLine | None:
        if socket.url.path.startswith("/chat/"):
            line = ChatLine(socket)
            self.chat.connected(line)
            return line
        return Line(socket) if len(socket.path_params["name"]) >= 24 else None

    def disconnected(self, line: BaseLine) -> None:
        if isinstance(line, ChatLine):
            self.chat.disconnected(line)
            return
        if line.user:
            user, line.user = line.user, 0
            self._gone(user)
            if self.traps.cleanup_s:
                self.later(self.traps.cleanup_s, self._clean_up, user)
            else:
                self._clean_up(user)

    def _clean_up(self, user: int) -> None:
        line = self.lines.pop(user, None)
        if line is not None and line.user:
            self.struck.append("forgotten")

    def _gone(self, user: int) -> None:
        """Remove a player who disconnected from the room. A game keeps the seat while other people are online."""
        self.rooms.remove(user)
        match = self.playing.get(user)
        if match is not None and not match.gone(user):
            self.delete(match)

    def delete(self, match: Match) -> None:
        match.stop()
        self.deleted += 1
        self._forget(match.board)

    def break_line(self, user: int) -> None:
        """Break a player's connection without a close frame."""
        line = self.lines.get(user)
        if line is not None:
            line.abort()
            self.disconnected(line)

    def tell(self, user: int, kind: str, /, **members: Any) -> None:
        """Send a frame to a user, who may be offline."""
        if (line := self.lines.get(user)) is not None:
            self.say(line, kind, **members)

    def say(self, line: Line, kind: str, message: str = "-", /, *, success: bool = True, **members: Any) -> None:
        frame = {"type": kind, "success": success, "message": message, **members}
        if self.chance(self.traps.noise, "noise"):
            line.send(self.rng.choice(NOISE))
        text = json.dumps(frame)
        self.frames.append((line.user, "out", frame))
        line.send(text)
        if kind.startswith("gamestate/") and self.chance(self.traps.repeat, "repeat"):
            line.send(text)

    def tips(self, line: Line, text: str, kind: str = "tips") -> None:
        self.say(line, kind, text, success=False)

    # ------------------------------------------------------------------------------------------------------ hearing

    def received(self, line: BaseLine, text: str) -> None:
        if isinstance(line, ChatLine):
            self.chat.received(line, text)
            return
        assert isinstance(line, Line)
        if line.dead:
            return
        try:
            frame = json.loads(text)
            kind = frame["type"]
        except (ValueError, KeyError, TypeError):
            line.dead = True  # without a message, as the real lobby does
            return
        self.frames.append((line.user, "in", frame))
        if kind == "ping":
            self.say(line, "pong", "pong", client_ts=frame["client_ts"])
        elif kind == "send_release_version":
            self._check_version(line, frame)
        elif kind == "login":
            self._login(line, frame)
        elif kind == "room/get_room_list":
            rooms = self.rooms.listed() if line.user else []
            self.say(line, kind, show_tip=False, room_list=rooms)
        elif not line.user:
            self.tips(line, "请先登录")
        elif kind == "reconnect_response":
            self._reconnect(line, frame)
        elif kind.startswith("room/"):
            self.rooms.received(line, kind, frame)
        elif kind in ("gamestate/GB/cut_tile", "gamestate/GB/send_action"):
            match = self.playing.get(line.user)
            if frame.get("gamestate_id") in self._finished:
                return self.stale.append((line.user, str(frame.get("action"))))
            if match is None or match.board.id != frame.get("gamestate_id"):
                return self.silence(line.user, "no game", str(frame))
            match.heard(line.user, frame)
        # Unknown types are ignored.

    def _check_version(self, line: Line, frame: dict[str, Any]) -> None:
        line.checked = frame.get("release_version") == VERSION
        if not line.checked:
            info = {"title": "版本检查失败", "content": "您的客户端版本与服务器版本不匹配"}
            self.say(line, "message", "error_version", success=False, message_info=info)
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
                    return self.tips(line, "该 IP 今日注册次数已达上限")
                self.registered += 1
                self.add(name, password)
            user, known = self.accounts[name]
            if password != known:
                return self.tips(line, "密码错误")
        old = self.lines.get(user)
        if old is not None:
            info = {"title": "账户于其他地方登陆", "content": "您的账户已在其他地方登录"}
            self.say(old, "message", "login_kickout", success=False, message_info=info)
            self._gone(user)
            old.user = 0  # stays open, and answers pings
        line.user = user
        self.lines[user] = line
        login: dict[str, Any] = {"user_id": user, "username": name, "userkey": key_of(name)}
        login["is_tourist"] = user < 10_000_000
        self.say(line, "login", "登录成功", login_info=login)
        if user in self.playing:
            info = {"title": "对局重连", "content": "检测到您有一场正在进行的游戏"}
            self.say(line, "message", "reconnect_ask", message_info=info)

    def _reconnect(self, line: Line, frame: dict[str, Any]) -> None:
        match = self.playing.get(line.user)
        if not frame.get("reconnect"):
            return
        if match is None:
            return self.tips(line, "游戏已结束")
        match.back(line.user)
        self.say(line, "tips", "重连成功")

    def start_match(self, room: dict[str, Any]) -> None:
        room["is_game_running"] = True
        self.rooms.show(room)
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

    def moved(self, user: int) -> None:
        self._moves += 1
        if not self.rooms.last_in_room(user) and self.every(self.traps.drop_every, self._moves, "drop"):
            self.break_line(user)

    def finished(self, board: Board) -> None:
        self.matches += 1
        self.hands += board.round
        self._forget(board)
        self.rooms.match_ended(board.room["room_id"])

    def _forget(self, board: Board) -> None:
        self._finished.add(board.id)
        self.playing = {user: match for user, match in self.playing.items() if match.board is not board}
