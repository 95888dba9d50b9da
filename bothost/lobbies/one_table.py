"""The base of the adapters of lobbies where an account has one websocket, and sits at one table at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from bothost import messages as m
from bothost.lobbies.base import Account, LobbyAdapter
from bothost.lobbies.frames import BadFrame, unknown
from bothost.lobbies.session import SocketSession

TableCommand = m.Act | m.Ready | m.Start | m.Leave | m.Resign | m.Resync


class OneTableSession(SocketSession):
    """A session of such a lobby."""

    @abstractmethod
    def log_in(self) -> list[m.Output]: ...


class Place(Protocol):
    """Where we sit: a room or a game."""

    @property
    def name(self) -> str: ...
    @property
    def over(self) -> bool: ...


class OneTableLobby(LobbyAdapter):
    """Passes each input on to where it belongs. Each adapter has its own kinds of sessions, tables and frames."""

    decode: ClassVar[Callable[[str | bytes], Any]]
    """Decodes a frame of the lobby. Raises BadFrame."""
    _session: OneTableSession
    _table: Place | None
    """None: we sit nowhere."""

    def __init__(self, account: Account, options: Any) -> None:
        super().__init__(account, options)
        self._table = None
        self._known: tuple[str, ...] = ()
        """Tables that the host knows from before the login."""
        self._memo: m.Json = {}

    def feed(self, item: m.Input) -> list[m.Output]:
        session, table = self._session, self._table
        out: list[m.Output] = []
        match item:
            case m.Frame():
                out = self._received(item.data) if session.hears(item.conn) else []
            case m.TimerFired():
                out = self._timer(item.name)
            case m.Authenticate() | m.Resume():
                self._known, self._memo = item.known if isinstance(item, m.Resume) else (), item.memo
                out = session.log_in()
            case m.SocketOpened():
                out = self._opened(item)
            case m.SocketClosed() | m.SocketFailed():
                out = session.lost(item)
            case m.HttpResult():
                out = self._answered(item)
            case m.Close():
                out = session.close()
            case m.Seek() | m.Create() | m.Join():
                out = self._seek(item) if session.ready else [m.SeekEnded(item.seek, "not connected")]
            case m.Act() | m.Ready() | m.Start() | m.Leave() | m.Resign() | m.Resync():
                if session.ready and table is not None and table.name == item.table:
                    out = self._at_table(item)  # else a request is repeated after the reconnect
            case _ if session.ready:
                out = self._command(item)
        if self._table is not None and self._table.over:
            self._table = None
        return out

    def _received(self, data: str | bytes) -> list[m.Output]:
        try:
            frame = type(self).decode(data)
        except BadFrame:
            return [unknown(data)]
        return self._frame(frame, data)

    def _answered(self, item: m.HttpResult) -> list[m.Output]:
        return []

    def _ended_before(self, *, keep: str = "") -> list[m.Output]:
        """After a login: the end of all tables except ``keep``, to which the lobby returns us."""
        gone = {*self._known} if self._table is None else {*self._known, self._table.name}
        gone.discard(keep)
        self._known = ()
        if self._table is not None and self._table.name in gone:
            self._table = None
        return [m.TableEnded(name, "aborted", detail="the lobby no longer knows it") for name in sorted(gone)]

    @abstractmethod
    def _opened(self, item: m.SocketOpened) -> list[m.Output]: ...

    @abstractmethod
    def _frame(self, frame: Any, raw: str | bytes) -> list[m.Output]: ...

    @abstractmethod
    def _timer(self, name: str) -> list[m.Output]: ...

    @abstractmethod
    def _seek(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]: ...

    @abstractmethod
    def _at_table(self, item: TableCommand) -> list[m.Output]:
        """Handle a command about the table where we sit."""

    @abstractmethod
    def _command(self, item: m.Input) -> list[m.Output]:
        """Handle any other command."""
