"""The REST side of othello-platform: logging in with tokens that live a quarter of an hour, and the rooms.

Sans-IO as the adapter that owns it. A call that is answered with 401 is made again once, after a fresh login; ten
logins a minute are allowed per address, so that tokens are kept while they may be good and refreshed before the
password is used again.
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.othello_platform import protocol as wire

TOKEN = "token"
"""Timer: the token is too old to be used."""
TOKEN_S = 12 * 60.0
RETRY_S = 60.0
"""After too many logins."""
HTTP_S = 8.0

Purpose = Literal["refresh", "login", "register", "rooms", "tables", "create", "enter", "quit"]


class Call(msgspec.Struct, frozen=True):
    """A REST call that is under way."""

    purpose: Purpose
    method: Literal["GET", "POST"]
    path: str
    body: m.Json | None = None
    about: str = ""
    """The seek, or the room, that it is made for."""
    again: bool = False


class Refused(msgspec.Struct, frozen=True):
    """Why there is no token. ``final``: the credentials are wrong."""

    reason: str
    final: bool
    retry_after_s: float | None = None


class Rest:
    """Makes the calls of one account."""

    def __init__(self, account: Account, username: str, api_path: str, register: bool) -> None:
        parts = urlsplit(account.url)
        secure = parts.scheme in ("wss", "https")
        path = parts.path if parts.path not in ("", "/") else "/ws"
        self.ws_url = urlunsplit(("wss" if secure else "ws", parts.netloc, path, "", ""))
        self._base = urlunsplit(("https" if secure else "http", parts.netloc, api_path.rstrip("/"), "", ""))
        self.headers = (("User-Agent", account.user_agent),)
        self._username = username
        self._password = account.password or account.token
        self._register = register
        self.token = ""
        self._refresh_token = ""
        self._old = False
        self._count = 0
        self._calls: dict[int, Call] = {}
        self._waiting: list[Call] = []
        """Calls that wait for a fresh token."""

    @property
    def good(self) -> bool:
        """Whether the token may be used."""
        return bool(self.token) and not self._old

    def forget_token(self) -> None:
        """The lobby does not want it any more."""
        self.token = ""

    def age(self) -> None:
        """Its time is nearly over."""
        self._old = True

    def reset(self) -> None:
        """The session is lost: what is under way concerns nobody."""
        self._calls.clear()
        self._waiting.clear()

    def log_in(self) -> m.Output:
        """Get a token."""
        self.token = ""
        if self._refresh_token:
            token, self._refresh_token = self._refresh_token, ""
            return self.call(Call("refresh", "POST", "/auth/refresh", {"refreshToken": token}))
        if not self._password:
            return m.AuthFailed("this lobby logs in by password, and the account has none")
        body = {"username": self._username, "password": self._password, "remember": True}
        return self.call(Call("login", "POST", "/auth/login", body))

    def call(self, call: Call) -> m.HttpRequest:
        """Make a call."""
        self._count += 1
        self._calls[self._count] = call
        headers = [*self.headers]
        if self.token and not call.path.startswith("/auth/"):
            headers.append(("Authorization", f"Bearer {self.token}"))
        body = b""
        if call.body is not None:
            headers.append(("Content-Type", "application/json"))
            body = msgspec.json.encode(call.body)
        return m.HttpRequest(self._count, call.method, self._base + call.path, tuple(headers), body, HTTP_S)

    def take(self, result: m.HttpResult) -> Call | None:
        """The call that this answers; None: one of an earlier session."""
        return self._calls.pop(result.request, None)

    def with_fresh_token(self, call: Call) -> list[m.Output]:
        """Make a call again that was refused for its token."""
        first = not self._waiting
        self._waiting.append(msgspec.structs.replace(call, again=True))
        return [self.log_in()] if first else []

    def logged_in(self, call: Call, result: m.HttpResult) -> list[m.Output] | Refused:
        """The answer to refresh, login or register: effects, the last of which follow a token; or why there is none."""
        if result.status in (200, 201):
            try:
                answer = wire.login(result.body)
            except wire.BadFrame as error:
                return Refused(str(error), False)
            self.token, self._old = answer.token, False
            self._refresh_token = answer.refresh_token or ""
            waiting, self._waiting = self._waiting, []
            return [m.SetTimer(TOKEN, TOKEN_S), *(self.call(item) for item in waiting)]
        if result.status == 0 or result.status >= 500:
            return Refused(f"HTTP {result.status}" if result.status else f"no answer: {_text(result.body)}", False)
        if result.status == 429:
            return Refused("too many logins", False, RETRY_S)
        if call.purpose == "refresh":
            return [self.log_in()]
        why = wire.problem(result.body) or f"HTTP {result.status}"
        if call.purpose == "login" and result.status in (401, 404) and self._register:
            if len(self._password) < 8:
                return Refused("a new account's password has at least 8 characters", True)
            body: dict[str, Any] = {"username": self._username, "password": self._password}
            return [self.call(Call("register", "POST", "/auth/register", body))]
        return Refused(why, True)


def _text(raw: bytes) -> str:
    return raw[:200].decode(errors="replace")
