"""The adapter of mailgyc/doudizhu: Dou Dizhu with calling and grabbing, over HTTP and a text websocket."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities, LobbyAdapter
from bothost.lobbies.frames import BadFrame, ended_tables, unknown
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import RULES, uids_of
from bothost.lobbies.mailgyc.options import HELLO, REJOIN, MailgycOptions
from bothost.lobbies.mailgyc.seeking import Seeker, believes_we_sit
from bothost.lobbies.mailgyc.session import REJOIN_S, Session
from bothost.lobbies.mailgyc.table import MailgycTable


class MailgycLobby(LobbyAdapter):
    """One player. The account's name is the name at the lobby, which asks for no password."""

    name = "mailgyc"
    kit = "bothost.testing.fake_mailgyc.kit:KIT"
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

    options: MailgycOptions

    def __init__(self, account: Account, options: MailgycOptions) -> None:
        super().__init__(account, options)
        self._session = Session(account, options, self._session_ended)
        self._seeker = Seeker(self._session, options)
        self._table: MailgycTable | None = None
        self._listing = False
        self._known: tuple[str, ...] = ()
        self._memo: m.Json = {}

    def feed(self, item: m.Input) -> list[m.Output]:
        session = self._session
        match item:
            case m.Frame():
                out = self._frame(item)
            case m.Act():
                table = self._table
                out = table.act(item) if session.ready and table is not None and table.name == item.table else []
            case m.Ping():
                out = [session.send_text(wire.PING)] if session.ready else []
            case m.TimerFired():
                out = self._timer(item.name)
            case m.Authenticate() | m.Resume():
                self._known = item.known if isinstance(item, m.Resume) else ()
                self._memo = item.memo
                out = session.log_in()
            case m.HttpResult():
                out = session.logged_in(item)
            case m.SocketOpened():
                out = session.opened(item, self._level_of(session.room))
            case m.SocketClosed() | m.SocketFailed():
                out = session.lost(item)
            case m.Close():
                out = session.close()
            case _:
                out = self._command(item)
        if self._table is not None and self._table.over:
            self._table = None
        return out

    def _command(self, item: m.Input) -> list[m.Output]:
        table = self._table
        match item:
            case m.Seek() | m.Create() | m.Join() if not self._session.ready:
                return [m.SeekEnded(item.seek, "not connected")]
            case _ if not self._session.ready:
                return []
            case m.Seek():
                return self._seek(item)
            case m.Create():
                return [m.SeekEnded(item.seek, "this lobby opens rooms itself: seek one instead")]
            case m.Join():
                return self._seek(m.Seek(item.seek, m.Wish("doudizhu", {}, {**item.attributes, "room": item.table})))
            case m.CancelSeek():
                return self._seeker.cancel(item)
            case m.ListTables():
                self._listing = True
                return [self._session.send(wire.ROOMS)]
            case m.Leave() if table is not None and table.name == item.table:
                return self._leave()
            case m.Ready() if table is not None and table.name == item.table:
                return table.say_ready()
            case m.Resync() if table is not None and table.name == item.table:
                return table.resync()
        return []

    def _seek(self, seek: m.Seek) -> list[m.Output]:
        problem = self._seeker.problem(seek.wish)
        if problem:
            return [m.SeekEnded(seek.seek, problem)]
        return self._seeker.begin(seek, self._leave() if self._table is not None else [])

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

    def _welcome(self, *, back: bool, seat: bool = True) -> list[m.Output]:
        """Report the login, and the end of the tables that the lobby no longer names.

        ``seat``: whether the room that the login named keeps a seat for us.
        """
        if not seat:
            self._session.room = -1
        out = self._session.welcome(back=back)
        known, kept = {*self._known}, str(self._session.room)
        self._known = ()
        if self._table is not None:
            known.add(self._table.name)
            if self._table.name != kept:
                self._table = None
        return out + ended_tables(known, kept)

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
        out = self._welcome(back=True)
        if self._table is None:
            self._table = self._new_table(frame, level)
        return out + self._table.come_back(frame, self._memo)

    def _without_seat(self) -> list[m.Output]:
        """Report the login, and that we have lost our seat. The lobby must forget it before it gives us another."""
        return [*self._welcome(back=True, seat=False), *self._seeker.go_away()]

    def _new_table(self, frame: wire.Joined, level: int) -> MailgycTable:
        return MailgycTable(self._session, self.options, self._seeker.go_away, frame, level)

    # ------------------------------------------------------------------------------------------------------- frames

    def _frame(self, item: m.Frame) -> list[m.Output]:
        if not self._session.hears(item.conn):
            return []
        try:
            frame = wire.decode(item.data)
        except BadFrame:
            return [unknown(item.data)]
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
        return out if table is None else out + table.frame(frame, item.data)

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
