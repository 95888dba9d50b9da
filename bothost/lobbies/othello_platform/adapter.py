"""The adapter of othello-platform: Othello by matchmaking, rooms, or against the lobby's own player.

What is particular to this lobby, and who takes care of it: a pass has no message (``othello_fold``); tokens live a
quarter of an hour (``othello_rest``); an error names no request, so that it is taken for the move that is out; whoever
loses a connection has 30 s to say ``reconnect`` with the game's id, which nothing else tells a fresh process; and the
late end of an old connection starts those 30 s again, so that ``reconnect`` is repeated for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities
from bothost.lobbies.frames import unknown
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.game import OVER, SYNC, WINDOW, Game, players
from bothost.lobbies.othello_platform.position import START, Fold
from bothost.lobbies.othello_platform.rest import TOKEN, Call
from bothost.lobbies.othello_platform.seeking import Room, Seek, info, public
from bothost.lobbies.othello_platform.session import AUTH, OthelloPlatformOptions, OthelloSession

QUEUE, ROOM = "queue", "room"
QUEUE_S = 90.0
"""The lobby gives up after 60 s; should it forget to say so, we do."""


class OthelloPlatform(OthelloSession):
    """One account at an othello-platform server."""

    name: ClassVar[str] = "othello_platform"
    capabilities: ClassVar[Capabilities] = Capabilities(
        games=("othello",),
        tables_per_connection=1,
        connections_per_identity=1,
        acks_moves=True,
        rejects_illegal="error",
        sends_turn=True,
        sends_legal_actions=False,
        takes_composites=False,
        clock="per_move",
        resume="game_id",
        resume_delivers="snapshot",
        heartbeat="app",
        messages_per_second=20.0,
        on_rate_limit="close",
        plays_for_us=False,
    )
    Options: ClassVar[type[msgspec.Struct]] = OthelloPlatformOptions

    def __init__(self, account: Account, options: Any) -> None:
        super().__init__(account, options)
        self._me = ""
        self._seek: Seek | None = None
        self._room: Room | None = None
        self._game: Game | None = None
        self._left: deque[str] = deque(maxlen=64)
        """Rooms that we gave up: what is still said of them does not concern us."""
        self._frames: dict[type, Callable[[Any, str | bytes], list[m.Output]]] = {
            wire.AuthOk: self._auth_ok,
            wire.Pong: lambda frame, raw: [m.Alive()],
            wire.RoomState: self._room_state,
            wire.GameStart: self._game_start,
            wire.Moved: self._moved,
            wire.GameOver: self._game_over,
            wire.StateSync: self._state_sync,
            wire.MatchTimeout: self._match_timeout,
            wire.ServerShutdown: lambda frame, raw: [m.Notice("the lobby is shutting down", "warning")],
            wire.Error: self._error,
        }

    def feed(self, item: m.Input) -> list[m.Output]:
        """Take one input or command; return effects and events in the order in which they must happen."""
        match item:
            case m.Frame():
                return self._frame(item)
            case m.Act():
                return self._act(item)
            case m.SocketOpened():
                return self._opened(item)
            case m.SocketClosed() | m.SocketFailed():
                return self._lost(item)
            case m.HttpResult():
                return self._answered(item)
            case m.TimerFired():
                return self._timer(item.name)
            case m.Authenticate() | m.Resume():
                if self._game is None:
                    self._game = Game.remembered(item.memo)
                return self._log_on()
            case m.Close():
                return self._close()
            case _:
                return self._command(item)

    def _frame(self, item: m.Frame) -> list[m.Output]:
        if item.conn != self._conn or not self._open:
            return []
        try:
            frame = wire.decode(item.data)
        except wire.BadFrame:
            return [unknown(item.data)]
        handler = self._frames.get(type(frame))
        if handler is None:
            return []
        if not self._ready and not isinstance(frame, wire.AuthOk | wire.Error):
            return []  # what is told before we are known is not for us
        return handler(frame, item.data)

    # ---------------------------------------------------------------------------------------------------- the session

    def _auth_ok(self, frame: wire.AuthOk, raw: str | bytes) -> list[m.Output]:
        if self._ready:
            return []
        self._ready, self._me, self._bad_tokens = True, frame.user_id, 0
        game, room = self._game, self._room
        name = frame.username or self.account.name
        out: list[m.Output] = [m.CancelTimer(AUTH), m.Connected(frame.user_id, game is not None, name)]
        if game is not None:
            out.append(game.seated())
            out += self._reconnect(game)
        elif room is not None:  # the seat there is kept; whether it is, the answer tells
            room.said_ready = room.said_start = False
            out.append(m.Seated(room.table, "othello", {}, None, (), room.attributes))
            out += [self._say("room_join", roomId=wire.number(room.id)), m.SetTimer(ROOM, self.options.start_s)]
        return out

    def _reconnect(self, game: Game) -> list[m.Output]:
        """Ask for the position; nothing is decided before it has come."""
        return [self._say("reconnect", gameId=game.id, lastSeq=0), *game.ask_for_sync()]

    def _timer(self, name: str) -> list[m.Output]:
        game, room, seek = self._game, self._room, self._seek
        if name == TOKEN:
            self._rest.age()
        elif name == AUTH and self._open and not self._ready:
            return self._cut("the lobby does not answer our login")
        elif name == ROOM and room is not None and self._ready:
            return [*self._quit_room(room.id), *self._forget_room("left", "no game began")]
        elif name == QUEUE and seek is not None and seek.queued and self._ready:
            return [self._say("match_leave"), *self._end_seek("the lobby forgot us in its queue")]
        elif name == SYNC and game is not None and self._ready and not game.synced:
            if game.may_ask_again():
                return self._reconnect(game)
            if game.cut:
                return self._end_game(
                    m.TableEnded(game.table, "aborted", detail="the lobby does not tell the position")
                )
            game.cut = True
            return self._cut("the lobby does not tell the position")
        elif name == WINDOW and game is not None and self._ready:
            return [self._say("reconnect", gameId=game.id, lastSeq=0), *game.watch_window()]
        return []

    def _session_lost(self) -> list[m.Output]:
        """The queue forgets us; rooms and games do not."""
        if self._game is not None:
            self._game.lost()
        out: list[m.Output] = [m.CancelTimer(name) for name in (SYNC, WINDOW)]
        return out + self._end_seek("disconnected")

    # ----------------------------------------------------------------------------------------------------------- REST

    def _answered(self, item: m.HttpResult) -> list[m.Output]:
        call = self._rest.take(item)
        if call is None:
            return []
        if call.purpose in ("refresh", "login", "register"):
            return self._logged_in(call, item)
        if item.status == 401 and not call.again:
            return self._rest.with_fresh_token(call)
        if call.purpose == "tables":
            return self._listed(item)
        seek = self._seek
        if call.purpose == "quit" or seek is None or seek.id != call.about:
            return self._late(call, item)
        if item.status not in (200, 201):
            why = wire.problem(item.body) or f"HTTP {item.status}"
            return self._next_room(seek, why)
        try:
            if call.purpose == "create":
                return self._enter(seek, wire.room(item.body).id)
            if call.purpose == "rooms":
                return self._choose(seek, wire.room_list(item.body))
        except wire.BadFrame as error:
            return self._end_seek(f"{call.purpose}: {error}")
        return []  # entered: the room's state comes by itself

    def _late(self, call: Call, item: m.HttpResult) -> list[m.Output]:
        """The seek is over; a room that was made for it should not stand about."""
        if call.purpose == "create" and item.status in (200, 201):
            try:
                return self._quit_room(wire.room(item.body).id)
            except wire.BadFrame:
                return []
        return []

    def _listed(self, item: m.HttpResult) -> list[m.Output]:
        try:
            rooms = wire.room_list(item.body) if item.status == 200 else []
        except wire.BadFrame as error:
            return [m.Notice(f"rooms: {error}", "warning"), m.Tables(())]
        return [m.Tables(tuple(info(room) for room in rooms if room.status == "waiting"))]

    # ------------------------------------------------------------------------------------------------------- commands

    def _command(self, item: m.Input) -> list[m.Output]:
        """Commands that need the session."""
        if not self._ready:
            return [m.SeekEnded(item.seek, "not connected")] if isinstance(item, m.Seek | m.Create | m.Join) else []
        game, room = self._game, self._room
        match item:
            case m.Seek() | m.Create() | m.Join():
                return self._begin_seek(item)
            case m.CancelSeek():
                return self._cancel_seek(item)
            case m.ListTables():
                return [self._rest.call(Call("tables", "GET", "/rooms?status=waiting"))]
            case m.Ping():
                return [m.SendFrame(self._conn, '{"type":"ping"}')]
            case m.Resync() if game is not None and game.table == item.table:
                return self._reconnect(game)
            case m.Resync() if room is not None and room.table == item.table:
                return [self._say("room_join", roomId=wire.number(room.id))]
            case m.Resign() if game is not None and game.table == item.table:
                return [self._say("resign", gameId=game.id, color=wire.COLORS[game.seat])]
            case m.Leave() if game is not None and game.table == item.table:
                out: list[m.Output] = [self._say("resign", gameId=game.id, color=wire.COLORS[game.seat])]
                return out + self._end_game(m.TableEnded(game.table, "left"))
            case m.Leave() if room is not None and room.table == item.table:
                return [*self._quit_room(room.id), *self._forget_room("left", "")]
            case m.Ready() if room is not None and room.table == item.table:
                return [self._say("room_ready", roomId=wire.number(room.id), ready=True)]
            case m.Start() if room is not None and room.table == item.table:
                return [self._say("room_start", roomId=wire.number(room.id))]
            case _:
                return []  # Accept, Decline: nobody is invited here

    def _begin_seek(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]:
        if self._seek is not None or self._room is not None or self._game is not None:
            return [m.SeekEnded(item.seek, "this lobby has one table at a time")]
        if isinstance(item, m.Join):
            seek = self._seek = Seek(item.seek, item.attributes)
            return self._enter(seek, item.table.removeprefix("room-"))
        wish = item.wish
        if wish.game != "othello" or wish.rules not in ({}, {"preset": "standard"}):
            return [m.SeekEnded(item.seek, "this lobby plays othello by the standard rules only")]
        mode = "create" if isinstance(item, m.Create) else wish.attributes.get("mode", "match")
        seek = Seek(item.seek, wish.attributes)
        if mode in ("create", "ai"):
            self._seek = seek
            return [self._create(seek, ai=mode == "ai" or wish.attributes.get("mode") == "ai")]
        if mode == "room":
            self._seek = seek
            return [self._rest.call(Call("rooms", "GET", "/rooms?status=waiting", about=seek.id))]
        if mode != "match":
            return [m.SeekEnded(item.seek, f"mode is match, room, create or ai, not {mode!r}")]
        seek.queued = True
        self._seek = seek
        return [self._say("match_join"), m.SetTimer(QUEUE, QUEUE_S)]

    def _create(self, seek: Seek, *, ai: bool) -> m.HttpRequest:
        wanted = seek.attributes
        seek.created = True
        body: m.Json = {"name": str(wanted.get("name", self.account.name))[:40], "mode": "human_vs_human"}
        if ai:
            body |= {"mode": "human_vs_ai", "aiLevel": wanted.get("ai_level", 3)}
        elif wanted.get("password"):
            body["password"] = str(wanted["password"])
        return self._rest.call(Call("create", "POST", "/rooms", body, seek.id))

    def _choose(self, seek: Seek, rooms: list[wire.Room]) -> list[m.Output]:
        """Rooms that wait, by the wish; a few are tried, as some were left long ago."""
        name, password = seek.attributes.get("name"), bool(seek.attributes.get("password"))
        fitting = [
            room.id
            for room in rooms
            if room.status == "waiting" and room.mode == "human_vs_human" and room.has_password == password
            if name in (None, room.name) and room.id not in self._left
        ]
        seek.choices = fitting[:3]
        return self._next_room(seek, "")

    def _next_room(self, seek: Seek, why: str) -> list[m.Output]:
        """Another room; where none is left, one of our own."""
        if seek.choices:
            return self._enter(seek, seek.choices.pop(0))
        if seek.attributes.get("mode") == "room" and not seek.created:
            return [self._create(seek, ai=False)]
        return self._end_seek(why)

    def _enter(self, seek: Seek, room: str) -> list[m.Output]:
        seek.room = room
        if room in self._left:
            self._left.remove(room)
        if not room.isascii() or not room.isdigit():
            return self._end_seek(f"no such room: {room[:40]!r}")
        password = seek.attributes.get("password")
        if password:  # private rooms are entered by REST, which checks the password
            path = f"/rooms/{room}/join"
            return [self._rest.call(Call("enter", "POST", path, {"password": str(password)}, seek.id))]
        return [self._say("room_join", roomId=wire.number(room))]

    def _cancel_seek(self, item: m.CancelSeek) -> list[m.Output]:
        seek = self._seek
        if seek is None or seek.id != item.seek:
            return []
        out: list[m.Output] = [self._say("match_leave")] if seek.queued else []
        if seek.room:
            out += self._quit_room(seek.room)
        return out + self._end_seek("cancelled")

    def _end_seek(self, reason: str) -> list[m.Output]:
        seek, self._seek = self._seek, None
        return [] if seek is None else [m.CancelTimer(QUEUE), m.SeekEnded(seek.id, reason)]

    def _match_timeout(self, frame: wire.MatchTimeout, raw: str | bytes) -> list[m.Output]:
        queued = self._seek is not None and self._seek.queued
        return self._end_seek("nobody to play with was found") if queued else []

    # ---------------------------------------------------------------------------------------------------------- rooms

    def _quit_room(self, room: str) -> list[m.Output]:
        self._left.append(room)
        return [self._rest.call(Call("quit", "POST", f"/rooms/{room}/quit", {}, room))]

    def _forget_room(self, reason: Any, detail: str) -> list[m.Output]:
        room, self._room = self._room, None
        return [] if room is None else [m.CancelTimer(ROOM), m.TableEnded(room.table, reason, detail=detail)]

    def _room_state(self, frame: wire.RoomState, raw: str | bytes) -> list[m.Output]:
        seats = (frame.black_id, frame.white_id)
        if self._game is not None or self._me not in seats or frame.room_id in self._left:
            return []
        if frame.status != "waiting" or frame.game_id is not None:
            return []  # a game begins by a message of its own, and ends by one
        out: list[m.Output] = []
        room, seek = self._room, self._seek
        if room is not None and room.id != frame.room_id:
            return []
        opponent = seats[1] if seats[0] == self._me else seats[0]
        if room is None:
            if seek is not None and seek.room and seek.room != frame.room_id:
                return []
            attributes = seek.attributes if seek is not None else {}
            room = self._room = Room(frame.room_id, f"room-{frame.room_id}", public(attributes))
            out += [m.CancelTimer(QUEUE), m.SetTimer(ROOM, self.options.wait_s)]
            out.append(self._seated(room, frame, seek.id if seek is not None else None))
            self._seek = None
        if opponent != room.opponent:
            room.opponent, room.said_ready, room.said_start = opponent, False, False
            if opponent is not None:
                out.append(m.SetTimer(ROOM, self.options.start_s))
        return out + self._prepare(room, frame)

    def _seated(self, room: Room, frame: wire.RoomState, seek: str | None) -> m.Seated:
        return m.Seated(room.table, "othello", {}, None, players(frame), room.attributes, seek)

    def _prepare(self, room: Room, frame: wire.RoomState) -> list[m.Output]:
        """Say once that we are ready, and, as the owner, once that it may begin."""
        out: list[m.Output] = []
        mine = frame.black_ready if frame.black_id == self._me else frame.white_ready
        if room.opponent is not None and not mine and not room.said_ready:
            room.said_ready = True
            out.append(self._say("room_ready", roomId=wire.number(room.id), ready=True))
        both = frame.black_ready and frame.white_ready
        if both and frame.owner_id == self._me and not room.said_start:
            room.said_start = True
            out.append(self._say("room_start", roomId=wire.number(room.id)))
        elif not both:
            room.said_start = False
        return out

    # ---------------------------------------------------------------------------------------------------------- games

    def _game_start(self, frame: wire.GameStart, raw: str | bytes) -> list[m.Output]:
        if self._me not in (frame.black_id, frame.white_id):
            return []
        out: list[m.Output] = []
        if self._game is not None:
            if self._game.id == frame.game_id:
                return []  # told again
            out += self._end_game(m.TableEnded(self._game.table, "aborted", detail="another game began"))
        room, seek = self._room, self._seek
        self._room = self._seek = None
        number = room.id if room is not None else (seek.room if seek is not None else "")
        table = f"room-{number}" if number else frame.game_id
        attributes = room.attributes if room is not None else public(seek.attributes if seek is not None else {})
        game = self._game = Game(frame.game_id, table, 0 if frame.black_id == self._me else 1, attributes)
        game.players = players(frame)
        out += [m.CancelTimer(ROOM), m.CancelTimer(QUEUE), m.Remember(game.memo())]
        if room is None:
            out.append(game.seated(seek.id if seek is not None else None))
        if not game.begins_with(frame):  # told in the middle of it
            return out + self._reconnect(game)
        game.synced = True
        out.append(m.HandStarted(table, game.id, game.seat, game.players))
        out.append(m.Delta(table, game.id, 0, tuple(game.fold.observe(START))))
        return out + game.ask(frame.remaining_ms, raw)

    def _moved(self, frame: wire.Moved, raw: str | bytes) -> list[m.Output]:
        game = self._game
        if game is None or game.id != frame.game_id or not game.synced:
            return []  # of an old game, or in the snapshot that we wait for
        out = game.moved(frame, raw)
        if not game.synced or (frame.next_turn is not None and game.fold.turn != frame.next_turn):
            return out + self._reconnect(game)  # nobody can play on from what we were told: ask once more
        return out

    def _state_sync(self, frame: wire.StateSync, raw: str | bytes) -> list[m.Output]:
        game = self._game
        if game is None or game.id != frame.game_id:
            return []
        if self._me not in (frame.black_id, frame.white_id):
            return self._end_game(m.TableEnded(game.table, "aborted", detail="it is the game of others"))
        game.seat = 0 if frame.black_id == self._me else 1
        game.players = players(frame) or game.players
        if frame.status != "playing":
            return self._ended_unseen(game, frame)
        out = game.state_sync(frame, raw)
        return [m.SendFrame(self._conn, item) if isinstance(item, str) else item for item in out]

    def _ended_unseen(self, game: Game, frame: wire.StateSync) -> list[m.Output]:
        """The game ended while we were away; where the board says how, we know."""
        fold = Fold(game.seat)
        scores = fold.scores() if fold.replay(frame.moves) else None
        if scores is None:
            return self._end_game(m.TableEnded(game.table, "aborted", detail="it ended while we were away"))
        out: list[m.Output] = [m.Snapshot(game.table, game.id, game.seat, fold.view.to_json())]
        out.append(m.HandEnded(game.table, game.id, scores))
        return out + self._end_game(m.TableEnded(game.table, "normal", scores))

    def _game_over(self, frame: wire.GameOver, raw: str | bytes) -> list[m.Output]:
        game = self._game
        if game is None or game.id != frame.game_id:
            return [m.Notice(f"the end of an old game, {frame.game_id}: {frame.end_reason}")]
        scores = {"BLACK": (1.0, -1.0), "WHITE": (-1.0, 1.0), "DRAW": (0.0, 0.0)}.get(frame.result or "")
        reason = OVER.get(frame.end_reason, "normal") if scores is not None else "aborted"
        out: list[m.Output] = [m.HandEnded(game.table, game.id, scores, frame.end_reason)]
        return out + self._end_game(m.TableEnded(game.table, reason, scores, detail=frame.end_reason))

    def _end_game(self, ended: m.TableEnded) -> list[m.Output]:
        self._game = None
        return [m.CancelTimer(SYNC), m.CancelTimer(WINDOW), m.Remember(Game.FORGET), ended]

    def _act(self, act: m.Act) -> list[m.Output]:
        game = self._game
        if game is None or game.table != act.table or not self._ready:
            return []  # the question comes again with the connection
        if not game.synced:
            game.hold(act)
            return []
        if len(act.actions) != 1:
            raise ValueError(f"this lobby takes one move at a time, not {len(act.actions)}")
        text = game.act(act)
        return [] if text is None else [m.SendFrame(self._conn, text)]

    # --------------------------------------------------------------------------------------------------------- errors

    def _error(self, frame: wire.Error, raw: str | bytes) -> list[m.Output]:
        """Nothing says what an error is about: it is about what we asked for last."""
        text = f"{frame.code}: {frame.msg}"[:200]
        game, room, seek = self._game, self._room, self._seek
        if frame.code == "RATE_LIMITED":
            self._retry_after_s = 2.0
            return [m.Throttled(2.0)]
        if frame.code in ("INVALID_TOKEN", "AUTH_REQUIRED"):
            return self._token_refused(text)
        if frame.code == "GAME_NOT_FOUND" and game is not None:
            return self._end_game(m.TableEnded(game.table, "aborted", detail=text))
        if frame.code in ("ILLEGAL_MOVE", "NOT_YOUR_TURN", "VALIDATION_ERROR") and game is not None:
            rejected = game.rejected(text)
            if rejected is not None:
                return [rejected]
        if frame.code.startswith("ROOM_") or (frame.code == "VALIDATION_ERROR" and seek is not None and seek.room):
            if seek is not None and seek.room:
                return self._next_room(seek, text)
            if room is not None and frame.code.startswith("ROOM_"):
                return self._forget_room("aborted", text)
        return [m.Notice(text, "warning")]
