"""Our seat at a table of mailgyc.

The lobby never says whose turn it is: the rules know. Its errors name no request: at most one thing waits for an answer
at a time. What a lost connection missed is reconstructed from frame 1006.
"""

from __future__ import annotations

from collections.abc import Callable

from bothost import messages as m
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import RULES, MailgycHand, Mismatch, resumed, uids_of
from bothost.lobbies.mailgyc.options import READY, STALL, MailgycOptions
from bothost.lobbies.mailgyc.session import Session

LOOKS = 4
"""How often we look at a table before it counts as stalled."""
MOST_MISMATCHES = 3
"""Contradictions within one hand after which we leave the table."""
REPEAT_S = 15.0
"""Ready is repeated after this time when nothing came of it."""


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
        self._hand: MailgycHand | None = None
        self._lost = False
        """Whether our view of the hand is wrong: nothing is reported until a frame 1006 corrects it."""
        self._request = ""
        """The request that waits for an answer, or for the echo of its answer."""
        self._acted = False
        self._refused = (0, 0)
        """(events, answers): how many answers were refused after so many events."""
        self._grant_ms: float | None = None
        self._quiet = 0
        """Looks since something happened."""
        self._mismatches = 0

    # ----------------------------------------------------------------------------------------------------- the room

    def enter(self, frame: wire.Joined, seek: str) -> list[m.Output]:
        """We have taken a seat."""
        memo = m.Remember({"table": self.name, "level": self.level, "hand": "", "view": None})
        return [memo, self.seated(seek), *self._restore(frame)]

    def come_back(self, frame: wire.Joined, memo: m.Json) -> list[m.Output]:
        """We have come back to the seat; ``memo``: what an earlier process remembered."""
        self._players = frame.players
        if self._hand is None and memo.get("table") == self.name:
            self._hand = MailgycHand.recall(memo)
        return [self.seated(), *self._present(), *self._restore(frame)]

    def seated(self, seek: str | None = None) -> m.Seated:
        seat = next((i for i, player in enumerate(self._players) if player.uid == self._session.uid), None)
        attributes = {"level": self.level, "room": self.room}
        return m.Seated(self.name, "doudizhu", RULES, seat, _players(self._players), attributes, seek)

    def _present(self) -> list[m.Output]:
        return [m.Presence(self.name, i, not p.leave) for i, p in enumerate(self._players) if p.uid is not None]

    def left(self, uid: int) -> list[m.Output]:
        """Another player went away."""
        seat = next((i for i, player in enumerate(self._players) if player.uid == uid), None)
        return [] if seat is None else [m.Presence(self.name, seat, False)]

    def _restore(self, frame: wire.Joined) -> list[m.Output]:
        """Report the position that frame 1006 shows."""
        before, self._hand = self._hand, None
        seen = before.view.seq if before is not None else -1
        self._lost, self._request, self._acted = False, "", False
        out: list[m.Output] = []
        if frame.room.state in (wire.CALLING, wire.PLAYING):
            try:
                self._hand = resumed(frame, self._session.uid, before)
            except Mismatch as error:
                self._lost, self._hand = True, before
                return [m.Notice(f"the room cannot be understood: {error}", "error"), *self._watch()]
            self._grant_ms = _grant_ms(frame.room.timer)
        hand = self._hand
        if before is not None and (hand is None or hand.name != before.name):
            out.append(m.HandEnded(self.name, before.name, None, "aborted"))
        if before is None or hand is None or hand.view.seq != seen:
            self._quiet = 0  # otherwise nobody moved: coming back is no progress
        out += self._watch()
        if hand is None:
            return out + self._prepare(frame)
        out.append(m.Snapshot(self.name, hand.name, hand.seat, hand.view.to_json()))
        return out + self._ask(hand, None)

    def _prepare(self, frame: wire.Joined) -> list[m.Output]:
        ready = any(player.uid == self._session.uid and player.ready for player in frame.players)
        return [] if ready else [m.SetTimer(READY, self._options.ready_after_s)]

    def shown(self, frame: wire.Joined) -> list[m.Output]:
        """A player took a seat, or came back: compare the lobby's view with ours."""
        self._players = frame.players
        if frame.room.state not in (wire.CALLING, wire.PLAYING):
            return self._restore(frame) if self._hand is not None else self._prepare(frame)
        if self._hand is not None and not self._lost and self._hand.agrees(frame):
            return self._present()
        notice = m.Notice("the lobby's picture of the hand is not ours: taking the lobby's", "warning")
        return [notice, *self._restore(frame)]

    # ---------------------------------------------------------------------------------------------------- the hand

    def frame(self, frame: wire.Body, raw: str | bytes) -> list[m.Output]:
        """A frame about this table."""
        hand = self._hand
        try:
            match frame:
                case wire.ReadyChanged():
                    mine = frame.uid == self._session.uid and frame.ready and hand is None
                    return [m.CancelTimer(READY)] if mine else []
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
        uids = tuple(-1 if player.uid is None else player.uid for player in self._players)
        if self._session.uid not in uids:
            raise Mismatch("cards were dealt, but not to us")
        hand, lines = MailgycHand.begin(uids.index(self._session.uid), uids, frame)
        self._hand, self._lost, self._mismatches, self._refused = hand, False, 0, (0, 0)
        self._request, self._acted, self._grant_ms, self._quiet = "", False, _grant_ms(frame.timer), 0
        out: list[m.Output] = [m.CancelTimer(READY), *self._watch(), self._remember(hand)]
        out.append(m.HandStarted(self.name, hand.name, hand.seat, _players(self._players)))
        out.append(m.Delta(self.name, hand.name, 0, tuple(lines)))
        return out + self._ask(hand, raw)

    def _moved(self, frame: wire.Called | wire.Shot, hand: MailgycHand, raw: str | bytes) -> list[m.Output]:
        seq = hand.view.seq
        lines = hand.called(frame) if isinstance(frame, wire.Called) else hand.shot(frame)
        self._quiet = 0
        out: list[m.Output] = [m.Delta(self.name, hand.name, seq, tuple(lines))]
        if self._request and frame.uid == self._session.uid:
            if self._acted:
                out.append(m.MoveAcknowledged(self.name, self._request))
            else:
                out.append(m.RequestWithdrawn(self.name, self._request, "our seat moved without us"))
            self._request, self._acted = "", False
        return out + self._ask(hand, raw)

    def _ended(self, frame: wire.Ended, hand: MailgycHand) -> list[m.Output]:
        points = {result.uid: result.point for result in frame.players}
        scores = tuple(points.get(uid, 0.0) for uid in hand.uids) if points.keys() == set(hand.uids) else None
        out: list[m.Output] = []
        seq = hand.view.seq
        if not self._lost and (lines := hand.revealed(frame)):
            out.append(m.Delta(self.name, hand.name, seq, tuple(lines)))
        out.append(m.HandEnded(self.name, hand.name, scores))
        self._hand, self._lost, self._request, self._acted, self._quiet = None, False, "", False, 0
        # Not at once: a draining host must be able to leave before the next hand is dealt.
        return [*out, m.SetTimer(READY, self._options.ready_after_s), *self._watch()]

    def _contradicted(self, reason: str) -> list[m.Output]:
        """Nothing more is decided here until the lobby has shown the position anew."""
        self._lost = True
        self._mismatches += 1
        notice = m.Notice(f"table {self.name}: {reason}", "warning")
        if self._mismatches > MOST_MISMATCHES:
            return [notice, *self._give_up("the lobby contradicts itself")]
        return [notice, *self._session.reconnect("a fresh snapshot is needed")]

    # ------------------------------------------------------------------------------------------------------- acting

    def _ask(self, hand: MailgycHand, raw: str | bytes | None) -> list[m.Output]:
        """Ask the host for a move where it is our turn: the lobby does not."""
        if not hand.asked or self._request:
            return []
        seq = hand.view.seq
        tries = self._refused[1] if self._refused[0] == seq else 0
        self._request = f"{hand.name}.{seq}.{tries}"
        request = m.ActionRequest(self.name, hand.name, self._request, self._grant_ms, 0.0, seq, None, raw)
        return [self._remember(hand), request]

    def _remember(self, hand: MailgycHand) -> m.Remember:
        return m.Remember({"table": self.name, "level": self.level, **hand.memo()})

    def act(self, act: m.Act) -> list[m.Output]:
        hand = self._hand
        if hand is None or act.request_id != self._request or self._acted:
            return []
        if len(act.actions) != 1:
            raise ValueError(f"mailgyc takes one action at a time, not {len(act.actions)}")
        try:
            frame = hand.frame_of(act.actions[0])
        except ValueError as error:
            return self._reject(hand, str(error), resync=False)
        self._acted = True
        return [self._session.send_text(frame)]

    def refused(self, reason: str) -> list[m.Output] | None:
        """The lobby refuses something: our move? None where no move waits for its echo."""
        if not self._acted or self._lost or self._hand is None:
            return None
        only_the_move = "comply" in reason or "small" in reason
        return self._reject(self._hand, reason, resync=not only_the_move)

    def _reject(self, hand: MailgycHand, reason: str, *, resync: bool) -> list[m.Output]:
        request, self._request, self._acted = self._request, "", False
        seq = hand.view.seq
        self._refused = (seq, self._refused[1] + 1 if self._refused[0] == seq else 1)
        rejected = m.Rejected(self.name, request, reason, resync)
        return [rejected] if resync else [rejected, *self._ask(hand, None)]

    def disconnected(self) -> None:
        self._request, self._acted = "", False

    def resync(self) -> list[m.Output]:
        """The host does not trust its view of the hand."""
        if self._hand is None:
            return [self.seated()]  # nothing to report but that we sit there
        return self._session.reconnect("the host asks for a fresh snapshot")

    # ------------------------------------------------------------------------------------------------------- timers

    def timer(self, name: str) -> list[m.Output]:
        if name == READY and self._hand is None:
            return self.say_ready()
        return self._look() if name == STALL else []

    def say_ready(self) -> list[m.Output]:
        return [self._session.send(wire.READY, ready=1), m.SetTimer(READY, REPEAT_S + self._options.ready_after_s)]

    def _watch(self) -> list[m.Output]:
        limit = self._options.stall_s if self._hand is not None else self._options.wait_s
        return [m.SetTimer(STALL, limit / LOOKS)] if limit > 0 else [m.CancelTimer(STALL)]

    def _look(self) -> list[m.Output]:
        """The lobby enforces no time: leave a table where nothing happens."""
        self._quiet += 1
        if self._quiet < LOOKS:
            return self._watch()
        what = "no player moves" if self._hand is not None else "no hand begins"
        return self._give_up(f"{what}, and the lobby enforces no time")

    def _give_up(self, reason: str) -> list[m.Output]:
        self.over = True
        return [*self._go_away(), m.TableEnded(self.name, "aborted", detail=reason)]


def sits(uid: int, frame: wire.Joined) -> bool:
    """Whether this player sits in the room."""
    return uid in uids_of(frame)


def _grant_ms(timer_s: float) -> float | None:
    """The clock that the lobby shows and does not enforce."""
    return min(timer_s, 600.0) * 1000.0 if timer_s > 0 else None


def _players(players: tuple[wire.PlayerBody, ...]) -> tuple[m.PlayerInfo, ...]:
    return tuple(m.PlayerInfo(str(p.uid), seat, p.name) for seat, p in enumerate(players) if p.uid is not None)
