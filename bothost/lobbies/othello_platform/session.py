"""The session at othello_platform: a token by REST, then one socket. Its first frame contains the token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.one_table import OneTableSession
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.options import AUTH, OthelloPlatformOptions
from bothost.lobbies.othello_platform.rest import Call, Refused, RestClient

AUTH_S = 10.0
"""How long the lobby may take to accept our token. It allows us 5 s to send it."""
BAD_TOKENS = 3
"""If the lobby refuses more fresh tokens than this, the credentials count as wrong."""
THROTTLE_S = 2.0


class Session(OneTableSession):
    """Stages: closed → login → opening → ready."""

    def __init__(
        self, account: Account, options: OthelloPlatformOptions, on_trouble: Callable[[str], list[m.Output]]
    ) -> None:
        """``on_trouble(reason)`` ends the seek, and also the game's requests if the connection is lost."""
        super().__init__((AUTH,), lambda: on_trouble("disconnected"))
        self.rest = RestClient(account, options)
        self.me = ""
        """Our user id."""
        self._account = account
        self._on_trouble = on_trouble
        self._bad_tokens = 0

    def send(self, kind: str, **payload: Any) -> m.SendFrame:
        return self.send_text(wire.encode(kind, **payload))

    # ------------------------------------------------------------------------------------------------------ logging in

    def log_in(self) -> list[m.Output]:
        """Connect. Get a new token first if the present one may have expired."""
        out = self.begin("login")
        self.rest.reset()
        self.retry_after_s = None
        return [*out, self._open_socket() if self.rest.good else self.rest.log_in()]

    def logged_in(self, call: Call, result: m.HttpResult) -> list[m.Output]:
        """Handle the answer to refresh, login or register."""
        answer = self.rest.logged_in(call, result)
        if isinstance(answer, Refused):
            return self._login_refused(answer)
        if self.rest.good and self.stage == "login":
            answer.append(self._open_socket())
        return answer

    def _login_refused(self, refused: Refused) -> list[m.Output]:
        if self.ready:  # only a REST call failed; the websocket is still connected
            self.rest.reset()
            notice = m.Notice(f"the token could not be renewed: {refused.reason}", "warning")
            return [notice, *self._on_trouble("no token")]
        if refused.final:
            return self.end(m.AuthFailed(refused.reason))
        return self.end(m.Disconnected(refused.reason, refused.retry_after_s))

    def _open_socket(self) -> m.OpenSocket:
        self.stage = "opening"
        return m.OpenSocket(self._conn, self.rest.ws_url, self.rest.headers)

    def opened(self, item: m.SocketOpened) -> list[m.Output]:
        if not self.hears(item.conn):
            return []
        return [self.send("auth", token=self.rest.token), m.SetTimer(AUTH, AUTH_S)]

    def welcome(self, frame: wire.AuthOk, *, back: bool) -> list[m.Output]:
        """Report the login. ``back``: there is a game to return to."""
        self.stage, self.me, self._bad_tokens = "ready", frame.user_id, 0
        return [m.CancelTimer(AUTH), m.Connected(frame.user_id, back, frame.username or self._account.name)]

    def timed_out(self) -> list[m.Output]:
        """Reconnect if the lobby did not answer our token in time."""
        return self.reconnect("the lobby does not answer our login") if self.stage == "opening" else []

    # ----------------------------------------------------------------------------------------------------- its end

    def throttled(self) -> list[m.Output]:
        """We sent too fast, so the lobby will close the socket."""
        self.retry_after_s = THROTTLE_S
        return [m.Throttled(THROTTLE_S)]

    def token_refused(self, reason: str) -> list[m.Output]:
        """Try again with a fresh token, up to ``BAD_TOKENS`` times."""
        self.rest.forget_token()
        self._bad_tokens += 1
        if self._bad_tokens > BAD_TOKENS:
            return self.hang_up(m.AuthFailed(reason))
        return self.reconnect(reason)

    def end(self, *events: m.Output) -> list[m.Output]:
        """Record the end of the connection and of all calls."""
        self.rest.reset()
        return super().end(*events)
