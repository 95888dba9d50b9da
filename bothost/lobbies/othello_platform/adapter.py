"""The adapter of othello_platform: Othello by matchmaking, in rooms, or against the lobby's own player.

What is special about this lobby, and where it is handled:

- A pass has no message (``position``).
- Login tokens are valid for 15 minutes (``rest``).
- Two players who each open a room would wait for ever (``rooms``).
- An error names no request, so we assume that it is about the last move that we sent (``game``).
- After a lost connection there are 30 s to send ``reconnect`` with the game's id. A new process only knows the id from
  the memo (``sync``).
"""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities
from bothost.lobbies.frames import BadFrame
from bothost.lobbies.one_table import OneTableLobby, TableCommand
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.game import Game
from bothost.lobbies.othello_platform.options import (
    AUTH,
    LOOK,
    QUEUE,
    ROOM,
    TOKEN,
    OthelloPlatformAttributes,
    OthelloPlatformOptions,
)
from bothost.lobbies.othello_platform.rest import AUTH_PURPOSES
from bothost.lobbies.othello_platform.rooms import WaitingRoom, public, table_info
from bothost.lobbies.othello_platform.seeking import Seeker
from bothost.lobbies.othello_platform.session import Session


class OthelloPlatform(OneTableLobby):
    """One account: a session, a seek, and the room or the game where the player sits."""

    name = "othello_platform"
    kit = "bothost.testing.kits:OTHELLO_PLATFORM"
    capabilities = Capabilities(
        games=("othello",),
        tables_per_connection=1,
        acks_moves=True,
        rejects_illegal="error",
        sends_turn=True,
        clock="per_move",
        resume="game_id",
        resume_delivers="snapshot",
        heartbeat="app",
        messages_per_second=20.0,
        on_rate_limit="close",
    )
    Options = OthelloPlatformOptions
    Attributes = OthelloPlatformAttributes
    decode = wire.decode

    options: OthelloPlatformOptions
    _session: Session
    _table: WaitingRoom | Game | None

    def __init__(self, account: Account, options: OthelloPlatformOptions) -> None:
        super().__init__(account, options)
        self._session = Session(account, options, self._trouble)
        self._seeker = Seeker(self._session, account, options)

    def feed(self, item: m.Input) -> list[m.Output]:
        if isinstance(item, m.Authenticate | m.Resume) and not isinstance(self._table, Game):
            self._table = Game.remembered(self._session, item.memo) or self._table
        return super().feed(item)

    def _frame(self, frame: wire.Body, raw: str | bytes) -> list[m.Output]:
        match frame:
            case wire.AuthOk():
                return self._auth_ok(frame)
            case wire.Error():
                return self._error(frame)
            case _ if not self._session.ready:
                return []
            case wire.Pong():
                return [m.Alive()]
            case wire.RoomState():
                return self._room_state(frame)
            case wire.GameStart():
                return self._game_start(frame, raw)
            case wire.Moved() | wire.StateSync() | wire.GameOver():
                return self._game_frame(frame, raw)
            case wire.MatchTimeout():
                return self._seeker.queue_ended("no opponent was found")
            case wire.ServerShutdown():
                return [m.Notice("the lobby is shutting down", "warning")]
        return []

    def _timer(self, name: str) -> list[m.Output]:
        table = self._table
        if name == TOKEN:
            self._session.rest.age()
        elif name == AUTH:
            return self._session.timed_out()
        elif not self._session.ready:
            return []
        elif name == QUEUE:
            return self._seeker.queue_timed_out()
        elif isinstance(table, Game):
            return table.timer(name)
        elif name == ROOM and table is not None:
            return table.leave("left", "no game started")
        elif name == LOOK and table is not None:
            return table.look()
        return []

    # ------------------------------------------------------------------------------------------------------- session

    def _auth_ok(self, frame: wire.AuthOk) -> list[m.Output]:
        if self._session.ready:
            return []
        table = self._table
        out = self._session.welcome(frame, back=isinstance(table, Game))
        if isinstance(table, Game):
            return [*out, table.seated(), *table.resync()]
        return out + (table.enter_again() if table is not None else [])

    def _trouble(self, reason: str) -> list[m.Output]:
        """End the seek. Rooms and games survive a lost connection."""
        lost = self._table.lost() if isinstance(self._table, Game) and not self._session.ready else []
        return [*lost, *self._seeker.end(reason)]

    def _answered(self, item: m.HttpResult) -> list[m.Output]:
        rest, table = self._session.rest, self._table
        call = rest.take(item)
        if call is None:
            return []
        if call.purpose in AUTH_PURPOSES:
            return self._session.logged_in(call, item)
        if item.status == 401 and not call.again:
            return rest.with_fresh_token(call)
        if call.purpose == "quit":
            return []
        if call.purpose not in ("tables", "look"):
            return self._seeker.answered(call, item)
        try:
            rooms = wire.room_list(item.body) if item.status == 200 else []
        except BadFrame as error:
            notice = m.Notice(f"rooms: {error}", "warning")
            return [notice, m.Tables(())] if call.purpose == "tables" else [notice]
        if call.purpose == "tables":
            return [m.Tables(tuple(table_info(room) for room in rooms if room.status == "waiting"))]
        return table.compare(rooms) if isinstance(table, WaitingRoom) and table.id == call.about else []

    # ------------------------------------------------------------------------------------------------------ commands

    def _seek(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]:
        if self._seeker.seek is not None or self._table is not None:
            return [m.SeekEnded(item.seek, "this lobby has one table at a time")]
        return self._seeker.begin(item)

    def _command(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.CancelSeek():
                return self._seeker.cancel(item)
            case m.ListTables():
                return [self._session.rest.list_rooms("tables")]
            case m.Ping():
                return [self._session.send_text('{"type":"ping"}')]
        return []  # the lobby has no invitations

    def _opened(self, item: m.SocketOpened) -> list[m.Output]:
        return self._session.opened(item)

    def _at_table(self, item: TableCommand) -> list[m.Output]:
        table = self._table
        match item:
            case m.Act() if isinstance(table, Game):
                return table.act(item)
            case m.Resync() if isinstance(table, Game):
                return table.resync()
            case m.Leave() if isinstance(table, Game):
                return [table.resign(), *table.end(m.TableEnded(table.name, "left"))]
            case m.Resign() if isinstance(table, Game):
                return [table.resign()]
            case m.Resync() if isinstance(table, WaitingRoom):
                return [table.ask()]
            case m.Leave() if isinstance(table, WaitingRoom):
                return table.leave("left")
            case m.Ready() if isinstance(table, WaitingRoom):
                return [table.ready()]
            case m.Start() if isinstance(table, WaitingRoom):
                return [table.start()]
        return []

    # ---------------------------------------------------------------------------------------------- rooms and games

    def _room_state(self, frame: wire.RoomState) -> list[m.Output]:
        mine = self._session.me in frame.ids
        table = self._table
        if not mine or isinstance(table, Game) or frame.room_id in self._session.rest.left:
            return []
        if frame.status != "waiting" or frame.game_id is not None:
            return []  # a game begins and ends with messages of its own
        if table is not None:
            return table.shown(frame) if table.id == frame.room_id else []
        self._table, out = self._seeker.entered(frame)
        return out

    def _game_start(self, frame: wire.GameStart, raw: str | bytes) -> list[m.Output]:
        if self._session.me not in frame.ids:
            return []
        out: list[m.Output] = []
        before = self._table
        if isinstance(before, Game):
            if before.id == frame.game_id:
                return []  # sent twice
            out += before.end(m.TableEnded(before.name, "aborted", detail="another game started"))
        room = before if isinstance(before, WaitingRoom) else None
        seek = self._seeker.take()
        number = room.id if room is not None else (seek.room if seek is not None else "")
        attributes = room.attributes if room is not None else public(seek.attributes if seek is not None else {})
        seat = frame.ids.index(self._session.me)
        name = f"room-{number}" if number else frame.game_id
        game = self._table = Game(self._session, frame.game_id, name, seat, attributes)
        out += [m.CancelTimer(timer) for timer in (ROOM, LOOK, QUEUE)]
        seek_id = seek.id if seek is not None else None
        return out + game.begin(frame, raw, seated=room is not None, seek=seek_id)

    def _game_frame(self, frame: wire.Moved | wire.StateSync | wire.GameOver, raw: str | bytes) -> list[m.Output]:
        game = self._table
        if not isinstance(game, Game) or game.id != frame.game_id:
            if not isinstance(frame, wire.GameOver):
                return []
            return [m.Notice(f"the lobby reports the end of an earlier game, {frame.game_id}: {frame.end_reason}")]
        match frame:
            case wire.Moved():
                return game.moved(frame, raw)
            case wire.StateSync():
                return game.state_sync(frame, raw)
            case wire.GameOver():
                return game.game_over(frame)

    def _error(self, frame: wire.Error) -> list[m.Output]:
        """Handle an error. It does not say what it is about, so we assume our last message."""
        text = f"{frame.code}: {frame.msg}"[:200]
        table = self._table
        if frame.code == "RATE_LIMITED":
            return self._session.throttled()
        if frame.code in ("INVALID_TOKEN", "AUTH_REQUIRED"):
            return self._session.token_refused(text)
        if isinstance(table, Game):
            if frame.code == "GAME_NOT_FOUND":
                return table.gone(text)
            if frame.code in ("ILLEGAL_MOVE", "NOT_YOUR_TURN", "VALIDATION_ERROR") and (out := table.rejected(text)):
                return out
        about_room = frame.code.startswith("ROOM_")
        if (about_room or frame.code == "VALIDATION_ERROR") and self._seeker.entering:
            return self._seeker.next_room(text)
        if about_room and isinstance(table, WaitingRoom):
            return table.end("aborted", text)
        return [m.Notice(text, "warning")]
