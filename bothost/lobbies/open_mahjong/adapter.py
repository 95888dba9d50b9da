"""The adapter of xelnagamiao/open_mahjong_unity: Chinese Official mahjong with flowers, over a text websocket."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities
from bothost.lobbies.one_table import OneTableLobby, TableCommand
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.chat import Chat
from bothost.lobbies.open_mahjong.game import Game
from bothost.lobbies.open_mahjong.options import (
    BEGIN,
    CHAT,
    GAME,
    HELLO,
    LOOK,
    SETTLE,
    WAIT,
    OpenMahjongAttributes,
    OpenMahjongOptions,
)
from bothost.lobbies.open_mahjong.rooms import WaitingRoom, is_ours
from bothost.lobbies.open_mahjong.seeking import Seeker, table_info
from bothost.lobbies.open_mahjong.session import Session


class OpenMahjong(OneTableLobby):
    """One player: a session, a seek, and the room or the game where the player sits."""

    name = "open_mahjong"
    kit = "bothost.testing.kits:OPEN_MAHJONG"
    capabilities = Capabilities(
        games=(GAME,),
        tables_per_connection=1,
        acks_moves=True,
        rejects_illegal="silence",
        sends_turn=True,
        sends_legal_actions=True,
        clock="bank_and_step",
        resume="identity",
        resume_delivers="snapshot",
        heartbeat="app",
        plays_for_us=True,
        needs_secret=False,  # guests need none
        chat=True,  # with the option chat_url
    )
    login_registers = True
    Options = OpenMahjongOptions
    Attributes = OpenMahjongAttributes
    decode = wire.decode

    options: OpenMahjongOptions
    _session: Session
    _table: WaitingRoom | Game | None

    def __init__(self, account: Account, options: OpenMahjongOptions) -> None:
        super().__init__(account, options)
        self._session = Session(account, options, self._session_ended)
        self._seeker = Seeker(self._session, options)
        self._chat = Chat(account, options)
        self._listing = False
        self._shunned: set[int] = set()
        """Hosts who removed us from their rooms: we choose no room of theirs."""

    def feed(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.Frame() | m.SocketOpened() | m.SocketClosed() | m.SocketFailed() if self._chat.hears(item.conn):
                return self._chat.feed(item)
        out = super().feed(item)
        return out if self._table is None else out + self._chat.at(self._table.name)

    def _seek(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]:
        if self._table is not None:
            return [m.SeekEnded(item.seek, "this lobby has one table at a time")]
        return self._seeker.begin(item)

    def _command(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.CancelSeek():
                return self._seeker.cancel(item)
            case m.Say():
                return self._chat.say(item)
            case m.ListTables():
                self._listing = True
                return [self._session.send("room/get_room_list")]
            case m.Ping():
                return [self._session.ping()]
        return []  # the lobby has no invitations

    def _opened(self, item: m.SocketOpened) -> list[m.Output]:
        return self._session.opened(item)

    def _welcome(self, *, back: bool, keep: str = "") -> list[m.Output]:
        """Report the login, and the end of all tables except ``keep``."""
        return [*self._session.welcome(back=back), *self._ended_before(keep=keep)]

    def _at_table(self, item: TableCommand) -> list[m.Output]:
        table = self._table
        match item:
            case m.Act() if isinstance(table, Game):
                return table.act(item)
            case m.Leave() if isinstance(table, Game):
                return self._leave_game(table)
            case m.Resync() if isinstance(table, Game):
                return table.repeat()
            case m.Leave() if isinstance(table, WaitingRoom):
                return table.leave("left")
            case m.Resync() if isinstance(table, WaitingRoom):
                return [table.seated()]
            case m.Ready() | m.Start() if isinstance(table, WaitingRoom):
                return table.begin()
        return []  # the lobby has no resigning

    def _leave_game(self, game: Game) -> list[m.Output]:
        """Leave a running game. The lobby has no command for that, so disconnect; it plays for us."""
        self._table, self._session.abandoned = None, True
        return [m.TableEnded(game.name, "left"), *self._session.reconnect("we left a running game")]

    def _timer(self, name: str) -> list[m.Output]:
        table = self._table
        if name == HELLO:
            return self._session.timed_out()
        if name == CHAT:
            return self._chat.timed_out()
        if name == SETTLE:
            return self._welcome(back=bool(self._known)) if self._session.stage == "settling" else []
        if not self._session.ready or table is None:
            return []
        if isinstance(table, Game):
            return table.timer(name)
        if name == WAIT:
            return table.leave("aborted", "no game begins")
        return table.remind() if name == BEGIN else table.look() if name == LOOK else []

    # ------------------------------------------------------------------------------------------------------ session

    def _session_ended(self) -> list[m.Output]:
        """End the seek. Rooms and queues drop a player who disconnects; a game does not."""
        self._listing = False
        if isinstance(self._table, Game):
            self._table.asking.open = None
        return [*self._seeker.lost(), *self._chat.close()]

    # ------------------------------------------------------------------------------------------------------- frames

    def _frame(self, frame: wire.Body, raw: str | bytes) -> list[m.Output]:
        match frame:
            case wire.Pong():
                return [m.Alive()]
            case wire.Login():
                out = self._session.logged_in(frame)
                if not out or frame.login_info is None or self._session.stage != "settling":
                    return out  # repeated, or refused
                chat = self._chat.begin(frame.login_info)
                if self.options.tourist:  # guests are forgotten with their connection
                    out = self._welcome(back=False)
                return [*out, *chat]
            case wire.Popup():
                return self._session.popup(frame)
            case wire.Tips():
                return self._tips(frame)
            case wire.GameInfo():
                return self._game_start(frame)
        if not self._session.ready:
            return []
        if isinstance(self._table, Game) and not isinstance(frame, wire.RoomList):
            return self._table.frame(frame, raw)
        return self._room_frame(frame)

    def _room_frame(self, frame: wire.Body) -> list[m.Output]:
        match frame:
            case wire.RoomShown(room_info=info) if frame.success and info is not None:
                return self._room_shown(info)
            case wire.RoomShown():
                return self._tips(wire.Tips(frame.success, frame.message))
            case wire.RoomJoined(success=False):
                return self._tips(wire.Tips(False, frame.message))
            case wire.RoomJoined() if self._table is None and self._seeker.entering:
                return self._session.deaf()  # the lobby shows the room to all who sit there, and then answers
            case wire.RoomLeft() if isinstance(self._table, WaitingRoom):  # the answer to our leaving comes without one
                self._shunned.add(self._table.info.host_user_id)
                return self._table.removed()
            case wire.RoomList():
                return self._rooms(frame.rooms)
        return []

    def _rooms(self, rooms: tuple[wire.Room, ...]) -> list[m.Output]:
        out: list[m.Output] = []
        if self._listing:
            self._listing = False
            out.append(m.Tables(tuple(table_info(room) for room in rooms if is_ours(room))))
        rooms = tuple(room for room in rooms if room.host_user_id not in self._shunned)
        if isinstance(self._table, WaitingRoom):
            return out + self._table.compare(rooms)
        return out + self._seeker.choose(rooms)

    def _room_shown(self, info: wire.Room) -> list[m.Output]:
        if isinstance(self._table, WaitingRoom):
            return self._table.shown(info) if self._table.info.id == info.id else []
        if self._session.user not in info.player_list:
            return []
        self._table, out = self._seeker.entered(info)
        return out

    def _tips(self, frame: wire.Tips) -> list[m.Output]:
        """Handle a message for people. It does not say what it answers, so we ask for one thing at a time."""
        if self._session.stage == "login":
            return [] if frame.success else self._session.refuse(frame.message)
        if frame.success:
            return []
        if self._session.stage == "returning":
            return [
                *self._welcome(back=True),
                m.Notice(f"the lobby refuses our return to the game: {frame.message}", "warning"),
            ]
        return self._seeker.refused(frame.message) or [m.Notice(f"the lobby says: {frame.message}", "warning")]

    def _game_start(self, info: wire.GameInfo) -> list[m.Output]:
        """Handle the whole position: a hand begins, or we have returned."""
        if self._session.stage not in ("settling", "returning", "ready"):
            return []
        back, table = not self._session.ready, self._table
        out: list[m.Output] = []
        if isinstance(table, Game) and table.id == info.gamestate_id:
            game, new = table, False
        else:
            room = table if isinstance(table, WaitingRoom) else None
            game, new = Game(self._session, self.options, info, self._memo, room), room is None
            self._session.abandoned = False
            if isinstance(table, Game) and not back:
                out.append(m.TableEnded(table.name, "aborted", detail="the lobby started another game"))
        if back:
            out += self._welcome(back=True, keep=game.name)
        self._table = game
        seek = self._seeker.take() if back or new else None
        return out + game.start(info, self._memo, back=back, seated=back or new, seek=seek)
