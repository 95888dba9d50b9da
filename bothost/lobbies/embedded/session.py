"""The session at an embedded lobby: one socket. The first frame is a hello with our token."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.embedded import protocol as wire
from bothost.lobbies.embedded.options import EmbeddedOptions
from bothost.lobbies.frames import loss_reason
from bothost.lobbies.session import SocketSession, socket_address

HELLO = "hello"
"""Timer: the lobby must have answered our hello."""


class Session(SocketSession):
    """Stages: closed → hello → ready. Seeks end with the connection; tables stay open at the lobby."""

    def __init__(self, account: Account, options: EmbeddedOptions, on_end: Callable[[], list[m.Output]]) -> None:
        super().__init__((HELLO,), on_end)
        self.last_error: wire.Error | None = None
        self.superseded = False
        self._account = account
        self._options = options
        self._session = ""

    def send(self, frame: wire.ClientFrame) -> m.SendFrame:
        return self.send_text(wire.encode(frame).decode())

    def log_in(self, memo: m.Json) -> list[m.Output]:
        session = memo.get("session", "")
        if isinstance(session, str) and session and not self._session:
            self._session = session
        out = self.begin("hello")
        self.superseded, self.last_error = False, None
        out.append(m.OpenSocket(self._conn, socket_address(self._account.url)))
        return [*out, m.SetTimer(HELLO, self._options.hello_timeout_s)]

    def opened(self, conn: int, known: Mapping[str, wire.Known]) -> list[m.Output]:
        """Say hello. ``known``: by table, how many events of its hand we have."""
        if not self.hears(conn):
            return []
        account = self._account
        return [self.send(wire.Hello(wire.VERSION, account.token, account.user_agent, self._session, dict(known)))]

    def welcome(self, frame: wire.Welcome) -> list[m.Output]:
        self.stage = "ready"
        out: list[m.Output] = [m.CancelTimer(HELLO)]
        if frame.session != self._session:
            self._session = frame.session
            out.append(m.Remember({"session": frame.session}))
        return [*out, m.Connected(frame.player, frame.resumed, frame.player)]

    def timed_out(self) -> list[m.Output]:
        """The lobby did not answer our hello in time."""
        if self.stage != "hello":
            return []
        lost = m.Disconnected("the lobby does not answer our hello")
        return [m.CloseSocket(self._conn, 1000, "no welcome"), *self.end(lost)]

    def lost(self, item: m.SocketClosed | m.SocketFailed) -> list[m.Output]:
        if not self.hears(item.conn):
            return []
        error = self.last_error
        if isinstance(item, m.SocketFailed):
            if item.status in (401, 403):
                return self.end(m.AuthFailed(f"HTTP {item.status}: {item.reason}"))
            return self.end(m.Disconnected(loss_reason(item)))
        if item.code == wire.CLOSE_AUTH or (error is not None and error.code == "bad_token"):
            return self.end(m.AuthFailed(error.message if error is not None else item.reason))
        if self.superseded:
            return self.end()
        if item.code == wire.CLOSE_SUPERSEDED:
            return self.end(m.Superseded(item.reason))
        reason = f"{error.message} ({error.code})" if error is not None and not self.ready else loss_reason(item)
        return self.end(m.Disconnected(reason, 5.0 if item.code in (wire.CLOSE_RATE, wire.CLOSE_FULL) else None))
