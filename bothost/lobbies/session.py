"""What the sessions of adapters share: one websocket at a time, and the end of a connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit, urlunsplit

from bothost import messages as m
from bothost.lobbies.frames import loss_reason


def socket_scheme(scheme: str) -> str:
    """The scheme of a websocket at an address with this one: ``http`` becomes ``ws``, ``https`` becomes ``wss``."""
    return {"http": "ws", "https": "wss"}.get(scheme, scheme)


def socket_address(url: str) -> str:
    """The address of a lobby's websocket: the lobby's URL, with the path ``/ws`` if it has none."""
    parts = urlsplit(url)
    path = "/ws" if parts.path in ("", "/") else parts.path
    return urlunsplit(parts._replace(scheme=socket_scheme(parts.scheme), path=path))


def http_address(url: str, path: str) -> str:
    """The address for HTTP of the lobby with this URL, at another path."""
    parts = urlsplit(url)
    return urlunsplit(("https" if parts.scheme in ("wss", "https") else "http", parts.netloc, path, "", ""))


class SocketSession:
    """The connection of one account. Each adapter's session derives from it, and adds the login."""

    def __init__(self, timers: Sequence[str], on_end: Callable[[], list[m.Output]]) -> None:
        """``timers`` are cancelled when the connection ends. ``on_end()`` ends what ends with it, such as a seek."""
        self.stage = "closed"
        """``closed``, then the adapter's own stages of the login, then ``ready``."""
        self.retry_after_s: float | None = None
        """How long the lobby needs before the next connection; None: it does not say."""
        self._timers = timers
        self._on_end = on_end
        self._conn = 0

    @property
    def ready(self) -> bool:
        """Whether the lobby has accepted our login."""
        return self.stage == "ready"

    def hears(self, conn: int) -> bool:
        """Whether inputs of this connection count."""
        return conn == self._conn and self.stage != "closed"

    def send_text(self, frame: str) -> m.SendFrame:
        return m.SendFrame(self._conn, frame)

    def begin(self, stage: str) -> list[m.Output]:
        """Begin a login. Closes the socket that is open."""
        out: list[m.Output] = [] if self.stage == "closed" else [m.CloseSocket(self._conn)]
        self._conn += 1
        self.stage = stage
        return out

    def end(self, *events: m.Output) -> list[m.Output]:
        """Record the end of the connection. Tables may continue."""
        self.stage = "closed"
        return [*(m.CancelTimer(name) for name in self._timers), *self._on_end(), *events]

    def lost(self, item: m.SocketClosed | m.SocketFailed) -> list[m.Output]:
        if not self.hears(item.conn):
            return []
        return self.end(m.Disconnected(loss_reason(item), self.retry_after_s))

    def hang_up(self, event: m.Output) -> list[m.Output]:
        """Close the socket, although the lobby left it open."""
        return [m.CloseSocket(self._conn), *self.end(event)]

    def reconnect(self, reason: str) -> list[m.Output]:
        """Connect again, for example because only a new connection brings a fresh position."""
        return self.hang_up(m.Disconnected(reason, self.retry_after_s))

    def close(self) -> list[m.Output]:
        """Disconnect."""
        return [] if self.stage == "closed" else [m.CloseSocket(self._conn, 1000, "bye"), *self.end()]
