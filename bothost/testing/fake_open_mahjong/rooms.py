"""The connections and the rooms of the fake open_mahjong lobby."""

from __future__ import annotations

from typing import Any, Protocol

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.testing.fake_open_mahjong.game import Match
from bothost.testing.fake_server import Line as BaseLine

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


class Line(BaseLine):
    """One websocket."""

    checked = False
    """Whether the release version was accepted."""
    dead = False
    """Whether the server ignores the socket. It stays open, and answers protocol pings."""


class Lobby(Protocol):
    """The server, as its rooms use it."""

    playing: dict[int, Match]

    def tell(self, user: int, kind: str, /, **members: Any) -> None: ...
    def say(self, line: Line, kind: str, message: str = "-", /, *, success: bool = True, **members: Any) -> None: ...
    def tips(self, line: Line, text: str, kind: str = "tips") -> None: ...
    def start_match(self, room: dict[str, Any]) -> None: ...
    def delete(self, match: Match) -> None: ...


class Rooms:
    """Where players wait for a game."""

    def __init__(self, lobby: Lobby) -> None:
        self.by_id: dict[str, dict[str, Any]] = {}
        self._lobby = lobby
        self._opened = 0

    def remove(self, user: int) -> None:
        """Remove a player who disconnected from every room, for good."""
        for room in list(self.by_id.values()):
            if user in room["player_list"]:
                self.leave(room, user)

    def listed(self) -> list[dict[str, Any]]:
        return [self.public(room) for room in self.by_id.values()]

    def match_ended(self, room_id: str) -> None:
        """Return the players of a finished match to their room."""
        room = self.by_id.get(room_id)
        if room is not None:
            room["is_game_running"], room["ready_list"] = False, []
            self.show(room)

    def received(self, line: Line, kind: str, frame: dict[str, Any]) -> None:
        user = line.user
        if kind == "room/create_GB_room":
            if any(member not in frame for member in ROOM_MEMBERS):
                line.dead = True
                return
            return self._create(line, frame)
        room = self.by_id.get(frame.get("room_id", ""))
        if room is None:
            return self._lobby.tips(line, "房间不存在", "error_message")
        if kind == "room/join_room":
            return self._join(line, room, frame)
        host = user == room["host_user_id"]
        if kind in ("room/set_ready", "room/start_game") and room["is_game_running"]:
            self._lobby.tips(line, "游戏进行中", "error_message")
        elif user not in room["player_list"]:
            self._lobby.tips(line, "玩家不在房间中", "error_message")
        elif kind == "room/set_ready" and host:
            self._lobby.tips(line, "房主无需准备")
        elif kind == "room/set_ready":
            if not frame["ready"]:
                room["ready_list"] = [u for u in room["ready_list"] if u != user]
            elif user not in room["ready_list"]:
                room["ready_list"].append(user)
            self.show(room)
        elif kind == "room/leave_room":
            self.leave(room, user)
            self._lobby.say(line, "room/leave_room_done", "离开房间成功")
        elif kind == "room/kick_player" and host:
            target = frame["target_user_id"]
            self._lobby.tell(target, "room/leave_room_done", message="您已被房主移出房间")
            self.leave(room, target)
        elif kind == "room/add_bot" and host and len(room["player_list"]) < 4:
            room["player_list"].append(0)
            self.show(room)
        elif kind == "room/start_game":
            people = [u for u in room["player_list"] if u >= wire.ROBOTS_BELOW and u != room["host_user_id"]]
            if not host or len(room["player_list"]) != 4 or set(people) - set(room["ready_list"]):
                return self._lobby.tips(line, "人数不足", "error_message")
            self._lobby.start_match(room)

    def _create(self, line: Line, frame: dict[str, Any]) -> None:
        if any(line.user in room["player_list"] for room in self.by_id.values()):
            return self._lobby.tips(line, "您已在房间中")
        self._opened += 1
        room = self.by_id[str(self._opened)] = {
            "room_id": str(self._opened),
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
        self.show(room)
        self._lobby.say(line, "room/create_room_done", room_info=self.public(room))

    def _join(self, line: Line, room: dict[str, Any], frame: dict[str, Any]) -> None:
        if line.user in room["player_list"]:
            return self._lobby.tips(line, "玩家已在房间中", "error_message")
        if len(room["player_list"]) >= 4 or room["is_game_running"]:
            return self._lobby.tips(line, "房间已满", "error_message")
        if room["password"] != frame.get("password", ""):
            return self._lobby.tips(line, "密码错误", "error_message")
        room["player_list"].append(line.user)
        self.show(room)
        self._lobby.say(line, "room/join_room_done", "加入房间成功")

    def leave(self, room: dict[str, Any], user: int) -> None:
        room["player_list"].remove(user)
        room["ready_list"] = [u for u in room["ready_list"] if u != user]
        people = [u for u in room["player_list"] if u >= wire.ROBOTS_BELOW]
        if not people:
            self.by_id.pop(room["room_id"], None)
            match = next((m for m in self._lobby.playing.values() if m.board.room["room_id"] == room["room_id"]), None)
            if match is not None:
                self._lobby.delete(match)  # even if all are online, as the real lobby does
            return
        if user == room["host_user_id"]:
            room["host_user_id"] = people[0]
        self.show(room)

    def show(self, room: dict[str, Any]) -> None:
        for user in room["player_list"]:
            self._lobby.tell(user, "room/refresh_room_info", room_info=self.public(room))

    @staticmethod
    def public(room: dict[str, Any]) -> dict[str, Any]:
        public = {key: list(value) if isinstance(value, list) else value for key, value in room.items()}
        return public | {"has_password": bool(public.pop("password"))}

    def last_in_room(self, user: int) -> bool:
        """Whether this player is the only person left in the room, so that a disconnect would delete the game."""
        room = next((room for room in self.by_id.values() if user in room["player_list"]), None)
        return room is not None and sum(u >= wire.ROBOTS_BELOW for u in room["player_list"]) == 1
