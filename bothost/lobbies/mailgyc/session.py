"""The session at mailgyc: a login over HTTP for a cookie, a websocket with it, and the return to a kept seat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.frames import BadFrame, loss_reason
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.options import HELLO, TIMERS, MailgycOptions
from bothost.lobbies.one_table import OneTableSession
from bothost.lobbies.session import http_address, socket_address

REJOIN_S = 1.0
"""Ask for our room again after this time. The lobby refuses for about 6 s, until it drops our old socket."""


class Session(OneTableSession):
    """Stages: closed → login → opening → greeting | returning → ready."""

    def __init__(self, account: Account, options: MailgycOptions, on_end: Callable[[], list[m.Output]]) -> None:
        super().__init__(TIMERS, on_end)
        self.retry_after_s = options.pause_s
        self.uid = 0
        self.room = -1
        """The room that keeps a seat for us, from the login; -1: none."""
        self.levels: frozenset[int] = frozenset()
        self.answered = False
        """Whether the lobby has answered our last request to return."""
        self._account = account
        self._options = options

    def send(self, code: int, **body: Any) -> m.SendFrame:
        return self.send_text(wire.encode(code, **body))

    def log_in(self) -> list[m.Output]:
        out = self.begin("login")
        body = msgspec.json.encode({"name": self._account.name})
        headers = (("Content-Type", "application/json"), ("User-Agent", self._account.user_agent))
        url = http_address(self._account.url, "/login")
        out.append(m.HttpRequest(self._conn, "POST", url, headers, body, self._options.answer_timeout_s))
        return out

    def logged_in(self, result: m.HttpResult) -> list[m.Output]:
        if self.stage != "login" or result.request != self._conn:
            return []
        if result.status in (400, 401, 403):
            return self.end(m.AuthFailed(f"the login failed with HTTP {result.status}"))
        if result.status != 200:
            why = result.body[:200].decode(errors="replace") or "no answer"
            where = f"HTTP {result.status}" if result.status else why
            return self.end(m.Disconnected(f"login: {where}"))
        try:
            login = wire.decode_login(result.body)
        except BadFrame as error:
            return self.end(m.Disconnected(str(error)))
        cookie = _cookie(result.headers)
        if cookie is None:
            return self.end(m.AuthFailed("the login sets no cookie userinfo"))
        self.uid, self.room = login.uid, login.room
        self.levels = frozenset(room.level for room in login.rooms)
        self.stage = "opening"
        headers = (("Cookie", f"userinfo={cookie}"), ("User-Agent", self._account.user_agent))
        url = socket_address(self._account.url)
        return [m.OpenSocket(self._conn, url, headers), m.SetTimer(HELLO, self._options.answer_timeout_s)]

    def opened(self, item: m.SocketOpened, level: int) -> list[m.Output]:
        """Ask the lobby for something: it also opens a socket that it refuses, and then closes it.

        ``level``: the level of the room that keeps a seat for us.
        """
        if item.conn != self._conn or self.stage != "opening":
            return []
        if self.room == -1:
            self.stage = "greeting"
            return [self.send(wire.ROOMS)]
        self.stage = "returning"
        return self.rejoin(level)

    def rejoin(self, level: int) -> list[m.Output]:
        """Ask for our room. If we have no seat there any more, the lobby answers only the ping."""
        self.answered = False
        return [self.send(wire.JOIN, room=self.room, level=level), self.send_text(wire.PING)]

    def welcome(self, *, back: bool) -> list[m.Output]:
        """Report the login. ``back``: the lobby resumed our earlier session."""
        self.stage = "ready"
        return [m.CancelTimer(HELLO), m.Connected(str(self.uid), back, self._account.name)]

    def timed_out(self) -> list[m.Output]:
        """Reconnect if the lobby did not answer in time."""
        if self.stage not in ("opening", "greeting", "returning"):
            return []
        return self.reconnect("the lobby does not answer")

    def lost(self, item: m.SocketClosed | m.SocketFailed) -> list[m.Output]:
        if not self.hears(item.conn):
            return []
        if isinstance(item, m.SocketFailed):
            if item.status in (401, 403):
                return self.end(m.AuthFailed(f"the websocket failed with HTTP {item.status}"))
            reason = loss_reason(item)
        elif self.ready:
            reason = loss_reason(item)
        else:
            reason = "closed during the login, as the lobby does if it refuses the cookie"
        return self.end(m.Disconnected(reason, self.retry_after_s))


def _cookie(headers: tuple[tuple[str, str], ...]) -> str | None:
    """The value of the cookie ``userinfo``."""
    for name, value in headers:
        if name.lower() == "set-cookie" and value.startswith("userinfo="):
            return value.removeprefix("userinfo=").split(";", 1)[0]
    return None
