"""The adapter of the embedded lobby (``bothost.lobby_server``; protocol: ``docs/reference/lobby-protocol.md``).

The lobby's protocol is close to :mod:`bothost.messages`, so this is the smallest adapter that keeps every rule of
:mod:`bothost.lobbies.base`. Read it before you write another.
"""

from __future__ import annotations

from collections import deque

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities, LobbyAdapter
from bothost.lobbies.embedded import protocol as wire
from bothost.lobbies.embedded.options import EmbeddedAttributes, EmbeddedOptions
from bothost.lobbies.embedded.session import HELLO, Session
from bothost.lobbies.embedded.table import EmbeddedTable
from bothost.lobbies.frames import unknown


class EmbeddedLobby(LobbyAdapter):
    """One account at an embedded lobby."""

    name = "embedded"
    kit = "bothost.testing.kits:EMBEDDED"
    capabilities = Capabilities(
        games=("*",),
        acks_moves=True,
        rejects_illegal="error",
        sends_turn=True,
        clock="bank_and_step",
        resume="identity",
        resume_delivers="snapshot",
        heartbeat="app",
        messages_per_second=None,  # answers are not counted; our other messages are far below the limit
        on_rate_limit="error",
        plays_for_us=True,
        chat=True,
    )
    Options = EmbeddedOptions
    Attributes = EmbeddedAttributes

    options: EmbeddedOptions

    def __init__(self, account: Account, options: EmbeddedOptions) -> None:
        super().__init__(account, options)
        self._session = Session(account, options, self._session_ended)
        self._tables: dict[str, EmbeddedTable] = {}
        self._left: deque[str] = deque(maxlen=256)
        """Tables that we left. Of their later frames only the end counts."""
        self._seeks: set[str] = set()
        self._known: tuple[str, ...] = ()

    def feed(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.Frame():
                return self._frame(item) if self._session.hears(item.conn) else []
            case m.Act():
                return self._act(item)
            case m.SocketOpened():
                known = {name: table.known for name, table in self._tables.items()}
                return self._session.opened(
                    item.conn, {**known, **{n: wire.Known() for n in self._known if n not in known}}
                )
            case m.SocketClosed() | m.SocketFailed():
                return self._session.lost(item)
            case m.TimerFired():
                return self._session.timed_out() if item.name == HELLO else []
            case m.Authenticate() | m.Resume():
                self._known = item.known if isinstance(item, m.Resume) else ()
                return self._session.log_in(item.memo)
            case m.Close():
                return self._session.close()
            case _:
                return self._command(item)

    def _session_ended(self) -> list[m.Output]:
        seeks, self._seeks = sorted(self._seeks), set()
        return [m.SeekEnded(seek, "disconnected") for seek in seeks]

    # ------------------------------------------------------------------------------------------------------ commands

    def _act(self, act: m.Act) -> list[m.Output]:
        if not self._session.ready:
            return []  # the question comes again with the snapshot
        (action,) = act.actions
        return [self._session.send(wire.Act(act.table, act.request_id, action))]

    def _command(self, item: m.Input) -> list[m.Output]:
        seeks = isinstance(item, m.Seek | m.Create | m.Join | m.Accept)
        if not self._session.ready:
            return [m.SeekEnded(item.seek, "not connected")] if seeks else []  # type: ignore[union-attr]
        if isinstance(item, m.Resync):
            table = self._tables.get(item.table)
            return [table.sync()] if table is not None else []
        if isinstance(item, m.Seek | m.Create | m.Join):
            self._seeks.add(item.seek)
        if isinstance(item, m.Leave):
            self._tables.pop(item.table, None)
            self._left.append(item.table)
        frame = _command_frame(item)
        return [] if frame is None else [self._session.send(frame)]

    # -------------------------------------------------------------------------------------------------------- frames

    def _frame(self, item: m.Frame) -> list[m.Output]:
        try:
            frame = wire.decode_server(item.data)
        except wire.BadFrame:
            return [unknown(item.data)]
        if not self._session.ready and not isinstance(frame, wire.Welcome | wire.Error | wire.Superseded):
            return []
        if type(frame) is wire.Events:
            table = self._tables.get(frame.table)
            return table.events(frame, item.data) if table is not None else self._stray(frame.table, item.data)
        match frame:
            case wire.Welcome():
                return [] if self._session.ready else self._session.welcome(frame)
            case wire.Pong():
                return [m.Alive()]
            case wire.Superseded():
                self._session.superseded = True
                return [m.Superseded(frame.reason)]
            case wire.Error():
                return self._error(frame)
            case wire.Tables():
                return [m.Tables(tuple(_info(info) for info in frame.tables))]
            case wire.Waiting():
                return []
            case wire.SeekEnded():
                self._seeks.discard(frame.seek)
                return [m.SeekEnded(frame.seek, frame.reason)]
            case wire.Invitation():
                players = tuple(m.PlayerInfo(name, None, name) for name in frame.players)
                seconds, seek = frame.expires_ms / 1000.0, frame.seek or None
                return [m.Invitation(frame.invitation, _info(frame.info), seconds, players, seek)]
            case wire.Seated():
                self._seeks.discard(frame.seek)
                return self._tables.setdefault(frame.table, EmbeddedTable(frame.table, self._session)).seated(frame)
            case wire.Chat():
                return [m.Chat(frame.table, frame.player, frame.text)]
            case wire.TableEnded():
                ours = self._tables.pop(frame.table, None) is not None or frame.table in (*self._known, *self._left)
                ended = m.TableEnded(frame.table, frame.reason, frame.scores, None, frame.detail)
                return [ended] if ours else []
            case _:
                table = self._tables.get(frame.table)
                return table.frame(frame, item.data) if table is not None else self._stray(frame.table, item.data)

    def _stray(self, table: str, raw: str | bytes) -> list[m.Output]:
        """A frame of a table that is not ours."""
        return [] if table in self._left else [unknown(raw)]

    def _error(self, frame: wire.Error) -> list[m.Output]:
        self._session.last_error = frame
        text = f"{frame.message} ({frame.code})"
        out: list[m.Output] = []
        if frame.code == "rate_limited":
            out.append(m.Throttled(max(frame.retry_ms, 100) / 1000.0))
        if frame.seek in self._seeks and frame.code not in ("seek_exists", "unknown_seek"):
            self._seeks.discard(frame.seek)
            out.append(m.SeekEnded(frame.seek, text))
        if out or frame.seek:
            return out
        if frame.code == "unknown_table" and frame.table in self._left:
            return []  # it had ended when we left it
        if frame.code == "unknown_table" and self._tables.pop(frame.table, None) is not None:
            return [m.TableEnded(frame.table, "aborted", detail=text)]
        return [m.Notice(text, "error")]


def _command_frame(item: m.Input) -> wire.ClientFrame | None:
    """The frame of a command; None if the lobby needs none."""
    match item:
        case m.Seek():
            return wire.Seek(item.seek, item.wish.game, item.wish.rules, item.wish.attributes)
        case m.Create():
            attributes = dict(item.wish.attributes)
            password = str(attributes.pop("password", ""))
            return wire.Create(item.seek, item.wish.game, item.wish.rules, attributes, password)
        case m.Join():
            return wire.Join(item.seek, item.table, str(item.attributes.get("password", "")))
        case m.ListTables():
            return wire.List(item.game)
        case m.CancelSeek():
            return wire.Cancel(item.seek)
        case m.Accept():
            return wire.Accept(item.invitation)
        case m.Decline():
            return wire.Decline(item.invitation)
        case m.Resign():
            return wire.Resign(item.table)
        case m.Leave():
            return wire.Leave(item.table)
        case m.Say():
            return wire.Say(item.table, item.text)
        case m.Ping():
            return wire.Ping()
        case _:
            return None  # Ready, Start: its tables start by themselves


def _info(info: wire.TableInfo) -> m.TableInfo:
    return m.TableInfo(info.table, info.game, info.rules, dict(info.attributes), info.free)
