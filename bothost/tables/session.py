"""One seat at one table, hand after hand: folds the lobby's events into the view, asks for decisions, answers once.

A session takes table events and the results of workers, and returns what is to be done (``bothost.tables.hand``), in
order. Whatever the lobby says it keeps these promises:

- nothing is decided on a view that may be wrong: after a gap, an impossible event or a lost connection a snapshot must
  come first;
- a request is answered once; the answer to a request that was superseded or withdrawn is discarded;
- a pending request that comes again after a reconnect or a crash gets the same answer again;
- only actions that are legal in our view are sent, and none that the lobby refused at this position;
- before the deadline there is an answer, by the chain in ``bothost.tables.fallback``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bothost.messages import (
    ActionRequest,
    Delta,
    HandEnded,
    HandStarted,
    MoveAcknowledged,
    PlayerInfo,
    Presence,
    Rejected,
    RequestWithdrawn,
    Seated,
    ServerActedFor,
    ServerActedForUs,
    Snapshot,
    TableEnded,
    TableEvent,
)
from bothost.rules.game import Game
from bothost.strategy import Decision
from bothost.tables import fallback
from bothost.tables.attendance import Attendance
from bothost.tables.clock import NEVER, window
from bothost.tables.conduct import Conduct, TableKey
from bothost.tables.hand import (
    Answer,
    Closed,
    DecidedBy,
    GaveUp,
    Hand,
    HandClosed,
    HandOpening,
    Job,
    Late,
    Logged,
    NeedSnapshot,
    Outcome,
    Output,
    SnapshotTaken,
    consenting,
)

MAX_ATTEMPTS = 4
"""Answers to one position that a lobby may refuse before we fall silent there."""
MAX_RESYNCS = 3
"""Snapshots in a row that do not help before we fall silent."""


class Session:
    """One seat at one table. ``resumed``: the lobby named the table when we connected; it is not a new one."""

    __slots__ = (
        "attendance",
        "attributes",
        "conduct",
        "epoch",
        "fresh",
        "game",
        "hand",
        "heard_at",
        "key",
        "lookup",
        "players",
        "seat",
        "silences",
    )

    def __init__(self, key: TableKey, seated: Seated, game: Game, conduct: Conduct, *, resumed: bool = False) -> None:
        self.key = key
        self.game = game
        self.conduct = conduct
        self.seat = seated.seat
        self.players: tuple[PlayerInfo, ...] = seated.players
        self.attendance = Attendance()
        self.attributes = seated.attributes
        self.hand: Hand | None = None
        self.fresh = not resumed
        """Whether view and clock are known to be the lobby's."""
        self.lookup = resumed
        """Whether the next hand that we hear of may have begun in an earlier process."""
        self.heard_at = 0.0
        """When the lobby last said something about this table."""
        self.silences = 0
        """How often it was asked since, in vain."""
        self.epoch = 0
        """Raised whenever the connection is lost."""

    # ------------------------------------------------------------------------------------------------ table events

    def feed(self, event: TableEvent, now: float) -> list[Output]:
        """Take one event of this table. ``now`` is its arrival, monotonic seconds."""
        out: list[Output] = []
        self.heard_at = now
        self.silences = 0
        _HANDLERS[type(event)](self, event, now, out)
        return out

    def _seated(self, event: Seated, now: float, out: list[Output]) -> None:
        self.seat, self.players, self.attributes = event.seat, event.players or self.players, event.attributes

    def _hand_started(self, event: HandStarted, now: float, out: list[Output]) -> None:
        if self.hand is not None and self.hand.name == event.hand:
            return  # repeated by a resume
        self._close_hand(out, "aborted", None)
        self.fresh = self._open_hand(event.hand, event.seat, event.players, out)

    def _snapshot(self, event: Snapshot, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None or hand.name != event.hand or hand.seat != event.seat:
            self._close_hand(out, "aborted", None)
            if not self._open_hand(event.hand, event.seat, self.players, out):
                return
            hand = self.hand
            assert hand is not None
        try:
            view = self.game.view_from_snapshot(event.view)
            if view.seat != event.seat:
                raise ValueError(f"the snapshot shows seat {view.seat}, not ours")
        except ValueError as error:
            self._distrust(hand, f"snapshot: {error}", out)
            return
        out.append(SnapshotTaken(hand, view.seq, event.view, hand.take_events()))
        hand.drop_job()
        hand.view, hand.lent, hand.unlogged_seq = view, False, view.seq
        self.fresh = True
        self._take_held(hand, now, out)

    def _delta(self, event: Delta, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None or hand.name != event.hand:
            self._unknown_hand(event.hand, out)
            return
        if not self.fresh:
            return  # the snapshot that we wait for contains it
        view = hand.view
        seen = view.seq
        events: Sequence[str] = event.events
        if event.seq != seen:
            if event.seq > seen or event.seq < 0:
                self._distrust(hand, f"events from {event.seq} on, but {seen} seen", out)
                return
            events = events[seen - event.seq :]
        if hand.lent:
            view = hand.own_view()
        try:
            view.observe_all(events)
        except ValueError as error:
            hand.unlogged.extend(events[: view.seq - seen])
            self._distrust(hand, f"event: {error}", out)
            return
        hand.unlogged.extend(events)
        if hand.news is not None:
            hand.news.extend(events)
        if not self.conduct.acks_moves and (answer := hand.echoed(events)) is not None:
            out.append(Outcome(answer, "acknowledged"))
        if hand.job is not None and not view.asked:
            hand.drop_job()
        if hand.held is not None:
            self._take_held(hand, now, out)

    def _hand_ended(self, event: HandEnded, now: float, out: list[Output]) -> None:
        if self.hand is not None and self.hand.name == event.hand:
            self._close_hand(out, event.reason, event.scores)

    def _table_ended(self, event: TableEnded, now: float, out: list[Output]) -> None:
        self._close_hand(out, event.reason, None if event.reason == "aborted" else event.scores)
        out.append(Closed(self.key.table, event.reason))

    def _attends(self, event: Presence | ServerActedFor, now: float, out: list[Output]) -> None:
        if 0 <= event.seat < self.game.num_seats:  # the log's reader takes no other
            self.attendance.receive(event, self.hand, self.players)

    # ----------------------------------------------------------------------------------------------- action events

    def _action_request(self, event: ActionRequest, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None or hand.name != event.hand:
            self._unknown_hand(event.hand, out)
            return
        job, answer = hand.job, hand.answer
        if job is not None:
            if job.request_id == event.request_id:
                return
            hand.drop_job()
        if answer is not None and answer.request_id == event.request_id and answer.sent_in == self.epoch:
            return  # answered once
        hand.held = (event, now)
        if self.fresh and hand.game_id:
            self._take_held(hand, now, out)

    def _request_withdrawn(self, event: RequestWithdrawn, now: float, out: list[Output]) -> None:
        self._forget_request(event.request_id, "withdrawn", event.reason or None, out)

    def _server_acted(self, event: ServerActedForUs, now: float, out: list[Output]) -> None:
        self._forget_request(event.request_id, "server_acted", event.action, out)

    def _forget_request(self, request_id: str | None, kind: Any, detail: str | None, out: list[Output]) -> None:
        """The lobby does not want an answer to this request (None: to the open one) any more."""
        hand = self.hand
        if hand is None:
            return
        if hand.job is not None and request_id in (None, hand.job.request_id):
            hand.drop_job()
        if hand.held is not None and request_id in (None, hand.held[0].request_id):
            hand.held = None
        answer = hand.answer
        if answer is not None and request_id in (None, answer.request_id):
            out.append(Outcome(answer, kind, detail))
            hand.answer, hand.due_at = None, NEVER

    def _acknowledged(self, event: MoveAcknowledged, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None or hand.answer is None or hand.answer.request_id != event.request_id:
            return
        if hand.job is None:
            hand.due_at = NEVER
        out.append(Outcome(hand.answer, "acknowledged"))

    def _was_rejected(self, event: Rejected, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None or hand.answer is None or hand.answer.request_id != event.request_id:
            return
        answer = hand.answer
        out.append(Outcome(answer, "rejected", event.reason))
        hand.refuse(answer, self.game.parse(answer.actions[0]))
        if event.resync:
            self._distrust(hand, f"rejected: {event.reason}", out)

    # ----------------------------------------------------------------------------------------------------- deciding

    def opened(self, hand: Hand, now: float, logged: Sequence[Logged] = ()) -> list[Output]:
        """The shell opened the hand (it has ``game_id``, ``table``, ``plan``); ``logged``: what the log knows of it."""
        out: list[Output] = []
        if hand is self.hand:
            hand.logged = {move.request_id: move for move in logged}
            if self.fresh:
                self._take_held(hand, now, out)
        return out

    def _take_held(self, hand: Hand, now: float, out: list[Output]) -> None:
        """Begin the request that waits, if the view stands where the lobby asks."""
        if hand.held is None or not hand.game_id:
            return
        request, arrived = hand.held
        view = hand.view
        seq = view.seq
        if request.seq is not None and request.seq != seq:
            if request.seq < seq:
                hand.held = None  # asked at a position that is past
            else:
                self._distrust(hand, f"asked after {request.seq} events, but {seq} seen", out)
            return
        if not view.asked:
            self._distrust(hand, "asked, but our view says that it is not our turn", out)
            return
        hand.held = None
        again = hand.answer_again(request.request_id, seq, self.epoch, self.game.parse)
        if again is not None:
            out.append(again)
            return
        self._ask(hand, request, arrived, seq, out)

    def _ask(self, hand: Hand, request: ActionRequest, arrived: float, seq: int, out: list[Output]) -> None:
        legal = hand.open_actions(seq)
        if hand.answer is not None and hand.answer.sent_in < 0:
            out.append(Outcome(hand.answer, "superseded"))
            hand.answer = None
        if not len(legal) or hand.attempt >= MAX_ATTEMPTS:
            self._give_up(hand, "every action that we may take here was refused", out)
            return
        hand.raw = request.raw
        times = window(self.conduct.clock, arrived, request.grant_ms, request.bank_ms)
        hand.steps = []
        self._start(hand, Job(hand, request.request_id, hand.view, legal, times, seq, hand.attempt), out)

    def _start(self, hand: Hand, job: Job, out: list[Output]) -> None:
        hand.job = job
        hand.lent = True
        fallback.start(job)
        out.append(job)

    def decided(
        self,
        job: Job,
        ticket: int,
        decision: Decision | None,
        error: str | None,
        now: float,
        by: DecidedBy = "strategy",
    ) -> list[Output]:
        """A worker is done with ``job``: a decision and who made it, or why there is none ("error", "late", …)."""
        out: list[Output] = []
        hand = job.hand
        if hand.job is not job or ticket != job.ticket:
            return out  # superseded
        if hand.view is job.view:
            hand.lent = False
        if decision is not None and job.admits(decision.action, self.game.num_actions):
            job.decision, job.decided_by = decision, by
            job.elapsed_s = now - job.window.arrival
            self._decided(hand, job, out)
            return out
        if decision is not None:
            error = "illegal"
        if job.link:
            self._decide_last(hand, job, now, out)
        else:
            self._fall_back(hand, job, error or "error", out)
        return out

    def _decided(self, hand: Hand, job: Job, out: list[Output]) -> None:
        decision = job.decision
        assert decision is not None
        if self.conduct.takes_composites:
            after = job.view.clone()
            after.apply(decision.action)
            if after.asked:
                self._next_step(hand, job, after, out)
                return
            hand.steps.append(job)
            steps: Sequence[Job] = hand.steps
            hand.steps = []
            actions = tuple(self.game.notation(step.decision.action) for step in steps if step.decision is not None)
        else:
            steps = (job,)
            actions = (self.game.notation(decision.action),)
        answer = Answer(hand, job.request_id, job.seq, job.attempt, actions, steps)
        answer.not_before = job.window.not_before
        hand.job, hand.answer = None, answer
        hand.due_at = NEVER
        out.append(answer)

    def _next_step(self, hand: Hand, job: Job, after: Any, out: list[Output]) -> None:
        hand.steps.append(job)
        step = Job(hand, job.request_id, after, after.legal(), job.window, job.seq, job.attempt)
        step.substep = job.substep + 1
        if job.link:
            step.link, step.reason = job.link, job.reason
        hand.job = step
        out.append(step)

    def _fall_back(self, hand: Hand, job: Job, reason: str, out: list[Output]) -> None:
        fallback.fall_back(job, reason)
        hand.lent = True
        out.append(job)

    def _decide_last(self, hand: Hand, job: Job, now: float, out: list[Output]) -> None:
        job.decision, job.decided_by = fallback.decide_last(job)
        job.elapsed_s = now - job.window.arrival
        self._decided(hand, job, out)

    def expire(self, hand: Hand, now: float) -> list[Output]:
        """``hand.due_at`` has come."""
        out: list[Output] = []
        if hand is not self.hand or now < hand.due_at:
            return out
        hand.due_at = NEVER
        job = hand.job
        if job is None:
            if hand.answer is not None and hand.answer.sent_in == self.epoch:
                self._distrust(hand, "no sign that our move arrived", out)
            return out
        if fallback.is_over(job, now):
            self._decide_last(hand, job, now, out)
        else:
            out.append(Late(job, job.ticket))
            self._fall_back(hand, job, "late", out)
        return out

    # ------------------------------------------------------------------------------------------------------ sending

    def may_send(self, answer: Answer) -> bool:
        """Whether the answer, now durable, is still wanted; if so it counts as sent."""
        hand = answer.hand
        if hand is not self.hand or hand.answer is not answer or not self.fresh or answer.sent_in == self.epoch:
            return False
        answer.sent_in = self.epoch
        hand.resyncs = 0
        return True

    def expect_echo(self, answer: Answer, now: float) -> None:
        """The answer left: watch for a sign that it arrived."""
        if answer.hand.job is None:
            answer.hand.due_at = now + self.conduct.echo_s

    def disconnected(self) -> None:
        """The connection is lost: nothing is decided until a fresh snapshot, and a fresh request, have come."""
        self.epoch += 1
        self.fresh = False
        if self.hand is not None:
            self.hand.drop_job()
            self.hand.held = None
            self.hand.due_at = NEVER

    def abort(self) -> list[Output]:
        """The lobby, or we, gave the table up: aborted, not lost."""
        out: list[Output] = []
        self._close_hand(out, "aborted", None)
        out.append(Closed(self.key.table, "aborted"))
        return out

    # ------------------------------------------------------------------------------------------------------ helpers

    def _open_hand(self, name: str, seat: int, players: tuple[PlayerInfo, ...], out: list[Output]) -> bool:
        try:
            view = self.game.new_view(seat)
        except ValueError as error:
            out.append(GaveUp(self.key.table, f"hand {name}: {error}"))
            return False
        self.players = seated = players or self.players
        if self.conduct.consents:
            seated = consenting(seated, self.key.account, seat)
        self.hand = Hand(self, name, seat, seated, view)
        self.hand.away = self.attendance.away_from(seated, self.game.num_seats)
        out.append(HandOpening(self.hand, self.lookup))
        self.lookup = False
        return True

    def _close_hand(self, out: list[Output], reason: str, scores: tuple[float, ...] | None) -> None:
        hand = self.hand
        if hand is None:
            return
        hand.drop_job()
        self.hand = hand.answer = hand.held = None
        hand.due_at = NEVER
        out.append(HandClosed(hand, reason, scores))

    def _unknown_hand(self, name: str, out: list[Output]) -> None:
        """Something about a hand whose beginning we missed (or whose end we saw)."""
        if self.fresh and self.hand is None and not self.lookup:
            return  # an echo of a hand that is over
        self.fresh = False
        if self.hand is None:
            return
        self._distrust(self.hand, f"message about hand {name}", out)

    def _distrust(self, hand: Hand, reason: str, out: list[Output]) -> None:
        """Our view may be wrong: decide nothing until a snapshot came. After some that did not help, fall silent."""
        hand.drop_job()
        self.fresh = False
        hand.due_at = NEVER
        if hand.resyncs >= MAX_RESYNCS:
            self._give_up(hand, reason, out)
            return
        hand.resyncs += 1
        out.append(NeedSnapshot(self.key.table, reason))

    def _give_up(self, hand: Hand, reason: str, out: list[Output]) -> None:
        hand.held = None
        if not hand.given_up:
            hand.given_up = True
            out.append(GaveUp(self.key.table, reason))


_HANDLERS: dict[type, Callable[[Session, Any, float, list[Output]], None]] = {
    Seated: Session._seated,
    HandStarted: Session._hand_started,
    Snapshot: Session._snapshot,
    Delta: Session._delta,
    Presence: Session._attends,
    HandEnded: Session._hand_ended,
    TableEnded: Session._table_ended,
    ActionRequest: Session._action_request,
    RequestWithdrawn: Session._request_withdrawn,
    MoveAcknowledged: Session._acknowledged,
    Rejected: Session._was_rejected,
    ServerActedForUs: Session._server_acted,
    ServerActedFor: Session._attends,
}
