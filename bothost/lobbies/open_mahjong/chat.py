"""Chat at open_mahjong: a server of its own, with a socket of its own, where each room of the lobby has a room.

It is optional: whatever happens here costs no game. The game server's login hands out the key for it.
"""

from __future__ import annotations

import uuid
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.frames import MAX_CHAT, NOT_JSON, plain_text
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.options import CHAT, OpenMahjongOptions
from bothost.lobbies.session import socket_scheme

FIRST_CONN = 1 << 20
"""Numbers of chat sockets start here, those of the game server at 1."""
RETRY_S = 60.0
MAX_WAITING = 4
"""Messages that wait until the room is joined."""


class Said(wire.Body, frozen=True):
    """What the chat server says: ``Chat``, ``Tips`` (it worked), ``False`` (it did not), ``login_kickout``."""

    responseType: wire.Word = ""
    roomId: int = 0
    content: wire.Word = ""


_decode = msgspec.json.Decoder(Said).decode


class Chat:
    """The chat of one player: logs in, joins the room of our table, says and hears."""

    def __init__(self, account: Account, options: OpenMahjongOptions) -> None:
        self._account = account
        self._url = _address(account.url, options.chat_url) if options.chat_url else ""
        self._answer_s = options.answer_timeout_s
        self._conn = FIRST_CONN
        self._stage = "closed"
        """closed → opening → login → ready; lost: until the next try"""
        self._login = wire.LoginInfo(user_id=0)
        self._table = ""
        self._joined = 0
        """The room that we are in; 0: only the hall, where all players are."""
        self._waiting: list[m.Say] = []

    def hears(self, conn: int) -> bool:
        """Whether this is the number of a chat socket, open or not."""
        return conn > FIRST_CONN

    # ------------------------------------------------------------------------------------------------------- session

    def begin(self, login: wire.LoginInfo) -> list[m.Output]:
        """The game server let us in."""
        self._login = login
        return self._open() if self._url and login.userkey else []

    def _open(self) -> list[m.Output]:
        out: list[m.Output] = self.close()
        self._conn += 1
        self._stage = "opening"
        headers = (("User-Agent", self._account.user_agent),)
        return [*out, m.OpenSocket(self._conn, f"{self._url}/{uuid.uuid4()}", headers)]

    def close(self) -> list[m.Output]:
        """The session at the game server is over."""
        if self._stage == "closed":
            return []
        self._stage, self._joined = "closed", 0
        self._waiting.clear()
        return [m.CancelTimer(CHAT), m.CloseSocket(self._conn)]

    def timed_out(self) -> list[m.Output]:
        """The server did not answer the login, or it is time to try again after a loss."""
        if self._stage == "login":
            return [m.CloseSocket(self._conn), *self._lost()]
        return self._open() if self._stage == "lost" else []

    def _lost(self) -> list[m.Output]:
        self._stage, self._joined = "lost", 0
        return [m.Notice("the chat server is not reached", "warning"), m.SetTimer(CHAT, RETRY_S)]

    def feed(self, item: m.SocketOpened | m.SocketClosed | m.SocketFailed | m.Frame) -> list[m.Output]:
        """Something happened on a chat socket."""
        if item.conn != self._conn or self._stage in ("closed", "lost"):
            return []
        if isinstance(item, m.SocketOpened):
            self._stage = "login"
            login = self._send("login", username=self._login.username, userkey=self._login.userkey)
            return [login, m.SetTimer(CHAT, self._answer_s)]
        if isinstance(item, m.Frame):
            return self._frame(item.data)
        return self._lost()

    def _frame(self, data: str | bytes) -> list[m.Output]:
        try:
            said = _decode(data)
        except NOT_JSON:
            return []
        if said.responseType == "Chat":
            return self._heard(said)
        if said.responseType == "login_kickout":
            return [*self.close(), m.Notice("another client chats as this player", "warning")]
        if said.responseType == "False":
            out: list[m.Output] = self.close() if self._stage == "login" else []
            return [*out, m.Notice(f"the chat server says: {said.content}", "warning")]
        if said.responseType == "Tips" and self._stage == "login":
            self._stage = "ready"
            return [m.CancelTimer(CHAT), *self._join()]
        if said.responseType == "Tips" and said.roomId and said.roomId == _room(self._table):
            self._joined = said.roomId
            waiting, self._waiting = self._waiting, []
            return [output for say in waiting for output in self.say(say)]
        return []

    def _heard(self, said: Said) -> list[m.Output]:
        speaker, colon, text = said.content.partition(": ")
        known = bool(colon) and said.roomId == self._joined != 0 and speaker != self._login.username
        return [m.Chat(self._table, speaker, text)] if known else []

    # --------------------------------------------------------------------------------------------------------- table

    def at(self, table: str) -> list[m.Output]:
        """We sit at this table. Its room is kept after the game, until there is another table."""
        if table == self._table:
            return []
        out: list[m.Output] = []
        if self._joined and self._stage == "ready":
            out.append(self._send("leaveRoom", roomId=self._joined))
        self._table, self._joined = table, 0
        self._waiting.clear()
        return out + self._join()

    def _join(self) -> list[m.Output]:
        room = _room(self._table)
        return [self._send("joinRoom", roomId=room)] if room and self._stage == "ready" else []

    def say(self, item: m.Say) -> list[m.Output]:
        """Say it now, or once the room is joined."""
        if item.table != self._table or not self._url:
            return []
        if not self._joined:
            self._waiting = [*self._waiting, item][-MAX_WAITING:]
            return []
        text = plain_text(item.text, MAX_CHAT)
        return [self._send("sendChat", content=text, roomId=self._joined)] if text else []

    def _send(self, kind: str, **data: object) -> m.SendFrame:
        return m.SendFrame(self._conn, wire.encode(kind, data=data))


def _room(table: str) -> int:
    """The chat's number of a table's room; 0 where it has none."""
    number = table.removeprefix("room-")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0


def _address(lobby: str, url: str) -> str:
    parts = urlsplit(urljoin(lobby.replace("ws", "http", 1) if lobby.startswith("ws") else lobby, url))
    return urlunsplit((socket_scheme(parts.scheme), parts.netloc, parts.path.rstrip("/"), "", ""))
