"""The session at othello-platform: a token by REST, then one socket whose first frame carries it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account, LobbyAdapter
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.rest import Call, Refused, Rest

AUTH = "auth"
"""Timer: the lobby must take our token by then. It gives us 5 s to show it."""
AUTH_S = 10.0
BAD_TOKENS = 3
"""Fresh tokens that the lobby may refuse before we believe it."""


class OthelloPlatformOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of othello-platform."""

    username: str = ""
    """Default: the account's name."""
    register: bool = False
    """Whether an account that the lobby does not know is made."""
    api_path: str = "/api/v1"
    wait_s: float = 300.0
    """How long a room may wait for an opponent."""
    start_s: float = 30.0
    """How long two players in a room may take to begin."""


class OthelloSession(LobbyAdapter):
    """Connecting, logging in, and losing the connection. What is played is the subclass's affair."""

    def __init__(self, account: Account, options: OthelloPlatformOptions) -> None:
        super().__init__(account, options)
        username = options.username or account.name
        self._rest = Rest(account, username, options.api_path, options.register)
        self._conn = 0
        self._open = False
        """Whether the socket ``_conn`` stands or is being opened."""
        self._ready = False
        """Whether the lobby took our token on it."""
        self._bad_tokens = 0
        self._retry_after_s: float | None = None

    @abstractmethod
    def _session_lost(self) -> list[m.Output]:
        """What a lost connection ends."""

    @abstractmethod
    def _end_seek(self, reason: str) -> list[m.Output]:
        """The seek that is out, if any, ends without a seat."""

    def _say(self, kind: str, **payload: Any) -> m.SendFrame:
        return m.SendFrame(self._conn, wire.encode(kind, **payload))

    def _log_on(self) -> list[m.Output]:
        """Connect, with the token that we have while it may be good."""
        out: list[m.Output] = [m.CloseSocket(self._conn)] if self._open else []
        self._open = self._ready = False
        self._rest.reset()
        self._retry_after_s = None
        out.append(self._open_socket() if self._rest.good else self._rest.log_in())
        return out

    def _logged_in(self, call: Call, item: m.HttpResult) -> list[m.Output]:
        answer = self._rest.logged_in(call, item)
        if isinstance(answer, Refused):
            if self._ready:  # a call of the session could not be made; the session itself stands
                self._rest.reset()
                notice = m.Notice(f"the token could not be renewed: {answer.reason}", "warning")
                return [notice, *self._end_seek("no token")]
            if answer.final:
                return self._disconnected(m.AuthFailed(answer.reason))
            return self._disconnected(m.Disconnected(answer.reason, answer.retry_after_s))
        if self._rest.good and not self._open:
            answer.append(self._open_socket())
        return answer

    def _open_socket(self) -> m.OpenSocket:
        self._conn += 1
        self._open = True
        return m.OpenSocket(self._conn, self._rest.ws_url, self._rest.headers)

    def _opened(self, item: m.SocketOpened) -> list[m.Output]:
        if item.conn != self._conn or not self._open:
            return []
        return [self._say("auth", token=self._rest.token), m.SetTimer(AUTH, AUTH_S)]

    def _token_refused(self, reason: str) -> list[m.Output]:
        """The next attempt gets another token; after some that did not help either, there is none."""
        self._rest.forget_token()
        self._bad_tokens += 1
        if self._bad_tokens > BAD_TOKENS:
            return [m.CloseSocket(self._conn), *self._disconnected(m.AuthFailed(reason))]
        return self._cut(reason)

    def _cut(self, reason: str) -> list[m.Output]:
        return [m.CloseSocket(self._conn, 1000, "bye"), *self._disconnected(m.Disconnected(reason))]

    def _lost(self, item: m.SocketClosed | m.SocketFailed) -> list[m.Output]:
        if item.conn != self._conn or not self._open:
            return []
        if isinstance(item, m.SocketFailed):
            where = f"HTTP {item.status}" if item.status else "no connection"
            return self._disconnected(m.Disconnected(f"{where}: {item.reason}"))
        reason = f"closed with {item.code}" + (f": {item.reason}" if item.reason else "")
        return self._disconnected(m.Disconnected(reason, self._retry_after_s))

    def _disconnected(self, *events: m.Output) -> list[m.Output]:
        """The connection is over: the queue forgets us, rooms and games do not."""
        self._open = self._ready = False
        self._rest.reset()
        return [m.CancelTimer(AUTH), *self._session_lost(), *events]

    def _close(self) -> list[m.Output]:
        if not self._open:
            self._rest.reset()
            return []
        return [m.CloseSocket(self._conn, 1000, "bye"), *self._disconnected()]
