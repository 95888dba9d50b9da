"""The adapter of mailgyc/doudizhu: Dou Dizhu with calling and grabbing, over HTTP and a text websocket.

What this lobby leaves to its clients, and where it is dealt with:

- whose turn it is: the rules know (``hand``);
- which answer an error belongs to: to the move that waits for its echo, or else to the seat that we asked for;
- opponents who never move: after ``stall_s`` without a move the table is left;
- an unknown room seats us elsewhere: the room is compared with the one that was asked for, and left;
- a socket that comes back is deaf and dumb until it has named its room; what it missed is made up from frame 1006;
- a second socket of a player takes over without a word: the old one is closed, and time passes, before a new one is
  opened.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Capabilities
from bothost.lobbies.frames import unknown
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import RULES, MailgycHand, Mismatch, resumed, uids_of
from bothost.lobbies.mailgyc.session import AWAY, HELLO, READY, REJOIN, STALL, MailgycOptions, MailgycSession, Room

REJOIN_S = 1.0
"""Our room is named again after this time while the lobby still counts our last socket: about 6 s."""
LOOKS = 4
"""A table is looked at so often before it counts as stalled."""
AWAY_S = 2.0
"""Frames of a room that we left may still come for so long, where the lobby does not confirm that we left."""
MOST_MISMATCHES = 3
"""Contradictions within one hand after which the table is left."""


class MailgycLobby(MailgycSession):
    """One player. The account's name is the name at the lobby, which asks for no password."""

    name: ClassVar[str] = "mailgyc"
    capabilities: ClassVar[Capabilities] = Capabilities(
        games=("doudizhu",),
        tables_per_connection=1,
        connections_per_identity=1,
        acks_moves=True,
        rejects_illegal="error",
        sends_turn=False,
        sends_legal_actions=False,
        takes_composites=False,
        clock="per_move",
        resume="identity",
        resume_delivers="snapshot",
        heartbeat="app",
        messages_per_second=None,
        on_rate_limit="none",
        plays_for_us=False,
        needs_secret=False,
    )
    Options: ClassVar[type[msgspec.Struct]] = MailgycOptions

    def feed(self, item: m.Input) -> list[m.Output]:
        """Take one input or command; return effects and events in the order in which they must happen."""
        match item:
            case m.Frame():
                return self._frame(item)
            case m.Act():
                return self._act(item)
            case m.Ping():
                return [m.SendFrame(self._conn, wire.PING)] if self._stage == "ready" else []
            case m.TimerFired():
                return self._timer(item.name)
            case m.Authenticate() | m.Resume():
                return self._log_in(item)
            case m.HttpResult():
                return self._logged_in(item)
            case m.SocketOpened():
                return self._opened(item)
            case m.SocketClosed() | m.SocketFailed():
                return self._lost(item)
            case m.Close():
                return self._close()
            case _:
                return self._command(item)

    # ----------------------------------------------------------------------------------------------------- commands

    def _command(self, item: m.Input) -> list[m.Output]:
        if self._stage != "ready":
            return [m.SeekEnded(item.seek, "not connected")] if isinstance(item, m.Seek | m.Create | m.Join) else []
        match item:
            case m.Seek():
                return self._seek_table(item)
            case m.Create():
                return [m.SeekEnded(item.seek, "this lobby opens its rooms itself: seek one")]
            case m.Join():
                return self._seek_table(
                    m.Seek(item.seek, m.Wish("doudizhu", {}, {**item.attributes, "room": item.table}))
                )
            case m.CancelSeek():
                return self._cancel(item)
            case m.Leave() if self._table is not None and self._table.name == item.table:
                return self._leave()
            case m.Ready() if self._table is not None and self._table.name == item.table:
                return self._say_ready()
            case m.ListTables():
                self._listing = True
                return [self._send(wire.ROOMS)]
            case m.Resync() if self._table is not None and self._table.name == item.table:
                if self._table.hand is None:
                    return [self._seated(self._table, None)]  # nothing to be told but that we sit there
                return self._reconnect("to be told the position again")
            case _:
                return []

    def _seek_table(self, seek: m.Seek) -> list[m.Output]:
        problem = self._unfit(seek.wish)
        if problem or self._seek is not None:
            return [m.SeekEnded(seek.seek, problem or "one seat is being looked for")]
        out: list[m.Output] = self._leave() if self._table is not None else []
        self._seek = seek
        if not self._leaving:
            out += self._ask_for_seat()
        return out

    def _unfit(self, wish: m.Wish) -> str:
        """Why this lobby cannot fulfil the wish."""
        level, room = wish.attributes.get("level", self.options.level), wish.attributes.get("room", -1)
        if wish.game != "doudizhu" or wish.rules not in ({}, RULES):
            return 'this lobby plays doudizhu with rules = { preset = "mailgyc" } only'
        if not isinstance(level, int) or (self._levels and level not in self._levels):
            return f"no level {level!r}: there are {', '.join(map(str, sorted(self._levels)))}"
        if not str(room).removeprefix("-").isdecimal():
            return f"a room has a number, {room!r} is none"
        return ""

    def _ask_for_seat(self) -> list[m.Output]:
        assert self._seek is not None
        wish = self._seek.wish.attributes
        self._sought = True
        return [self._send(wire.JOIN, room=int(wish.get("room", -1)), level=wish.get("level", self.options.level))]

    def _cancel(self, item: m.CancelSeek) -> list[m.Output]:
        if self._seek is None or self._seek.seek != item.seek:
            return []
        sought, self._seek, self._sought = self._sought, None, False
        return self._go_away() if sought else []

    def _leave(self) -> list[m.Output]:
        self._table = None
        return [m.CancelTimer(READY), m.CancelTimer(STALL), *self._go_away()]

    def _go_away(self) -> list[m.Output]:
        self._leaving = True
        return [self._send(wire.LEAVE), m.SetTimer(AWAY, AWAY_S)]

    def _gone(self) -> list[m.Output]:
        """What still comes now is about another room."""
        self._leaving = False
        out: list[m.Output] = [m.CancelTimer(AWAY)]
        return out + self._ask_for_seat() if self._seek is not None else out

    def _act(self, act: m.Act) -> list[m.Output]:
        table = self._table
        if self._stage != "ready" or table is None or table.hand is None or table.name != act.table:
            return []
        if act.request_id != table.asked or table.acted:
            return []
        if len(act.actions) != 1:
            raise ValueError(f"mailgyc takes one action at a time, not {len(act.actions)}")
        try:
            frame = table.hand.frame_of(act.actions[0])
        except ValueError as error:
            return self._refused(table, str(error), resync=False)
        table.acted = True
        return [m.SendFrame(self._conn, frame)]

    # ------------------------------------------------------------------------------------------------------- timers

    def _timer(self, name: str) -> list[m.Output]:
        if name == HELLO and self._stage in ("opening", "greeting", "returning"):
            return self._reconnect("the lobby does not answer")
        if name == REJOIN and self._stage == "returning":
            return [self._rejoin()]
        if self._stage != "ready":
            return []
        if name == AWAY and self._leaving:
            return self._gone()
        table = self._table
        if name == READY and table is not None and table.hand is None:
            return self._say_ready()
        if name == STALL and table is not None:
            return self._look(table)
        return []

    def _say_ready(self) -> list[m.Output]:
        """Again after a while, where nothing came of it."""
        return [self._send(wire.READY, ready=1), m.SetTimer(READY, 15.0 + self.options.ready_after_s)]

    def _watch(self, table: Room) -> list[m.Output]:
        limit = self.options.stall_s if table.hand is not None else self.options.wait_s
        return [m.SetTimer(STALL, limit / LOOKS)] if limit > 0 else [m.CancelTimer(STALL)]

    def _look(self, table: Room) -> list[m.Output]:
        table.quiet += 1
        if table.quiet < LOOKS:
            return self._watch(table)
        what = "nobody moves" if table.hand is not None else "no hand begins"
        return self._give_up(table, f"{what}, and the lobby enforces no time")

    def _give_up(self, table: Room, reason: str) -> list[m.Output]:
        return [*self._leave(), m.TableEnded(table.name, "aborted", detail=reason)]

    # ------------------------------------------------------------------------------------------------------- frames

    def _frame(self, item: m.Frame) -> list[m.Output]:
        if item.conn != self._conn or self._stage in ("closed", "login"):
            return []
        try:
            frame = wire.decode(item.data)
        except wire.BadFrame:
            return [unknown(item.data)]
        if self._stage == "returning":
            return self._returned(frame)
        out = self._welcome(back=False) if self._stage != "ready" else []
        table = self._table
        try:
            return out + self._told(frame, table, item.data)
        except Mismatch as error:
            assert table is not None
            return out + self._contradicted(table, str(error))

    def _told(self, frame: wire.Body, table: Room | None, raw: str | bytes) -> list[m.Output]:
        match frame:
            case wire.Pong():
                return [m.Alive()]
            case wire.Rooms():
                return self._rooms(frame)
            case wire.Joined():
                return self._joined(frame, table)
            case wire.Failure():
                return self._failed(frame, table)
            case wire.Left():
                return self._left(frame, table)
        if table is None:
            return []  # of a room that we left
        match frame:
            case wire.ReadyTold():
                mine = frame.uid == self._uid and frame.ready and table.hand is None
                return [m.CancelTimer(READY)] if mine else []
            case wire.Dealt():
                return self._dealt(frame, table, raw)
            case wire.Called() | wire.Shot() if table.hand is not None and not table.lost:
                return self._moved(frame, table, table.hand, raw)
            case wire.Ended():
                return self._ended(frame, table)
        return []

    def _rooms(self, frame: wire.Rooms) -> list[m.Output]:
        self._levels = frozenset(room.level for room in frame.rooms) or self._levels
        if not self._listing:
            return []
        self._listing = False
        levels = [
            m.TableInfo(f"level-{room.level}", "doudizhu", RULES, {"level": room.level, "players": room.number}, 3)
            for room in frame.rooms
        ]
        return [m.Tables(tuple(levels))]

    def _failed(self, frame: wire.Failure, table: Room | None) -> list[m.Output]:
        """Errors name no request: at most one thing waits for an answer at a time."""
        if table is not None and table.acted and not table.lost:
            return self._refused(table, frame.reason, resync=_is_ours_wrong(frame.reason))
        if self._seek is None or not self._sought:
            return [m.Notice(f"the lobby says: {frame.reason}", "warning")]
        out: list[m.Output] = [m.SeekEnded(self._seek.seek, frame.reason)]
        self._seek, self._sought = None, False
        if _believes_we_sit(frame.reason) and not self._searched_self:
            self._searched_self = True
            out += self._reconnect("the lobby believes that we sit somewhere: log in to learn where")
        return out

    def _refused(self, table: Room, reason: str, *, resync: bool) -> list[m.Output]:
        hand = table.hand
        assert hand is not None
        request, table.asked, table.acted = table.asked, "", False
        seq = hand.view.seq
        table.refused = (seq, table.refused[1] + 1 if table.refused[0] == seq else 1)
        out: list[m.Output] = [m.Rejected(table.name, request, reason, resync)]
        return out if resync else out + self._ask(table, hand, None)

    def _left(self, frame: wire.Left, table: Room | None) -> list[m.Output]:
        if frame.uid == self._uid:
            if self._leaving:
                return self._gone()
            if table is None:
                return []
            return self._reconnect("the lobby believes that we left")  # an old socket of ours closed: this one is deaf
        seat = next((i for i, player in enumerate(table.players) if player.uid == frame.uid), None) if table else None
        return [] if table is None or seat is None else [m.Presence(table.name, seat, False)]

    # ---------------------------------------------------------------------------------------------------- the room

    def _returned(self, frame: wire.Body) -> list[m.Output]:
        """The answer to our coming back: until it comes, this socket hears and says nothing."""
        if isinstance(frame, wire.Failure) and _believes_we_sit(frame.reason):
            return [m.SetTimer(REJOIN, REJOIN_S)]
        if isinstance(frame, wire.Failure):
            self._room = -1
            return [*self._welcome(back=True), m.Notice(f"no way back to our table: {frame.reason}", "warning")]
        if not isinstance(frame, wire.Joined) or self._uid not in uids_of(frame):
            return []
        if frame.room.id != self._room:
            self._room = -1
            return [*self._welcome(back=True), *self._go_away()]  # the room is gone, and we were seated elsewhere
        before, level = self._table, self._level_of(self._room)
        table = Room(frame.room.id, level, frame.players)
        if before is not None and before.room == table.room:
            table.hand, table.quiet = before.hand, before.quiet
            table.mismatches, table.refused = before.mismatches, before.refused
        elif self._memo.get("table") == table.name:
            table.hand = MailgycHand.recall(self._memo)
        self._table = table
        out = [*self._welcome(back=True), self._seated(table, None), *_present(table)]
        return out + self._restore(frame, table)

    def _restore(self, frame: wire.Joined, table: Room) -> list[m.Output]:
        """Tell the position that frame 1006 shows."""
        before, table.hand = table.hand, None
        seen = before.view.seq if before is not None else -1
        table.lost, table.asked, table.acted = False, "", False
        out: list[m.Output] = []
        if frame.room.state in (wire.CALLING, wire.PLAYING):
            try:
                hand = resumed(frame, self._uid, before)
            except Mismatch as error:
                table.lost, table.hand = True, before
                return [m.Notice(f"the room cannot be understood: {error}", "error"), *self._watch(table)]
            table.hand = hand
            table.grant_ms = _grant_ms(frame.room.timer)
        if before is not None and (table.hand is None or table.hand.name != before.name):
            out.append(m.HandEnded(table.name, before.name, None, "aborted"))
        if before is None or table.hand is None or table.hand.view.seq != seen:
            table.quiet = 0  # otherwise nobody moved: coming back is no progress
        out += self._watch(table)
        if table.hand is None:
            return out + self._prepare(frame, table)
        out.append(m.Snapshot(table.name, table.hand.name, table.hand.seat, table.hand.view.to_json()))
        return out + self._ask(table, table.hand, None)

    def _joined(self, frame: wire.Joined, table: Room | None) -> list[m.Output]:
        if self._leaving or self._uid not in uids_of(frame):
            return []
        if table is not None and frame.room.id == table.room:
            return self._room_told(frame, table)
        if self._seek is None or not self._sought:
            return []
        seek, self._seek, self._sought = self._seek, None, False
        wanted = int(seek.wish.attributes.get("room", -1))
        if wanted not in (-1, frame.room.id):
            ended = m.SeekEnded(seek.seek, f"there is no free room {wanted}: the lobby chose {frame.room.id}")
            return [*self._go_away(), ended]
        self._searched_self = False
        level = seek.wish.attributes.get("level", self.options.level)
        self._table = table = Room(frame.room.id, level, frame.players)
        memo = {"table": table.name, "level": level, "hand": "", "view": None}
        return [m.Remember(memo), self._seated(table, seek.seek), *self._restore(frame, table)]

    def _seated(self, table: Room, seek: str | None) -> m.Seated:
        seat = next((i for i, player in enumerate(table.players) if player.uid == self._uid), None)
        attributes = {"level": table.level, "room": table.room}
        return m.Seated(table.name, "doudizhu", RULES, seat, _players(table.players), attributes, seek)

    def _prepare(self, frame: wire.Joined, table: Room) -> list[m.Output]:
        ready = any(player.uid == self._uid and player.ready for player in frame.players)
        return [] if ready else [m.SetTimer(READY, self.options.ready_after_s)]

    def _room_told(self, frame: wire.Joined, table: Room) -> list[m.Output]:
        """Somebody took a seat, or came back: a chance to compare."""
        table.players = frame.players
        if frame.room.state not in (wire.CALLING, wire.PLAYING):
            return self._restore(frame, table) if table.hand is not None else self._prepare(frame, table)
        if table.hand is not None and not table.lost and table.hand.agrees(frame):
            return _present(table)
        notice = m.Notice("the lobby's picture of the hand is not ours: taking the lobby's", "warning")
        return [notice, *self._restore(frame, table)]

    # ---------------------------------------------------------------------------------------------------- the hand

    def _dealt(self, frame: wire.Dealt, table: Room, raw: str | bytes) -> list[m.Output]:
        uids = tuple(-1 if player.uid is None else player.uid for player in table.players)
        if self._uid not in uids:
            raise Mismatch("cards were dealt, but not to us")
        hand, lines = MailgycHand.begin(uids.index(self._uid), uids, frame)
        table.hand, table.lost, table.mismatches, table.refused = hand, False, 0, (0, 0)
        table.asked, table.acted, table.grant_ms, table.quiet = "", False, _grant_ms(frame.timer), 0
        out: list[m.Output] = [m.CancelTimer(READY), *self._watch(table), self._remember(table, hand)]
        out.append(m.HandStarted(table.name, hand.name, hand.seat, _players(table.players)))
        out.append(m.Delta(table.name, hand.name, 0, tuple(lines)))
        return out + self._ask(table, hand, raw)

    def _moved(
        self, frame: wire.Called | wire.Shot, table: Room, hand: MailgycHand, raw: str | bytes
    ) -> list[m.Output]:
        seq = hand.view.seq
        lines = hand.called(frame) if isinstance(frame, wire.Called) else hand.shot(frame)
        table.quiet = 0
        out: list[m.Output] = [m.Delta(table.name, hand.name, seq, tuple(lines))]
        if table.asked and frame.uid == self._uid:
            if table.acted:
                out.append(m.MoveAcknowledged(table.name, table.asked))
            else:
                out.append(m.RequestWithdrawn(table.name, table.asked, "our seat moved without us"))
            table.asked, table.acted = "", False
        return out + self._ask(table, hand, raw)

    def _ask(self, table: Room, hand: MailgycHand, raw: str | bytes | None) -> list[m.Output]:
        """Ask for a move where it is our turn: the lobby does not."""
        if not hand.asked or table.asked:
            return []
        seq = hand.view.seq
        tries = table.refused[1] if table.refused[0] == seq else 0
        table.asked = f"{hand.name}.{seq}.{tries}"
        request = m.ActionRequest(table.name, hand.name, table.asked, table.grant_ms, 0.0, seq, None, raw)
        return [self._remember(table, hand), request]

    def _ended(self, frame: wire.Ended, table: Room) -> list[m.Output]:
        hand = table.hand
        if hand is None:
            return []
        scores = {result.uid: result.point for result in frame.players}
        told = tuple(scores.get(uid, 0.0) for uid in hand.uids) if scores.keys() == set(hand.uids) else None
        out: list[m.Output] = []
        seq = hand.view.seq
        if not table.lost and (lines := hand.revealed(frame)):
            out.append(m.Delta(table.name, hand.name, seq, tuple(lines)))
        out.append(m.HandEnded(table.name, hand.name, told))
        table.hand, table.lost, table.asked, table.acted, table.quiet = None, False, "", False, 0
        # Not at once: whoever drains now must be able to leave before the next hand is dealt.
        return [*out, m.SetTimer(READY, self.options.ready_after_s), *self._watch(table)]

    def _remember(self, table: Room, hand: MailgycHand) -> m.Remember:
        return m.Remember({"table": table.name, "level": table.level, **hand.memo()})

    def _contradicted(self, table: Room, reason: str) -> list[m.Output]:
        """Nothing more is decided here until the lobby has told the position anew."""
        table.lost = True
        table.mismatches += 1
        notice = m.Notice(f"table {table.name}: {reason}", "warning")
        if table.mismatches > MOST_MISMATCHES:
            return [notice, *self._give_up(table, "the lobby contradicts itself")]
        return [notice, *self._reconnect("to be told the position again")]


def _is_ours_wrong(reason: str) -> bool:
    """Whether the refusal shows that our picture is wrong, not just the move."""
    return "comply" not in reason and "small" not in reason


def _believes_we_sit(reason: str) -> bool:
    """Whether the lobby refuses a seat because it believes that we have one, and are connected to it."""
    return reason == "TURN ERROR" or "STATE" in reason


def _grant_ms(timer_s: float) -> float | None:
    """The clock that the lobby shows and does not enforce."""
    return min(timer_s, 600.0) * 1000.0 if timer_s > 0 else None


def _present(table: Room) -> list[m.Output]:
    return [m.Presence(table.name, i, not p.leave) for i, p in enumerate(table.players) if p.uid is not None]


def _players(players: tuple[wire.Player, ...]) -> tuple[m.PlayerInfo, ...]:
    return tuple(m.PlayerInfo(str(p.uid), seat, p.name) for seat, p in enumerate(players) if p.uid is not None)
