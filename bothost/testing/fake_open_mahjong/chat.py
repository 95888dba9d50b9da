"""The chat server of the fake open_mahjong lobby: rooms by number, and a hall where everybody is."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from bothost.testing.fake_server import Line

SALT = "planted-salt"
HALL = 0


def key_of(name: str) -> str:
    """What the game server's login hands out for the chat."""
    return hashlib.sha256((name + SALT).encode()).hexdigest()


class ChatLine(Line):
    """One websocket of the chat server."""

    def __init__(self, socket: Any) -> None:
        super().__init__(socket)
        self.name = ""
        self.rooms: set[int] = set()


class ChatServer:
    """Everybody who is connected. What is malformed, or said from outside a room, is met by silence."""

    def __init__(self) -> None:
        self.lines: list[ChatLine] = []
        self.said: list[tuple[str, int, str]] = []
        """(speaker, room, text), oldest first."""

    def connected(self, line: ChatLine) -> None:
        self.lines.append(line)

    def disconnected(self, line: ChatLine) -> None:
        if line in self.lines:
            self.lines.remove(line)

    def received(self, line: ChatLine, text: str) -> None:
        try:
            frame = json.loads(text)
            kind, data = frame["type"], frame["data"]
            room = int(data.get("roomId", HALL))
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        match kind:
            case "login":
                self._login(line, data)
            case "joinRoom" if line.name:
                line.rooms.add(room)
                self._tell(line, "Tips", room, f"加入房间{room}成功")
            case "joinRoom":
                self._tell(line, "False", room, "加入房间失败,用户未登录")
            case "leaveRoom":
                line.rooms.discard(room)
                self._tell(line, "Tips", room, f"退出房间{room}成功")
            case "sendChat" if line.name and room in line.rooms:
                self._say(line, room, str(data["content"]))

    def _login(self, line: ChatLine, data: dict[str, Any]) -> None:
        if data.get("userkey") != key_of(str(data.get("username"))):
            return self._tell(line, "False", HALL, "登录聊天大厅失败,用户密钥错误")
        for other in self.lines:
            if other is not line and other.name == data["username"]:
                other.name, other.rooms = "", set()
                self._tell(other, "login_kickout", HALL, "您的账号已在其他位置登录")
        line.name, line.rooms = str(data["username"]), {HALL}
        self._tell(line, "Tips", HALL, "登录聊天大厅成功")

    def _say(self, line: ChatLine, room: int, text: str) -> None:
        self.said.append((line.name, room, text))
        for other in self.lines:
            if room in other.rooms:
                self._tell(other, "Chat", room, f"{line.name}: {text}")
        self._tell(line, "sendChatOk", room, text)

    @staticmethod
    def _tell(line: ChatLine, kind: str, room: int, content: str) -> None:
        line.send(json.dumps({"responseType": kind, "roomId": room, "content": content}))
