"""The adapter of the embedded lobby (``bothost.lobby_server``; the dialect is ``docs/reference/lobby-protocol.md``).

The lobby speaks bothost's own language, so this is the smallest adapter that keeps every rule of
:mod:`bothost.lobbies.base`: read it before writing another. What it does beyond translating: it counts each table's
events, drops what came twice, and asks for a snapshot when some are missing.
"""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities, LobbyAdapter
from bothost.lobbies.embedded import protocol as wire
from bothost.lobbies.frames import unknown

HELLO = "hello"
"""Timer: the lobby must answer our hello by then."""


class EmbeddedOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of the embedded lobby."""

    hello_timeout_s: float = 10.0
    """How long the lobby may take to answer our hello."""


class _Table(msgspec.Struct):
    """What the adapter must know about a table to see a gap."""

    hand: str = ""
    seq: int = 0
    """Events of ``hand`` that we passed on."""
    lost: bool = False
    """Events are missing; the lobby was asked to tell them, and what comes before its answer does not count."""
    over: bool = False
    """Whether the end of ``hand`` was passed on."""
    players: frozenset[str] = frozenset()
    away: frozenset[str] = frozenset()
    """Of ``players``: who is not there."""


class EmbeddedLobby(LobbyAdapter):
    """One account at an embedded lobby."""

    name: ClassVar[str] = "embedded"
    kit: ClassVar[str] = "bothost.testing.embedded_kit:KIT"
    capabilities: ClassVar[Capabilities] = Capabilities(
        games=("*",),
        tables_per_connection=None,
        connections_per_identity=1,
        acks_moves=True,
        rejects_illegal="error",
        sends_turn=True,
        sends_legal_actions=False,
        takes_composites=False,
        clock="bank_and_step",
        resume="identity",
        resume_delivers="snapshot",
        heartbeat="app",
        messages_per_second=None,  # answers to its questions are not counted; what else we say is far below its limit
        on_rate_limit="error",
        plays_for_us=True,
    )
    Options: ClassVar[type[msgspec.Struct]] = EmbeddedOptions

    def __init__(self, account: Account, options: Any) -> None:
        super().__init__(account, options)
        self._conn = 0
        self._open = False
        """Whether the socket ``_conn`` stands or is being opened."""
        self._ready = False
        """Whether the lobby said welcome on it."""
        self._session = ""
        self._tables: dict[str, _Table] = {}
        self._seeks: set[str] = set()
        self._known: tuple[str, ...] = ()
        self._last_error: wire.Error | None = None
        self._superseded = False

    def feed(self, item: m.Input) -> list[m.Output]:
        """Take one input or command; return effects and events in the order in which they must happen."""
        if type(item) is m.Frame:
            if item.conn != self._conn or not self._open:
                return []
            try:
                frame = wire.decode_server(item.data)
            except wire.BadFrame:
                return [unknown(item.data)]
            if type(frame) is wire.Events:
                return self._events(frame, item.data)
            return self._frame(frame, item.data)
        if type(item) is m.Act:
            return self._act(item)
        return self._other(item)

    # ------------------------------------------------------------------------------------------------- the hot path

    def _events(self, frame: wire.Events, raw: str | bytes) -> list[m.Output]:
        table = self._tables.get(frame.table)
        if table is None:
            return [unknown(raw)]
        count = len(frame.events)
        if frame.seq != table.seq or frame.hand != table.hand:
            if table.lost or (frame.hand == table.hand and frame.seq + count <= table.seq):
                return []  # asked about already, or sent twice
            table.lost = True
            return [self._sync(frame.table, table)]
        table.lost = False
        out: list[m.Output] = []
        if count:
            table.seq += count
            out.append(m.Delta(frame.table, frame.hand, frame.seq, frame.events))
        if frame.done is not None:
            out.append(m.MoveAcknowledged(frame.table, frame.done))
        ask = frame.ask
        if ask is not None:
            out.append(
                m.ActionRequest(
                    frame.table, frame.hand, ask.id, ask.grant_ms, ask.bank_ms, frame.seq + count, None, raw
                )
            )
        return out

    def _act(self, act: m.Act) -> list[m.Output]:
        if not self._ready:
            return []  # the question comes again with the snapshot
        if len(act.actions) != 1:
            raise ValueError(f"the embedded lobby takes one action at a time, not {len(act.actions)}")
        return [self._send(wire.Act(act.table, act.request_id, act.actions[0]))]

    def _send(self, frame: wire.ClientFrame) -> m.SendFrame:
        return m.SendFrame(self._conn, wire.encode(frame).decode())

    def _sync(self, name: str, table: _Table) -> m.SendFrame:
        return self._send(wire.Sync(name, table.hand, table.seq))

    # --------------------------------------------------------------------------------------------- sockets and timers

    def _other(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.SocketOpened():
                return self._opened(item)
            case m.SocketClosed() | m.SocketFailed():
                return self._lost(item)
            case m.TimerFired():
                return self._timer(item)
            case m.Authenticate() | m.Resume():
                return self._connect(item)
            case m.Close():
                return self._close()
            case _:
                return self._command(item)

    def _connect(self, command: m.Authenticate | m.Resume) -> list[m.Output]:
        session = command.memo.get("session", "")
        if isinstance(session, str) and session and not self._session:
            self._session = session
        self._known = command.known if isinstance(command, m.Resume) else ()
        out: list[m.Output] = []
        if self._open:
            out.append(m.CloseSocket(self._conn))
        self._conn += 1
        self._open, self._ready, self._superseded, self._last_error = True, False, False, None
        out.append(m.OpenSocket(self._conn, _endpoint(self.account.url)))
        out.append(m.SetTimer(HELLO, self.options.hello_timeout_s))
        return out

    def _opened(self, item: m.SocketOpened) -> list[m.Output]:
        if item.conn != self._conn or not self._open:
            return []
        known = {name: wire.Known(t.hand, t.seq) for name, t in self._tables.items()}
        known.update({name: wire.Known() for name in self._known if name not in known})
        hello = wire.Hello(wire.VERSION, self.account.token, self.account.user_agent, self._session, known)
        return [self._send(hello)]

    def _timer(self, item: m.TimerFired) -> list[m.Output]:
        if item.name != HELLO or self._ready or not self._open:
            return []
        out: list[m.Output] = [m.CloseSocket(self._conn, 1000, "no welcome")]
        return out + self._disconnect("the lobby does not answer our hello")

    def _lost(self, item: m.SocketClosed | m.SocketFailed) -> list[m.Output]:
        if item.conn != self._conn or not self._open:
            return []
        error = self._last_error
        if isinstance(item, m.SocketFailed):
            if item.status in (401, 403):
                return self._disconnect_with(m.AuthFailed(f"HTTP {item.status}: {item.reason}"))
            where = f"HTTP {item.status}" if item.status else "no connection"
            return self._disconnect(f"{where}: {item.reason}")
        if item.code == wire.CLOSE_AUTH or (error is not None and error.code == "bad_token"):
            return self._disconnect_with(m.AuthFailed(error.message if error is not None else item.reason))
        if item.code == wire.CLOSE_SUPERSEDED or self._superseded:
            return self._disconnect_with(*([] if self._superseded else [m.Superseded(item.reason)]))
        retry_after_s = 5.0 if item.code in (wire.CLOSE_RATE, wire.CLOSE_FULL) else None
        reason = f"closed with {item.code}" + (f": {item.reason}" if item.reason else "")
        if error is not None and not self._ready:
            reason = f"{error.message} ({error.code})"
        return self._disconnect(reason, retry_after_s)

    def _disconnect(self, reason: str, retry_after_s: float | None = None) -> list[m.Output]:
        return self._disconnect_with(m.Disconnected(reason, retry_after_s))

    def _disconnect_with(self, *events: m.Output) -> list[m.Output]:
        """The connection is over: waiting seats are lost with it, tables live on in the lobby."""
        self._open = self._ready = False
        out: list[m.Output] = [m.CancelTimer(HELLO)]
        out += [m.SeekEnded(seek, "disconnected") for seek in sorted(self._seeks)]
        self._seeks.clear()
        out += events
        return out

    def _close(self) -> list[m.Output]:
        if not self._open:
            return []
        return [m.CloseSocket(self._conn, 1000, "bye"), *self._disconnect_with()]

    # ------------------------------------------------------------------------------------------------------ commands

    def _command(self, item: m.Input) -> list[m.Output]:
        """Commands that need the session."""
        if not self._ready:
            if isinstance(item, m.Seek | m.Create | m.Join | m.Accept):
                return [m.SeekEnded(item.seek, "not connected")]
            return []
        match item:
            case m.Seek():
                self._seeks.add(item.seek)
                return [self._send(wire.Seek(item.seek, item.wish.game, item.wish.rules, item.wish.attributes))]
            case m.Create():
                self._seeks.add(item.seek)
                attributes = dict(item.wish.attributes)
                password = str(attributes.pop("password", ""))
                return [self._send(wire.Create(item.seek, item.wish.game, item.wish.rules, attributes, password))]
            case m.Join():
                self._seeks.add(item.seek)
                return [self._send(wire.Join(item.seek, item.table, str(item.attributes.get("password", ""))))]
            case m.Resync():
                table = self._tables.get(item.table)
                return [self._sync(item.table, table)] if table is not None else []
            case _:
                frame = _plain_command(item)
                return [] if frame is None else [self._send(frame)]

    # -------------------------------------------------------------------------------------------------------- frames

    def _frame(self, frame: wire.ServerMessage, raw: str | bytes) -> list[m.Output]:
        match frame:
            case wire.Welcome():
                return self._welcome(frame)
            case wire.Pong():
                return [m.Alive()]
            case wire.Superseded():
                self._superseded = True
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
                return [m.Invitation(frame.invitation, _info(frame.info), frame.expires_ms / 1000.0)]
            case wire.Seated():
                return self._seated(frame)
            case _:
                table = self._tables.get(frame.table)
                return self._at_table(frame, table, raw) if table is not None else self._elsewhere(frame, raw)

    def _welcome(self, frame: wire.Welcome) -> list[m.Output]:
        self._ready = True
        out: list[m.Output] = [m.CancelTimer(HELLO)]
        if frame.session != self._session:
            out.append(m.Remember({"session": frame.session}))
        resumed, self._session = frame.resumed, frame.session
        out.append(m.Connected(frame.player, resumed, frame.player))
        return out

    def _error(self, frame: wire.Error) -> list[m.Output]:
        self._last_error = frame
        text = f"{frame.message} ({frame.code})"
        out: list[m.Output] = []
        if frame.code == "rate_limited":
            out.append(m.Throttled(max(frame.retry_ms, 100) / 1000.0))
        if frame.seek in self._seeks and frame.code not in ("seek_exists", "unknown_seek"):
            self._seeks.discard(frame.seek)
            out.append(m.SeekEnded(frame.seek, text))
        if out or frame.seek:
            return out
        table = self._tables.get(frame.table)
        if frame.code == "unknown_table" and table is not None:
            del self._tables[frame.table]
            return [m.TableEnded(frame.table, "aborted", detail=text)]
        return [m.Notice(text, "error")]

    def _seated(self, frame: wire.Seated) -> list[m.Output]:
        self._seeks.discard(frame.seek)
        table = self._tables.setdefault(frame.table, _Table())
        table.lost = False
        players = _players(frame.players)
        attributes = dict(frame.attributes)
        seek = frame.seek or None
        news = [player for player in frame.players if not player.online or player.player in table.away]
        table.players = frozenset(player.player for player in frame.players)
        table.away = frozenset(player.player for player in frame.players if not player.online)
        return [
            m.Seated(frame.table, frame.game, frame.rules, frame.seat, players, attributes, seek),
            *(m.Presence(frame.table, player.seat, player.online) for player in news),
        ]

    def _elsewhere(self, frame: wire.ServerMessage, raw: str | bytes) -> list[m.Output]:
        """About a table that we do not hold: only its end is worth a word."""
        if isinstance(frame, wire.TableEnded):
            return [_table_ended(frame)] if frame.table in self._known else []
        return [unknown(raw)]

    def _at_table(self, frame: wire.ServerMessage, table: _Table, raw: str | bytes) -> list[m.Output]:
        match frame:
            case wire.HandStarted():
                table.hand, table.seq, table.lost, table.over = frame.hand, 0, False, False
                return [m.HandStarted(frame.table, frame.hand, frame.seat, _players(frame.players))]
            case wire.Snapshot():
                return self._snapshot(frame, table, raw)
            case wire.Rejected():
                out: list[m.Output] = [m.Rejected(frame.table, frame.id, f"{frame.reason}: {frame.message}")]
                if frame.ask is not None and not table.lost:
                    out.append(_request(frame.table, table, frame.ask, raw))
                return out
            case wire.Withdrawn():
                return [m.RequestWithdrawn(frame.table, frame.id, frame.reason)]
            case wire.ServerActed():
                return [m.ServerActedForUs(frame.table, frame.id, frame.action)]
            case wire.Resigned():
                return [m.ServerActedFor(frame.table, frame.hand, frame.seat)]
            case wire.Presence():
                who = table.players & {frame.player}
                table.away = table.away - who if frame.online else table.away | who
                return [m.Presence(frame.table, frame.seat, frame.online)]
            case wire.HandEnded():
                if table.hand == frame.hand:
                    if table.over or table.lost:
                        return []  # said before, or said again once we have its last events
                    table.over = True
                served = [m.ServerActedFor(frame.table, frame.hand, seat) for seat in frame.played_for]
                return [*served, m.HandEnded(frame.table, frame.hand, frame.scores, frame.reason)]
            case wire.TableEnded():
                del self._tables[frame.table]
                return [_table_ended(frame)]
            case _:
                return [unknown(raw)]

    def _snapshot(self, frame: wire.Snapshot, table: _Table, raw: str | bytes) -> list[m.Output]:
        table.hand, table.seq, table.lost, table.over = frame.hand, frame.seq, False, False
        out: list[m.Output] = [m.Snapshot(frame.table, frame.hand, frame.seat, {"seq": frame.seq, **frame.view})]
        if frame.ask is not None:
            out.append(_request(frame.table, table, frame.ask, raw))
        return out


def _plain_command(item: m.Input) -> wire.ClientFrame | None:
    """Commands that are one frame and change nothing here; None: the lobby needs no such word."""
    match item:
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
        case m.Ping():
            return wire.Ping()
        case _:
            return None  # Ready, Start: its tables start by themselves


def _request(name: str, table: _Table, ask: wire.Ask, raw: str | bytes) -> m.ActionRequest:
    return m.ActionRequest(name, table.hand, ask.id, ask.grant_ms, ask.bank_ms, table.seq, None, raw)


def _table_ended(frame: wire.TableEnded) -> m.TableEnded:
    return m.TableEnded(frame.table, frame.reason, frame.scores, None, frame.detail)


def _players(players: tuple[wire.PlayerInfo, ...]) -> tuple[m.PlayerInfo, ...]:
    return tuple(m.PlayerInfo(p.player, p.seat, p.player, True if p.robot else None) for p in players)


def _info(info: wire.TableInfo) -> m.TableInfo:
    return m.TableInfo(info.table, info.game, info.rules, dict(info.attributes), info.free)


def _endpoint(url: str) -> str:
    """A lobby may be named without its path."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path="/ws")) if parts.path in ("", "/") else url
