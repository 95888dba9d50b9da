"""Our seat at a table of mailgyc. Frame 1006 shows the whole room, so it restores what a lost connection missed."""

from __future__ import annotations

from collections.abc import Callable

from bothost import messages as m
from bothost.lobbies.frames import Mismatch
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.asking import Asking
from bothost.lobbies.mailgyc.hand import RULES, MailgycHand, resumed
from bothost.lobbies.mailgyc.options import READY, STALL, MailgycOptions
from bothost.lobbies.mailgyc.seats import Seats, StallWatch
from bothost.lobbies.mailgyc.session import Session

MOST_MISMATCHES = 3
"""More contradictions than this within one hand, and we leave the table."""
REPEAT_S = 15.0
"""Say ready again after this time if no hand started."""
NO_THIRD = "a player is gone, and the lobby gives the seat to no one else"


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
        self._seats = Seats(frame)
        self._watch = StallWatch()
        self._hand: MailgycHand | None = None
        self._lost = False
        """Whether our view of the hand is wrong: nothing is reported until a frame 1006 corrects it."""
        self.asking = Asking(session, self.name, level)
        self._mismatches = 0

    # ----------------------------------------------------------------------------------------------------- the room

    def enter(self, frame: wire.Joined, seek: str) -> list[m.Output]:
        """We have taken a seat."""
        return [self.asking.forget(), self.seated(seek), *self._restore(frame)]

    def come_back(self, frame: wire.Joined, memo: m.Json) -> list[m.Output]:
        """We have returned to the seat. ``memo``: what an earlier process saved."""
        if self._seats.look(frame):
            self._watch.progress()
        if self._hand is None and memo.get("table") == self.name:
            self._hand = MailgycHand.recall(memo)
            if self._hand is not None:
                self._seats.fill()
        return [self.seated(), *self._seats.presence(self.name), *self._restore(frame)]

    def seated(self, seek: str | None = None) -> m.Seated:
        seat = self._seats.seat_of(self._session.uid)
        attributes = {"level": self.level, "room": self.room}
        return m.Seated(self.name, "doudizhu", RULES, seat, self._seats.infos(), attributes, seek)

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
            out += [m.HandEnded(self.name, before.name, None, "aborted"), self.asking.forget()]
        if seen != (hand.view.seq if hand is not None else -1):
            self._watch.progress()  # not if no one moved: coming back is no progress
        if hand is None and self._seats.broken:
            return out + self._give_up(NO_THIRD)
        out += self._watch.start(self._limit_s)
        if hand is None:
            ready = self._seats.is_ready(self._session.uid)
            return out if ready else [*out, m.SetTimer(READY, self._options.ready_after_s)]
        out.append(m.Snapshot(self.name, hand.name, hand.seat, hand.view.to_json()))
        return out + self.asking.ask(hand, None)

    def shown(self, frame: wire.Joined) -> list[m.Output]:
        """Handle a frame 1006 that shows our room: compare its position with ours."""
        if self._seats.look(frame):
            self._watch.progress()
        if frame.room.state not in (wire.CALLING, wire.PLAYING):
            return self._restore(frame)
        if self._hand is not None and not self._lost and self._hand.agrees(frame):
            return self._seats.presence(self.name)
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
                    out = self._seats.left(self.name, frame.uid)
                    return out + self._watch.start(self._limit_s) if out and hand is None else out
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
        seat = self._seats.seat_of(self._session.uid)
        if seat is None:
            raise Mismatch("cards were dealt, but not to us")
        hand, lines = MailgycHand.begin(seat, self._seats.uids, frame)
        self._hand, self._lost, self._mismatches = hand, False, 0
        self._seats.fill()
        self._watch.progress()
        self.asking = Asking(self._session, self.name, self.level)
        self.asking.grant_ms = _grant_ms(frame.timer)
        out: list[m.Output] = [m.CancelTimer(READY), *self._watch.start(self._limit_s), self.asking.remember(hand)]
        out.append(m.HandStarted(self.name, hand.name, hand.seat, self._seats.infos()))
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
        out += [m.HandEnded(self.name, hand.name, scores), self.asking.forget()]
        self._hand, self._lost = None, False
        self.asking.reset()
        self._watch.progress()
        if self._seats.deserted:
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
        waits = self._hand is None and not self._seats.deserted
        return self._options.wait_s if waits else self._options.stall_s

    def _give_up(self, reason: str) -> list[m.Output]:
        self.over = True
        return [*self._go_away(), m.TableEnded(self.name, "aborted", detail=reason)]


def _grant_ms(timer_s: float) -> float | None:
    """The time that the lobby shows, in milliseconds. The lobby does not enforce it."""
    return min(timer_s, 600.0) * 1000.0 if timer_s > 0 else None
