"""Logging in at mailgyc/doudizhu: by HTTP for a cookie, with the cookie to a websocket, back to a seat that was kept.

What happens at the table is in ``mailgyc``.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account, LobbyAdapter
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import MailgycHand

HELLO, READY, STALL, AWAY, REJOIN = "hello", "ready", "stall", "away", "rejoin"
"""Timers: the lobby must answer; say ready; look at the table's progress; our leaving is done; name our room again."""


class MailgycOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]``"""

    level: int = 1
    """Where a wish names none. At level 1 the server's robots join a lone player after 10 s, at 2 and 3 they do not."""
    ready_after_s: float = 1.0
    """How long after taking a seat, and after a hand, we say that we are ready."""
    stall_s: float = 120.0
    """The lobby does not enforce its 40 s: leave a table at which nobody moved for so long. 0: never."""
    wait_s: float = 600.0
    """Leave a table at which no hand began for so long. 0: never."""
    answer_timeout_s: float = 10.0
    """How long logging in, greeting and coming back may each take."""
    pause_s: float = 1.0
    """Between the end of one socket and the next log-in: the lobby must have seen the first one end, or the second goes
    deaf when it does."""


class Room(msgspec.Struct):
    """The room where we sit."""

    room: int
    level: int
    players: tuple[wire.Player, ...]
    hand: MailgycHand | None = None
    lost: bool = False
    """Whether our picture of the hand is wrong: nothing is said of it until a frame 1006 mends it."""
    asked: str = ""
    """The request that waits for an answer, or for the echo of its answer."""
    acted: bool = False
    refused: tuple[int, int] = (0, 0)
    """How many answers were refused after so many events: (events, answers)."""
    grant_ms: float | None = None
    quiet: int = 0
    """Looks since something happened."""
    mismatches: int = 0

    @property
    def name(self) -> str:
        return str(self.room)


class MailgycSession(LobbyAdapter):
    """The connection of one player, and what it knows of the player's place in the lobby."""

    def __init__(self, account: Account, options: Any) -> None:
        super().__init__(account, options)
        self._conn = 0
        self._login = 0
        """Number of the last HTTP request."""
        self._stage = "closed"
        """closed → login → opening → greeting | returning → ready"""
        self._uid = 0
        self._room = -1
        """The room that keeps a seat for us, says the login."""
        self._levels: frozenset[int] = frozenset()
        self._seek: m.Seek | None = None
        self._sought = False
        """Whether the lobby was asked for the seat."""
        self._leaving = False
        self._listing = False
        self._searched_self = False
        """Whether we logged in again to learn where the lobby believes that we sit."""
        self._known: tuple[str, ...] = ()
        self._memo: m.Json = {}
        self._table: Room | None = None

    def _send(self, code: int, **body: Any) -> m.SendFrame:
        return m.SendFrame(self._conn, wire.encode(code, **body))

    # --------------------------------------------------------------------------------------------------- logging in

    def _log_in(self, command: m.Authenticate | m.Resume) -> list[m.Output]:
        self._known = command.known if isinstance(command, m.Resume) else ()
        self._memo = command.memo
        out: list[m.Output] = []
        if self._stage not in ("closed", "login"):
            out.append(m.CloseSocket(self._conn))
        self._login += 1
        self._stage = "login"
        body = msgspec.json.encode({"name": self.account.name})
        headers = (("Content-Type", "application/json"), ("User-Agent", self.account.user_agent))
        url = _address(self.account.url, "http", "/login")
        out.append(m.HttpRequest(self._login, "POST", url, headers, body, self.options.answer_timeout_s))
        return out

    def _logged_in(self, result: m.HttpResult) -> list[m.Output]:
        if self._stage != "login" or result.request != self._login:
            return []
        if result.status in (400, 401, 403):
            return self._end(m.AuthFailed(f"the login answers HTTP {result.status}"))
        if result.status != 200:
            where = f"HTTP {result.status}" if result.status else "no answer"
            return self._end(m.Disconnected(f"login: {where}"))
        try:
            login = wire.decode_login(result.body)
        except wire.BadFrame as error:
            return self._end(m.Disconnected(str(error)))
        cookie = _cookie(result.headers)
        if cookie is None:
            return self._end(m.AuthFailed("the login sets no cookie userinfo"))
        self._uid, self._room = login.uid, login.room
        self._levels = frozenset(room.level for room in login.rooms)
        self._conn += 1
        self._stage = "opening"
        headers = (("Cookie", f"userinfo={cookie}"), ("User-Agent", self.account.user_agent))
        url = _address(self.account.url, "ws", "/ws")
        return [m.OpenSocket(self._conn, url, headers), m.SetTimer(HELLO, self.options.answer_timeout_s)]

    def _opened(self, item: m.SocketOpened) -> list[m.Output]:
        """An open socket proves nothing (a refused one is opened and closed): let the lobby say something."""
        if item.conn != self._conn or self._stage != "opening":
            return []
        if self._room == -1:
            self._stage = "greeting"
            return [self._send(wire.ROOMS)]
        self._stage = "returning"
        return [self._rejoin()]

    def _rejoin(self) -> m.SendFrame:
        return self._send(wire.JOIN, room=self._room, level=self._level_of(self._room))

    def _level_of(self, room: int) -> int:
        if self._table is not None and self._table.room == room:
            return self._table.level
        level = self._memo.get("level") if self._memo.get("table") == str(room) else None
        return level if isinstance(level, int) else self.options.level

    def _welcome(self, *, back: bool) -> list[m.Output]:
        """Logged in. Tables that the lobby does not name now are gone."""
        self._stage = "ready"
        out: list[m.Output] = [m.CancelTimer(HELLO), m.Connected(str(self._uid), back, self.account.name)]
        gone = set(self._known)
        if self._table is not None:
            gone.add(self._table.name)
        gone.discard(str(self._room))
        if self._table is not None and self._table.room != self._room:
            self._table = None
        out += [m.TableEnded(name, "aborted", detail="the lobby does not know it any more") for name in sorted(gone)]
        self._known = ()
        return out

    def _lost(self, item: m.SocketClosed | m.SocketFailed) -> list[m.Output]:
        if item.conn != self._conn or self._stage in ("closed", "login"):
            return []
        if isinstance(item, m.SocketFailed):
            if item.status in (401, 403):
                return self._end(m.AuthFailed(f"the websocket answers HTTP {item.status}"))
            where = f"HTTP {item.status}" if item.status else "no connection"
            return self._end(m.Disconnected(f"{where}: {item.reason}", self.options.pause_s))
        if self._stage == "ready":
            return self._end(m.Disconnected(f"closed with {item.code}: {item.reason}", self.options.pause_s))
        return self._end(
            m.Disconnected("closed without a word, as the lobby does to a cookie it refuses", self.options.pause_s)
        )

    def _end(self, *events: m.Output) -> list[m.Output]:
        """The connection is over; our seat may live on."""
        self._stage = "closed"
        out: list[m.Output] = [m.CancelTimer(name) for name in (HELLO, READY, STALL, AWAY, REJOIN)]
        if self._seek is not None:
            out.append(m.SeekEnded(self._seek.seek, "disconnected"))
        self._seek, self._sought, self._leaving, self._listing = None, False, False, False
        if self._table is not None:
            self._table.asked, self._table.acted = "", False
        return [*out, *events]

    def _reconnect(self, reason: str) -> list[m.Output]:
        """The only way to a fresh frame 1006."""
        return [m.CloseSocket(self._conn), *self._end(m.Disconnected(reason, self.options.pause_s))]

    def _close(self) -> list[m.Output]:
        if self._stage in ("closed", "login"):
            self._stage = "closed"
            return []
        return [m.CloseSocket(self._conn, 1000, "bye"), *self._end()]


def _address(url: str, scheme: str, path: str) -> str:
    """The lobby's address for HTTP or websocket; only the websocket's path may be chosen, as the path of ``url``."""
    parts = urlsplit(url)
    secure = "s" if parts.scheme in ("wss", "https") else ""
    chosen = parts.path if scheme == "ws" and parts.path not in ("", "/") else path
    return urlunsplit((scheme + secure, parts.netloc, chosen, "", ""))


def _cookie(headers: tuple[tuple[str, str], ...]) -> str | None:
    """The value of the cookie ``userinfo``."""
    for name, value in headers:
        if name.lower() == "set-cookie" and value.startswith("userinfo="):
            return value.removeprefix("userinfo=").split(";", 1)[0]
    return None
