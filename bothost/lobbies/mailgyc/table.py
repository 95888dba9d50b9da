"""Our seat at a table of mailgyc. Frame 1006 shows the whole room, so it restores what a lost connection missed."""

from __future__ import annotations

from collections.abc import Callable

from bothost import messages as m
from bothost.lobbies.frames import Mismatch
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.asking import Asking
from bothost.lobbies.mailgyc.hand import RULES, MailgycHand, resumed, uids_of
from bothost.lobbies.mailgyc.options import READY, STALL, MailgycOptions
from bothost.lobbies.mailgyc.session import Session

LOOKS = 4
"""Least number of checks without progress after which a table counts as stalled."""
MOST_CHECK_S = 15.0
"""Most time between two checks. A connection must last as long to be counted."""
MOST_MISMATCHES = 3
"""More contradictions than this within one hand, and we leave the table."""
REPEAT_S = 15.0
"""Say ready again after this time if no hand started."""
NO_THIRD = "a player is gone, and the lobby gives the seat to no one else"


class StallWatch:
    """Detects a table where nothing happens. The lobby does not enforce its clock."""

    def __init__(self) -> None:
        self._limit_s = 0.0
        self._quiet_s = 0.0
        """Time without progress."""

    def progress(self) -> None:
        self._quiet_s = 0.0

    def start(self, limit_s: float) -> list[m.Output]:
        """From now on the table has stalled after ``limit_s`` without progress. 0: never."""
        self._limit_s = limit_s
        return self.wait() if limit_s > 0 else [m.CancelTimer(STALL)]

    def wait(self) -> list[m.Output]:
        """Set the timer for the next check."""
        return [m.SetTimer(STALL, self._check_s)]

    def stalled(self) -> bool:
        """Count the time since the last check. Returns whether the table has stalled."""
        self._quiet_s += self._check_s
        return self._quiet_s >= self._limit_s

    @property
    def _check_s(self) -> float:
        return min(self._limit_s / LOOKS, MOST_CHECK_S)


class MailgycTable:
    """Three seats, and the hand that is played."""

    def __init__(
        self,
        session: Session,
        options: MailgycOptions,
        go_away: Callable[[], list[m.Output]],
        frame: wire.Joined,
        level: int,
    ) -> None:
        self.room = frame.room.id
        self.name = str(self.room)
        self.level = level
        self.over = False
        self._session = session
        self._options = options
        self._go_away = go_away
        self._players = frame.players
        self._away: set[int] = set()
        """Players who have left or lost their connection. The lobby removes them when the hand ends."""
        self._filled = False
        """Whether all seats were ever taken. From then on the lobby fills no seat that becomes empty."""
        self._watch = StallWatch()
        self._look(frame)
        self._hand: MailgycHand | None = None
        self._lost = False
        """Whether our view of the hand is wrong: nothing is reported until a frame 1006 corrects it."""
        self.asking = Asking(session, self.name, level)
        self._mismatches = 0

    # ----------------------------------------------------------------------------------------------------- the room

    def enter(self, frame: wire.Joined, seek: str) -> list[m.Output]:
        """We have taken a seat."""
        return [self._forget(), self.seated(seek), *self._restore(frame)]

    def come_back(self, frame: wire.Joined, memo: m.Json) -> list[m.Output]:
        """We have returned to the seat. ``memo``: what an earlier process saved."""
        self._look(frame)
        if self._hand is None and memo.get("table") == self.name:
            self._hand = MailgycHand.recall(memo)
            self._filled = self._filled or self._hand is not None
        return [self.seated(), *_presence(self.name, self._players), *self._restore(frame)]

    def seated(self, seek: str | None = None) -> m.Seated:
        seat = next((i for i, player in enumerate(self._players) if player.uid == self._session.uid), None)
        attributes = {"level": self.level, "room": self.room}
        return m.Seated(self.name, "doudizhu", RULES, seat, _players(self._players), attributes, seek)

    def _forget(self) -> m.Remember:
        """Remember that no hand is played."""
        return m.Remember({"table": self.name, "level": self.level, "hand": "", "view": None})

    def _look(self, frame: wire.Joined) -> None:
        """See who sits here."""
        if uids_of(frame.players) != uids_of(self._players):
            self._watch.progress()
        self._players = frame.players
        self._away = {player.uid for player in frame.players if player.uid is not None and player.leave}
        self._filled = self._filled or -1 not in uids_of(frame.players)

    def _left(self, uid: int) -> list[m.Output]:
        """Another player left."""
        uids = uids_of(self._players)
        if uid not in uids:
            return []
        self._away.add(uid)
        out: list[m.Output] = [m.Presence(self.name, uids.index(uid), False)]
        return out + (self._watch.start(self._limit_s) if self._hand is None else [])

    def _restore(self, frame: wire.Joined) -> list[m.Output]:
        """Report the position that frame 1006 shows."""
        before, self._hand = self._hand, None
        seen = before.view.seq if before is not None else -1
        self._lost = False
        self.asking.reset()
        out: list[m.Output] = []
        if frame.room.state in (wire.CALLING, wire.PLAYING):
            try:
                self._hand = resumed(frame, self._session.uid, before)
            except Mismatch as error:
                self._lost, self._hand = True, before
                return [
                    m.Notice(f"frame 1006 is invalid: {error}", "error"),
                    *self._watch.start(self._limit_s),
                ]
            self.asking.grant_ms = _grant_ms(frame.room.timer)
        hand = self._hand
        if before is not None and (hand is None or hand.name != before.name):
            out += [m.HandEnded(self.name, before.name, None, "aborted"), self._forget()]
        if seen != (hand.view.seq if hand is not None else -1):
            self._watch.progress()  # not if no one moved: coming back is no progress
        if hand is None and self._filled and -1 in uids_of(frame.players):
            return out + self._give_up(NO_THIRD)
        out += self._watch.start(self._limit_s)
        if hand is None:
            return out + self._prepare(frame)
        out.append(m.Snapshot(self.name, hand.name, hand.seat, hand.view.to_json()))
        return out + self.asking.ask(hand, None)

    def _prepare(self, frame: wire.Joined) -> list[m.Output]:
        ready = any(player.uid == self._session.uid and player.ready for player in frame.players)
        return [] if ready else [m.SetTimer(READY, self._options.ready_after_s)]

    def shown(self, frame: wire.Joined) -> list[m.Output]:
        """Handle a frame 1006 that shows our room: compare its position with ours."""
        self._look(frame)
        if frame.room.state not in (wire.CALLING, wire.PLAYING):
            return self._restore(frame)
        if self._hand is not None and not self._lost and self._hand.agrees(frame):
            return _presence(self.name, self._players)
        notice = m.Notice("the lobby's position differs from ours: using the lobby's", "warning")
        return [notice, *self._restore(frame)]

    # ---------------------------------------------------------------------------------------------------- the hand

    def frame(self, frame: wire.Body, raw: str | bytes) -> list[m.Output]:
        """Handle a frame about this table."""
        hand = self._hand
        try:
            match frame:
                case wire.ReadyChanged():
                    mine = frame.uid == self._session.uid and frame.ready and hand is None
                    return [m.CancelTimer(READY)] if mine else []
                case wire.Left():
                    return self._left(frame.uid)
                case wire.Dealt():
                    return self._dealt(frame, raw)
                case wire.Called() | wire.Shot() if hand is not None and not self._lost:
                    return self._moved(frame, hand, raw)
                case wire.Ended() if hand is not None:
                    return self._ended(frame, hand)
        except Mismatch as error:
            return self._contradicted(str(error))
        return []

    def _dealt(self, frame: wire.Dealt, raw: str | bytes) -> list[m.Output]:
        uids = uids_of(self._players)
        if self._session.uid not in uids:
            raise Mismatch("cards were dealt, but not to us")
        hand, lines = MailgycHand.begin(uids.index(self._session.uid), uids, frame)
        self._hand, self._lost, self._mismatches = hand, False, 0
        self._watch.progress()
        self.asking = Asking(self._session, self.name, self.level)
        self.asking.grant_ms = _grant_ms(frame.timer)
        out: list[m.Output] = [m.CancelTimer(READY), *self._watch.start(self._limit_s), self.asking.remember(hand)]
        out.append(m.HandStarted(self.name, hand.name, hand.seat, _players(self._players)))
        out.append(m.Delta(self.name, hand.name, 0, tuple(lines)))
        return out + self.asking.ask(hand, raw)

    def _moved(self, frame: wire.Called | wire.Shot, hand: MailgycHand, raw: str | bytes) -> list[m.Output]:
        seq = hand.view.seq
        try:
            lines = hand.called(frame) if isinstance(frame, wire.Called) else hand.shot(frame)
        except Mismatch as error:
            if isinstance(frame, wire.Called):
                raise
            return self._accepted(frame, hand, f"{error}; the lobby accepts it", raw)
        self._watch.progress()
        out: list[m.Output] = [m.Delta(self.name, hand.name, seq, tuple(lines))]
        if frame.uid == self._session.uid:
            out += self.asking.moved()
        return out + self.asking.ask(hand, raw)

    def _accepted(self, frame: wire.Shot, hand: MailgycHand, why: str, raw: str | bytes) -> list[m.Output]:
        """Another player made a play that our rules refuse."""
        self._lost = not hand.accept(frame)  # the end of the hand follows
        self._watch.progress()
        notice = m.Notice(f"table {self.name}: {why}")
        if self._lost:
            return [notice]
        snapshot = m.Snapshot(self.name, hand.name, hand.seat, hand.view.to_json())
        return [notice, snapshot, *self.asking.ask(hand, raw)]

    def _ended(self, frame: wire.Ended, hand: MailgycHand) -> list[m.Output]:
        points = {result.uid: result.point for result in frame.players}
        scores = tuple(points.get(uid, 0.0) for uid in hand.uids) if points.keys() == set(hand.uids) else None
        out: list[m.Output] = []
        seq = hand.view.seq
        if not self._lost and (lines := hand.revealed(frame)):
            out.append(m.Delta(self.name, hand.name, seq, tuple(lines)))
        out += [m.HandEnded(self.name, hand.name, scores), self._forget()]
        self._hand, self._lost = None, False
        self.asking.reset()
        self._watch.progress()
        if self._away:
            return out + self._give_up(NO_THIRD)
        # Wait, so that a draining host can leave before the next hand is dealt.
        return [*out, m.SetTimer(READY, self._options.ready_after_s), *self._watch.start(self._limit_s)]

    def _contradicted(self, reason: str) -> list[m.Output]:
        """Decide nothing here until the lobby has shown the position again."""
        self._lost = True
        self._mismatches += 1
        notice = m.Notice(f"table {self.name}: {reason}", "warning")
        if self._mismatches > MOST_MISMATCHES:
            return [notice, *self._give_up("the lobby contradicts itself")]
        return [notice, *self._session.reconnect("a fresh snapshot is needed")]

    # ------------------------------------------------------------------------------------------------------- acting

    def act(self, act: m.Act) -> list[m.Output]:
        return [] if self._hand is None else self.asking.act(act, self._hand)

    def refused(self, reason: str) -> list[m.Output] | None:
        """The lobby refuses something. Returns None if it is nothing of this table's."""
        if self._hand is None and reason == wire.HAND_OVER:
            return self._give_up("the lobby took our seat when the last hand ended")
        return None if self._lost or self._hand is None else self.asking.refused(reason, self._hand)

    def resync(self) -> list[m.Output]:
        """Get a fresh snapshot for the host."""
        if self._hand is None:
            return [self.seated()]  # between hands there is no position
        return self._session.reconnect("the host asks for a fresh snapshot")

    # ------------------------------------------------------------------------------------------------------- timers

    def timer(self, name: str) -> list[m.Output]:
        if name == READY and self._hand is None:
            return self.say_ready()
        if name != STALL:
            return []
        if not self._watch.stalled():
            return self._watch.wait()
        what = "no hand begins" if self._hand is None else "no player moves"
        return self._give_up(f"{what}, and the lobby enforces no time")

    def say_ready(self) -> list[m.Output]:
        return [self._session.send(wire.READY, ready=1), m.SetTimer(READY, REPEAT_S + self._options.ready_after_s)]

    @property
    def _limit_s(self) -> float:
        """How long nothing may happen now."""
        waits = self._hand is None and not (self._filled and self._away)
        return self._options.wait_s if waits else self._options.stall_s

    def _give_up(self, reason: str) -> list[m.Output]:
        self.over = True
        return [*self._go_away(), m.TableEnded(self.name, "aborted", detail=reason)]


def _grant_ms(timer_s: float) -> float | None:
    """The time that the lobby shows, in milliseconds. The lobby does not enforce it."""
    return min(timer_s, 600.0) * 1000.0 if timer_s > 0 else None


def _players(players: tuple[wire.PlayerBody, ...]) -> tuple[m.PlayerInfo, ...]:
    return tuple(m.PlayerInfo(str(p.uid), seat, p.name) for seat, p in enumerate(players) if p.uid is not None)


def _presence(table: str, players: tuple[wire.PlayerBody, ...]) -> list[m.Output]:
    return [m.Presence(table, seat, not p.leave) for seat, p in enumerate(players) if p.uid is not None]
