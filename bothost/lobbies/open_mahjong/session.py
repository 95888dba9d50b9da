"""The session at open_mahjong: one socket, a release version, a login, and the return to a game."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from urllib.parse import urlsplit, urlunsplit

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.one_table import OneTableSession
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.options import HELLO, SETTLE, TIMERS, OpenMahjongOptions
from bothost.lobbies.session import socket_scheme

CLEANUP_S = 2.0
"""Pause before the next login, if the lobby forgot a connection when it cleaned up after the one before."""


class Session(OneTableSession):
    """Stages: closed → opening → login → settling [→ returning] → ready."""

    def __init__(self, account: Account, options: OpenMahjongOptions, on_end: Callable[[], list[m.Output]]) -> None:
        super().__init__(TIMERS, on_end)
        self.user = 0
        self.abandoned = False
        """Whether we gave up a game that the lobby may still keep for us."""
        self._account = account
        self._options = options
        self._name = ""
        self._pings = 0

    def send(self, kind: str, **body: object) -> m.SendFrame:
        return self.send_text(wire.encode(kind, **body))

    def log_in(self) -> list[m.Output]:
        out = self.begin("opening")
        if not self._options.tourist and not self._secret:
            return [*out, *self.end(m.AuthFailed("an account needs a password, or the option tourist = true"))]
        out.append(m.OpenSocket(self._conn, _address(self._account.url), (("User-Agent", self._account.user_agent),)))
        return [*out, m.SetTimer(HELLO, self._options.answer_timeout_s)]

    @property
    def _secret(self) -> str:
        return self._account.password or self._account.token

    def opened(self, item: m.SocketOpened) -> list[m.Output]:
        if item.conn != self._conn or self.stage != "opening":
            return []
        self.stage = "login"
        out: list[m.Output] = [self.send("send_release_version", release_version=self._options.release_version)]
        if self._options.tourist:
            return [*out, self.send("login", is_tourist=True)]
        username = self._options.username or self._account.name
        return [*out, self.send("login", username=username, password=self._secret)]

    def logged_in(self, frame: wire.Login) -> list[m.Output]:
        if self.stage != "login":
            return []
        if not frame.success or frame.login_info is None:
            return self.refuse(frame.message or "the lobby refuses the login")
        self.user, self._name = frame.login_info.user_id, frame.login_info.username
        self.stage = "settling"
        return [m.SetTimer(SETTLE, self._options.settle_s)]

    def refuse(self, reason: str) -> list[m.Output]:
        """The lobby refuses the login, but leaves the socket open."""
        return self.hang_up(m.AuthFailed(reason))

    def popup(self, frame: wire.Popup) -> list[m.Output]:
        text = frame.message_info.content or frame.message_info.title or frame.message
        if frame.message == "error_version":
            version = self._options.release_version
            return self.refuse(
                f"the lobby does not accept release_version {version}: {text}; set lobby.options.release_version"
            )
        if frame.message == "login_kickout":
            return self.hang_up(m.Superseded(text))
        if frame.message != "reconnect_ask":
            return [m.Notice(f"the lobby says: {text}")]
        if self.abandoned:
            self.abandoned = False
            return [self.send("reconnect_response", reconnect=False)]
        answer = self.send("reconnect_response", reconnect=True)
        if self.stage == "settling":
            self.stage = "returning"
            return [m.CancelTimer(SETTLE), m.SetTimer(HELLO, self._options.answer_timeout_s), answer]
        return [answer]

    def welcome(self, *, back: bool) -> list[m.Output]:
        """Report the login. ``back``: the lobby resumed our earlier session."""
        self.stage = "ready"
        return [m.CancelTimer(HELLO), m.CancelTimer(SETTLE), m.Connected(str(self.user), back, self._name)]

    def timed_out(self) -> list[m.Output]:
        """Reconnect if the lobby did not answer in time."""
        if self.stage not in ("opening", "login", "returning"):
            return []
        return self.reconnect("the lobby does not answer")

    def deaf(self) -> list[m.Output]:
        """Reconnect, because the lobby answers us and tells us nothing.

        When it cleans up after a closed connection of ours, it forgets a newer one too. So it gets time for that.
        """
        return self.hang_up(m.Disconnected("the lobby tells us nothing about our room", CLEANUP_S))

    def ping(self) -> m.SendFrame:
        self._pings += 1
        return self.send("ping", client_ts=self._pings)


def _address(url: str) -> str:
    """The address of a new connection. Each has a random name: ``ws://host/game/<uuid>``."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/") or "/game"
    return urlunsplit((socket_scheme(parts.scheme), parts.netloc, f"{path}/{uuid.uuid4()}", "", ""))
