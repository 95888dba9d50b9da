"""The adapter of mailgyc/doudizhu: Dou Dizhu with calling and grabbing, over HTTP and a text websocket."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import RULES, uids_of
from bothost.lobbies.mailgyc.options import HELLO, REJOIN, MailgycAttributes, MailgycOptions
from bothost.lobbies.mailgyc.seeking import Seeker, believes_we_sit
from bothost.lobbies.mailgyc.session import REJOIN_S, Session
from bothost.lobbies.mailgyc.table import MailgycTable
from bothost.lobbies.one_table import OneTableLobby, TableCommand


class MailgycLobby(OneTableLobby):
    """One player. The account's name is the name at the lobby, which asks for no password."""

    name = "mailgyc"
    kit = "bothost.testing.kits:MAILGYC"
    capabilities = Capabilities(
        games=("doudizhu",),
        tables_per_connection=1,
        acks_moves=True,
        rejects_illegal="error",
        sends_turn=False,
        clock="per_move",
        resume="identity",
        resume_delivers="snapshot",
        heartbeat="app",
        needs_secret=False,
    )
    login_registers = True
    Options = MailgycOptions
    Attributes = MailgycAttributes
    decode = wire.decode

    options: MailgycOptions
    _session: Session
    _table: MailgycTable | None

    def __init__(self, account: Account, options: MailgycOptions) -> None:
        super().__init__(account, options)
        self._session = Session(account, options, self._session_ended)
        self._seeker = Seeker(self._session, options)
        self._listing = False

    def _opened(self, item: m.SocketOpened) -> list[m.Output]:
        return self._session.opened(item, self._level_of(self._session.room))

    def _answered(self, item: m.HttpResult) -> list[m.Output]:
        return self._session.logged_in(item)

    def _command(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.CancelSeek():
                return self._seeker.cancel(item)
            case m.ListTables():
                self._listing = True
                return [self._session.send(wire.ROOMS)]
            case m.Ping():
                return [self._session.send_text(wire.PING)]
        return []

    def _welcome(self, *, back: bool, keep: str = "") -> list[m.Output]:
        """Report the login, and the end of all tables except ``keep``."""
        return [*self._session.welcome(back=back), *self._ended_before(keep=keep)]

    def _at_table(self, item: TableCommand) -> list[m.Output]:
        table = self._table
        assert table is not None
        match item:
            case m.Act():
                return table.act(item)
            case m.Leave():
                return self._leave()
            case m.Ready():
                return table.say_ready()
            case m.Resync():
                return table.resync()
        return []

    def _seek(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]:
        if isinstance(item, m.Create):
            return [m.SeekEnded(item.seek, "this lobby opens rooms itself: seek one instead")]
        if isinstance(item, m.Join):
            item = m.Seek(item.seek, m.Wish("doudizhu", {}, {**item.attributes, "room": item.table}))
        problem = self._seeker.problem(item.wish)
        if problem:
            return [m.SeekEnded(item.seek, problem)]
        return self._seeker.begin(item, self._leave() if self._table is not None else [])

    def _leave(self) -> list[m.Output]:
        self._table = None
        return self._seeker.go_away()

    def _timer(self, name: str) -> list[m.Output]:
        session = self._session
        if name == HELLO:
            return session.timed_out()
        if name == REJOIN and session.stage == "returning":
            return session.rejoin(self._level_of(session.room))
        if not session.ready:
            return []
        if name == REJOIN:
            return self._seeker.ask_again()
        return [] if self._table is None else self._table.timer(name)

    # ------------------------------------------------------------------------------------------------------ session

    def _level_of(self, room: int) -> int:
        """The level of a room that keeps a seat for us."""
        if self._table is not None and self._table.room == room:
            return self._table.level
        level = self._memo.get("level") if self._memo.get("table") == str(room) else None
        return level if isinstance(level, int) else self.options.level

    def _session_ended(self) -> list[m.Output]:
        self._listing = False
        if self._table is not None:
            self._table.asking.reset()
        return self._seeker.end()

    def _returned(self, frame: wire.Body) -> list[m.Output]:
        """Handle the answer to our return. Until it comes, all other frames are ignored."""
        session = self._session
        if isinstance(frame, wire.Failure):
            session.answered = True
            if believes_we_sit(frame.reason):
                return [m.SetTimer(REJOIN, REJOIN_S)]
            text = f"the lobby refuses our return to the table: {frame.reason}"
            return [*self._without_seat(), m.Notice(text, "warning")]
        if isinstance(frame, wire.Pong) and not session.answered:  # the lobby removed us when a hand ended
            return self._without_seat()
        if not isinstance(frame, wire.Joined) or session.uid not in uids_of(frame.players):
            return []
        if frame.room.id != session.room:  # the room is gone, and the lobby gave us a seat elsewhere
            return self._without_seat()
        level = self._level_of(session.room)
        out = self._welcome(back=True, keep=str(session.room))
        if self._table is None:
            self._table = self._new_table(frame, level)
        return out + self._table.come_back(frame, self._memo)

    def _without_seat(self) -> list[m.Output]:
        """Report the login, and that we have lost our seat. The lobby must forget it before it gives us another."""
        self._session.room = -1
        return [*self._welcome(back=True), *self._seeker.go_away()]

    def _new_table(self, frame: wire.Joined, level: int) -> MailgycTable:
        return MailgycTable(self._session, self.options, self._seeker.go_away, frame, level)

    # ------------------------------------------------------------------------------------------------------- frames

    def _frame(self, frame: wire.Body, raw: str | bytes) -> list[m.Output]:
        if self._session.stage == "returning":
            return self._returned(frame)
        out = [] if self._session.ready else self._welcome(back=False)
        table = self._table
        match frame:
            case wire.Pong():
                return [*out, m.Alive()]
            case wire.Rooms():
                return out + self._rooms(frame)
            case wire.Joined():
                return out + self._joined(frame)
            case wire.Failure():
                refused = None if table is None else table.refused(frame.reason)
                return out + (self._seeker.refused(frame.reason) if refused is None else refused)
        return out if table is None else out + table.frame(frame, raw)

    def _rooms(self, frame: wire.Rooms) -> list[m.Output]:
        self._session.levels = frozenset(room.level for room in frame.rooms) or self._session.levels
        if not self._listing:
            return self._seeker.gone() if self._seeker.leaving else []
        self._listing = False
        levels = [
            m.TableInfo(f"level-{room.level}", "doudizhu", RULES, {"level": room.level, "players": room.number}, 3)
            for room in frame.rooms
        ]
        return [m.Tables(tuple(levels))]

    def _joined(self, frame: wire.Joined) -> list[m.Output]:
        if self._table is not None and self._table.room == frame.room.id:
            skip = self._seeker.leaving or self._session.uid not in uids_of(frame.players)
            return [] if skip else self._table.shown(frame)
        seek, out = self._seeker.seated(frame)
        if seek is None:
            return out
        self._table = self._new_table(frame, self._seeker.level)
        self._seeker.found()
        return self._table.enter(frame, seek)
