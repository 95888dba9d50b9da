"""The REST calls of othello_platform: login tokens, which are valid for 15 minutes, and rooms.

A call that fails with 401 is repeated once after a fresh login. The lobby allows an IP address ten logins a minute. So
a token is used as long as it may be valid, and then refreshed before the password is used again.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.frames import BadFrame
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.options import TOKEN, OthelloPlatformOptions
from bothost.lobbies.session import http_address, socket_address

TOKEN_S = 12 * 60.0
RETRY_S = 60.0
"""Wait this long after too many logins."""
HTTP_S = 8.0
MIN_PASSWORD = 8

Purpose = Literal["refresh", "login", "register", "rooms", "look", "tables", "create", "enter", "quit"]
AUTH_PURPOSES = ("refresh", "login", "register")


class Call(msgspec.Struct, frozen=True):
    """A REST call in flight."""

    purpose: Purpose
    method: Literal["GET", "POST"]
    path: str
    body: m.Json | None = None
    about: str = ""
    """The id of the seek or room that the call is for."""
    again: bool = False


class Refused(msgspec.Struct, frozen=True):
    """A login failed. ``final``: the credentials are wrong, so that another attempt is useless."""

    reason: str
    final: bool
    retry_after_s: float | None = None


class RestClient:
    """The REST client of one account, sans-IO."""

    def __init__(self, account: Account, options: OthelloPlatformOptions) -> None:
        self.ws_url = socket_address(account.url)
        self.headers = (("User-Agent", account.user_agent),)
        self.token = ""
        self.left: deque[str] = deque(maxlen=64)
        """Rooms that we left. Later messages about them are ignored."""
        self._base = http_address(account.url, options.api_path.rstrip("/"))
        self._username = options.username or account.name
        self._password = account.password or account.token
        self._register = options.register
        self._refresh_token = ""
        self._old = False
        self._maybe_registered = False
        """Whether a registration had no answer, so that the lobby may have accepted it later."""
        self._count = 0
        self._calls: dict[int, Call] = {}
        self._waiting: list[Call] = []
        """Calls that wait for a fresh token."""

    # ---------------------------------------------------------------------------------------------------------- tokens

    @property
    def good(self) -> bool:
        """Whether the token can be used."""
        return bool(self.token) and not self._old

    def forget_token(self) -> None:
        """Drop the token, because the lobby refused it."""
        self.token = ""

    def age(self) -> None:
        """Mark the token as old, because it expires soon."""
        self._old = True

    def reset(self) -> None:
        """Forget all calls, because the session is lost."""
        self._maybe_registered |= any(call.purpose == "register" for call in self._calls.values())
        self._calls.clear()
        self._waiting.clear()

    def log_in(self) -> m.Output:
        """Get a token."""
        self.token = ""
        if self._refresh_token:
            token, self._refresh_token = self._refresh_token, ""
            return self._call(Call("refresh", "POST", "/auth/refresh", {"refreshToken": token}))
        if not self._password:
            return m.AuthFailed("this lobby needs a password: set the account's password or token")
        body = {"username": self._username, "password": self._password, "remember": True}
        return self._call(Call("login", "POST", "/auth/login", body))

    def logged_in(self, call: Call, result: m.HttpResult) -> list[m.Output] | Refused:
        """Handle the answer to refresh, login or register."""
        if result.status in (200, 201):
            try:
                answer = wire.login(result.body)
            except BadFrame as error:
                return Refused(str(error), False)
            self.token, self._old = answer.token, False
            self._refresh_token = answer.refresh_token or ""
            waiting, self._waiting = self._waiting, []
            return [m.SetTimer(TOKEN, TOKEN_S), *(self._call(item) for item in waiting)]
        if result.status == 0 or result.status >= 500:
            self._maybe_registered |= call.purpose == "register"
            reason = f"HTTP {result.status}" if result.status else result.body[:200].decode(errors="replace")
            return Refused(f"no answer to the login: {reason}", False)
        if result.status == 429:
            return Refused("too many logins", False, RETRY_S)
        if call.purpose == "refresh":
            return [self.log_in()]
        if call.purpose == "login" and result.status in (401, 404) and self._register:
            if len(self._password) < MIN_PASSWORD:
                return Refused(f"the password of a new account needs at least {MIN_PASSWORD} characters", True)
            body: dict[str, Any] = {"username": self._username, "password": self._password}
            return [self._call(Call("register", "POST", "/auth/register", body))]
        if call.purpose == "register" and result.status == 409:
            again, self._maybe_registered = self._maybe_registered, False
            return Refused("the lobby has an account of this name, with another password", not again)
        return Refused(wire.problem(result.body) or f"HTTP {result.status}", True)

    # ----------------------------------------------------------------------------------------------------------- rooms

    def list_rooms(self, purpose: Literal["rooms", "look", "tables"], about: str = "") -> m.Output:
        """List the waiting rooms. ``about``: the id of the seek or room that the list is for."""
        return self._call(Call(purpose, "GET", "/rooms?status=waiting&limit=100", about=about))

    def create_room(self, body: m.Json, seek: str) -> m.Output:
        return self._call(Call("create", "POST", "/rooms", body, seek))

    def enter_room(self, room: str, password: str, seek: str) -> m.Output:
        """Enter a room with a password. Only the REST call checks passwords."""
        return self._call(Call("enter", "POST", f"/rooms/{room}/join", {"password": password}, seek))

    def quit_room(self, room: str) -> m.Output:
        self.left.append(room)
        return self._call(Call("quit", "POST", f"/rooms/{room}/quit", {}, room))

    # ----------------------------------------------------------------------------------------------------------- calls

    def take(self, result: m.HttpResult) -> Call | None:
        """Take the call that this result answers; None if it belongs to an earlier session."""
        return self._calls.pop(result.request, None)

    def with_fresh_token(self, call: Call) -> list[m.Output]:
        """Repeat a call after a fresh login, because its token was refused."""
        first = not self._waiting
        self._waiting.append(msgspec.structs.replace(call, again=True))
        return [self.log_in()] if first else []

    def _call(self, call: Call) -> m.HttpRequest:
        self._count += 1
        self._calls[self._count] = call
        headers = [*self.headers]
        if self.token and call.purpose not in AUTH_PURPOSES:
            headers.append(("Authorization", f"Bearer {self.token}"))
        body = b""
        if call.body is not None:
            headers.append(("Content-Type", "application/json"))
            body = msgspec.json.encode(call.body)
        return m.HttpRequest(self._count, call.method, self._base + call.path, tuple(headers), body, HTTP_S)
