"""The requests of one table. Each becomes a job, and the job's decision becomes the only answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bothost.messages import ActionRequest, MoveAcknowledged, Rejected, RequestWithdrawn, ServerActedForUs
from bothost.rules.game import Game
from bothost.strategy import Decision
from bothost.tables import fallback
from bothost.tables.clock import NEVER, window
from bothost.tables.conduct import Conduct
from bothost.tables.hand import Answer, DecidedBy, Hand, Job, Late, Outcome, OutcomeKind, Output
from bothost.tables.trust import Trust

MAX_ATTEMPTS = 4
"""After this many refused answers at one position, we do not answer there any more."""

RequestNews = RequestWithdrawn | ServerActedForUs | MoveAcknowledged | Rejected
"""Events about a request or our answer to it."""


class Requests:
    """Turns requests into jobs and decisions into answers. All state of a request is in its ``Hand``."""

    __slots__ = ("_conduct", "_game", "_trust")

    def __init__(self, game: Game, conduct: Conduct, trust: Trust) -> None:
        self._game = game
        self._conduct = conduct
        self._trust = trust

    # ------------------------------------------------------------------------------------------------------ asking

    def receive(self, hand: Hand, event: ActionRequest, now: float, out: list[Output]) -> None:
        """Handle a request for an action."""
        if event.request_id in hand.answered:
            return
        if hand.job is not None:
            if hand.job.request_id == event.request_id:
                return
            hand.drop_job()
        hand.held = (event, now)
        if self._trust.fresh and hand.game_id:
            self.start_held(hand, out)

    def start_held(self, hand: Hand, out: list[Output]) -> None:
        """Start the waiting request, if our view has reached the position where the lobby asks."""
        if hand.held is None or not hand.game_id:
            return
        request, arrived = hand.held
        view = hand.view
        seq = view.seq
        if request.seq is not None and request.seq != seq:
            if request.seq < seq:
                hand.held = None  # the request is outdated
            else:
                self._trust.distrust(hand, f"the lobby asks after {request.seq} events, but we received {seq}", out)
            return
        if not view.asked:
            self._trust.distrust(hand, "the lobby asks, but in our view it is not our turn", out)
            return
        hand.held = None
        again = hand.answer_again(request.request_id, seq, self._trust.epoch, self._game.parse)
        if again is not None:
            out.append(again)
            return
        self._ask(hand, request, arrived, seq, out)

    def _ask(self, hand: Hand, request: ActionRequest, arrived: float, seq: int, out: list[Output]) -> None:
        legal = hand.open_actions(seq)
        self.drop_unsent(hand, out)
        if not len(legal) or len(hand.rejected) >= MAX_ATTEMPTS:
            self._trust.give_up(hand, "the lobby refused our actions at this position", out)
            return
        hand.raw = request.raw
        times = window(self._conduct.clock, arrived, request.grant_ms, request.bank_ms)
        job = Job(hand, request.request_id, hand.view, legal, times, seq, hand.attempt)
        hand.steps, hand.job, hand.lent = [], job, True
        fallback.start(job)
        out.append(job)

    # ----------------------------------------------------------------------------------------------------- deciding

    def decided(
        self,
        job: Job,
        ticket: int,
        decision: Decision | None,
        error: str | None,
        now: float,
        by: DecidedBy = "strategy",
    ) -> list[Output]:
        """Take a worker's result: a decision and who made it, or why there is none ("error", "late", …)."""
        out: list[Output] = []
        hand = job.hand
        if hand.job is not job or ticket != job.ticket:
            return out  # superseded
        if hand.view is job.view and not job.link:  # else the strategy may still read it, although it is late
            hand.lent = False
        if decision is not None and job.admits(decision.action, self._game.num_actions):
            job.decision, job.decided_by = decision, by
            job.elapsed_s = now - job.window.arrival
            self._complete(hand, job, out)
        elif job.link:
            self._decide_last(hand, job, now, out)
        else:
            self._fall_back(hand, job, "illegal" if decision is not None else error or "error", out)
        return out

    def _complete(self, hand: Hand, job: Job, out: list[Output]) -> None:
        """Use the job's decision: ask for the next step of a composite move, or answer."""
        decision = job.decision
        assert decision is not None
        if self._conduct.takes_composites:
            after = job.view.clone()
            after.apply(decision.action)
            if after.asked:
                self._next_step(hand, job, after, out)
                return
            hand.steps.append(job)
            steps: Sequence[Job] = hand.steps
            hand.steps = []
            actions = tuple(self._game.notation(step.decision.action) for step in steps if step.decision is not None)
        else:
            steps = (job,)
            actions = (self._game.notation(decision.action),)
        answer = Answer(hand, job.request_id, job.seq, job.attempt, actions, steps)
        wait_ms = decision.wait_ms
        answer.not_before = job.window.not_before if wait_ms is None else job.window.waiting(wait_ms)
        hand.job, hand.answer, hand.attempt = None, answer, job.attempt + 1
        hand.due_at = NEVER
        out.append(answer)

    def _next_step(self, hand: Hand, job: Job, after: Any, out: list[Output]) -> None:
        hand.steps.append(job)
        step = Job(hand, job.request_id, after, after.legal(), job.window, job.seq, job.attempt)
        step.substep = job.substep + 1
        if job.link:
            step.link, step.reason = job.link, job.reason
        hand.job = step
        if job.decided_by == fallback.CHAIN[-1].by:  # no other link is left for this move
            self._decide_last(hand, step, job.window.arrival + job.elapsed_s, out)
        else:
            out.append(step)

    def _fall_back(self, hand: Hand, job: Job, reason: str, out: list[Output]) -> None:
        fallback.fall_back(job, reason)
        hand.lent = True
        out.append(job)

    def _decide_last(self, hand: Hand, job: Job, now: float, out: list[Output]) -> None:
        job.decision, job.decided_by = fallback.decide_last(job)
        job.elapsed_s = now - job.window.arrival
        self._complete(hand, job, out)

    def expire(self, hand: Hand, now: float) -> list[Output]:
        """Handle a passed deadline, ``hand.due_at``."""
        out: list[Output] = []
        if now < hand.due_at:
            return out
        hand.due_at = NEVER
        job = hand.job
        if job is None:
            if hand.answer is not None and hand.answer.sent_in == self._trust.epoch:
                self._trust.distrust(hand, "no sign that our move arrived", out)
        elif fallback.is_over(job, now):
            self._decide_last(hand, job, now, out)
        else:
            out.append(Late(job, job.ticket))
            self._fall_back(hand, job, "late", out)
        return out

    # ------------------------------------------------------------------------------------------------------ sending

    def drop_unsent(self, hand: Hand, out: list[Output]) -> None:
        """Drop an answer that waits to be sent, because play continued without it."""
        if hand.answer is not None and hand.answer.sent_in < 0:
            out.append(Outcome(hand.answer, "superseded"))
            hand.close_answer()

    def may_send(self, answer: Answer) -> bool:
        """Whether to send the answer, now that it is durable. If so, it counts as sent."""
        hand = answer.hand
        if hand.answer is not answer or not self._trust.fresh or answer.sent_in == self._trust.epoch:
            return False
        answer.sent_in = self._trust.epoch
        hand.answered.add(answer.request_id)
        hand.resyncs = 0
        return True

    def expect_echo(self, answer: Answer, now: float) -> None:
        """Set the deadline for a sign that the sent answer arrived."""
        if answer.hand.job is None:
            answer.hand.due_at = now + self._conduct.echo_s

    def settle(self, hand: Hand, event: RequestNews, out: list[Output]) -> None:
        """Handle an event about a request or our answer to it."""
        if isinstance(event, RequestWithdrawn):
            self._drop(hand, event.request_id, "withdrawn", event.reason or None, out)
        elif isinstance(event, ServerActedForUs):
            self._drop(hand, event.request_id, "server_acted", event.action, out)
        elif (answer := hand.answer) is None or answer.request_id != event.request_id:
            return
        elif isinstance(event, MoveAcknowledged):
            if hand.job is None:
                hand.due_at = NEVER
            out.append(Outcome(answer, "acknowledged"))
        else:
            out.append(Outcome(answer, "rejected", event.reason))
            hand.refuse(answer, self._game.parse(answer.actions[0]))
            if event.resync:
                self._trust.distrust(hand, f"rejected: {event.reason}", out)

    def _drop(
        self, hand: Hand, request_id: str | None, kind: OutcomeKind, detail: str | None, out: list[Output]
    ) -> None:
        """Drop a request that the lobby closed (None: the open one)."""
        if hand.job is not None and request_id in (None, hand.job.request_id):
            hand.drop_job()
        if hand.held is not None and request_id in (None, hand.held[0].request_id):
            hand.held = None
        answer = hand.answer
        if answer is not None and request_id in (None, answer.request_id):
            out.append(Outcome(answer, kind, detail))
            hand.close_answer()
            if kind == "server_acted":
                hand.away |= {hand.seat}
