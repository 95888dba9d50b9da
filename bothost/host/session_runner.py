"""Performs the outputs of all sessions of a host: requests decisions, logs and sends them, and watches deadlines.

The steps of a decision, each for all tables in one turn of the event loop: fold frames and collect requests → hand them
to the workers → check the results and collect their rows → submit the rows to the log → durable → send.
"""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol

from bothost.errors import ANY_FAILURE
from bothost.hookspecs import TableClosed
from bothost.host.deadlines import DeadlineTimer
from bothost.host.failures import Failures
from bothost.host.hooks import HookThread
from bothost.host.latency import Latency
from bothost.host.lookup import Find, Lookup, RecoveredHand
from bothost.host.plans import Plans
from bothost.host.recorder import Recorder, new_id
from bothost.host.worker import Result
from bothost.host.workers import Workers
from bothost.messages import Act
from bothost.strategy import Table
from bothost.tables.actor import Actor, Loaded
from bothost.tables.conduct import TableKey
from bothost.tables.hand import (
    Answer,
    Closed,
    GaveUp,
    Hand,
    HandClosed,
    HandOpening,
    Job,
    Late,
    NeedSnapshot,
    Outcome,
    Output,
    SnapshotTaken,
)
from bothost.tables.session import Session


class TableOwner(Protocol):
    """The tables of an account, as the runner uses them."""

    def act(self, command: Act, sent: Callable[[], None]) -> None: ...
    def resync(self, table: str, reason: str = "") -> None: ...
    def hand_over(self, session: Session, *, aborted: bool) -> None: ...
    def fail(self, session: Session) -> None: ...
    def no_strategy(self, session: Session) -> None: ...
    def given_up(self, event: GaveUp) -> None: ...
    def close_table(self, table: str, reason: str) -> None: ...


class Observer(Protocol):
    """Watches every decision and every end of a hand."""

    def answered(self, hand: Hand, job: Job) -> None: ...
    def closed(self, hand: Hand, score: float | None) -> None: ...


class Counters:
    """Counts of what a host did."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.decisions = 0
        self.hands = 0
        """Hands that ended, each as often as we had seats in it."""
        self.aborted = 0
        """Those of them without a score."""
        self.fallbacks: Counter[str] = Counter()
        """By reason."""
        self.results: dict[tuple[str, str, str], tuple[int, float]] = {}
        """(game, address, version) → (seats with a result, sum of its scores)."""

    def result(self, game: str, strategy: Loaded, score: float) -> None:
        key = game, strategy.address, strategy.version
        hands, total = self.results.get(key, (0, 0.0))
        self.results[key] = (hands + 1, total + score)


class SessionRunner:
    """Performs the outputs of sessions. There is one per host; it runs on the event loop."""

    def __init__(self, plans: Plans, recorder: Recorder, hooks: HookThread, find: Find) -> None:
        self.plans = plans
        self.recorder = recorder
        self.hooks = hooks
        self.workers: Workers
        self.observer: Observer | None = None
        """Watches decisions and the ends of hands."""
        self.counters = Counters()
        self._failures = Failures(plans)
        self.decide = Latency()
        """Time from a request's arrival to the worker's result, for one of every batch of results."""
        self.sending = Latency()
        """Time to pass a batch of durable answers to the sockets."""
        self.fatal: Callable[[BaseException], None] = lambda error: None
        self._loop = asyncio.get_running_loop()
        self._random = random.Random()  # seeded once, because asking the system costs a system call per hand
        self._deadlines = DeadlineTimer(self._expire)
        self._lookup = Lookup(find, self._looked_up, lambda error: self.fatal(error))
        self._owners: dict[Session, TableOwner] = {}
        self._sessions: dict[Hand, Session] = {}
        """The session of each open hand."""
        self._looking: dict[Hand, HandClosed | None] = {}
        """Hands that are looked up, so that they have no ``game_id`` yet, with their ends if they ended meanwhile."""
        self._early: dict[Hand, list[SnapshotTaken]] = {}
        """Snapshots of these hands."""
        recorder.batches.send = self.send
        self._outputs: dict[type, Callable[[Session, Any], None]] = {
            HandOpening: self._open_hand,
            HandClosed: self._close_hand,
            SnapshotTaken: self._snapshot,
            Outcome: lambda session, event: self._outcome(event),
            Late: lambda session, event: self.workers.late(event.job),
            NeedSnapshot: lambda session, event: self._owners[session].resync(event.table, event.reason),
            GaveUp: lambda session, event: self._owners[session].given_up(event),
            Closed: lambda session, event: self._owners[session].close_table(event.table, event.reason),
        }

    # ----------------------------------------------------------------------------------------------------- sessions

    def add(self, session: Session, owner: TableOwner) -> None:
        """Add a session. ``owner``: of the account at its table."""
        self._owners[session] = owner

    def remove(self, session: Session) -> None:
        """Remove a session that is over."""
        del self._owners[session]

    def perform(self, session: Session, outputs: list[Output]) -> None:
        """Perform a session's outputs in order. Those behind one that closes the table are dropped."""
        for output in outputs:
            kind = type(output)
            if kind is Job:
                self.workers.submit(output)  # type: ignore[arg-type]
                self._deadlines.watch(output.hand)  # type: ignore[union-attr]
            elif kind is Answer:
                self._answered(output)  # type: ignore[arg-type]
            elif session in self._owners:
                self._outputs[kind](session, output)

    def _answered(self, answer: Answer) -> None:
        hand = answer.hand
        # The lobby may ask again before the answer is sent: then it comes again, and its decisions are known.
        steps = answer.steps if answer.state == "new" else ()
        if (fell_back := next((job for job in steps if job.reason is not None), None)) is not None:
            self._failures.warn(fell_back)
        for job in steps:
            self.counters.decisions += 1
            if job.reason is not None:
                hand.failed = True
                self.counters.fallbacks[job.reason] += 1
                if job.decided_by == "first-legal":
                    self.workers.fallback_late()
            elif (reason := hand.actor.plan.reason) is not None:
                self.counters.fallbacks[reason] += 1
            if self.observer is not None:
                self.observer.answered(hand, job)
        self.recorder.answer(answer)

    def on_results(self, results: list[Result]) -> None:
        """Handle a batch of workers' results."""
        now = time.monotonic()
        self.decide.observe(now - results[0].job.window.arrival)
        for job, ticket, decision, error, by, cause in results:
            session = self._sessions.get(job.hand)
            if session is None:  # the hand is over, and this may have made a player meanwhile
                self.workers.close_hand(job.hand)
                continue
            try:
                outputs = session.requests.decided(job, ticket, decision, error, now, by)
                if outputs and outputs[0] is job and job.reason is not None:
                    self._failures.failed(job, cause)
                self.perform(session, outputs)
            except ANY_FAILURE:
                self._fail(session)

    def _fail(self, session: Session) -> None:
        """Give up a table because of the error that is being handled."""
        if (owner := self._owners.get(session)) is not None:
            owner.fail(session)

    def _outcome(self, event: Outcome) -> None:
        event.answer.hand.failed |= event.kind == "rejected"
        self.recorder.outcome(event)

    def send(self, answers: list[Answer]) -> None:
        """Send answers whose rows are durable."""
        now = time.monotonic()
        for answer in answers:
            hand = answer.hand
            session = self._sessions.get(hand)
            if session is not None and answer.not_before > now:
                self._loop.call_later(answer.not_before - now, self.send, [answer])
            elif session is not None and session.requests.may_send(answer):
                sent = functools.partial(self.recorder.outcome, Outcome(answer, "sent"))
                self._owners[session].act(Act(hand.key.table, answer.request_id, answer.actions), sent)
                self.hooks.decisions_sent(answer)
                session.requests.expect_echo(answer, now)
                self._deadlines.watch(hand)
            elif hand.answer is not answer:
                self.recorder.outcome(Outcome(answer, "superseded"))
        self.sending.observe(time.monotonic() - now)

    # -------------------------------------------------------------------------------------------------------- hands

    def _open_hand(self, session: Session, event: HandOpening) -> None:
        hand = event.hand
        lobby, account, _ = session.key
        plan = self.plans.plan(lobby, account, session.game, session.attributes)
        if plan is None:
            self._owners[session].no_strategy(session)
            return
        hand.actor = Actor(plan)
        self._sessions[hand] = session
        if plan.strategy.resolved.strategy.wants_events:
            hand.news = deque()
        if event.lookup:
            self._looking[hand] = None
            self._lookup.add(hand)
        else:
            self._opened(session, hand, None)

    def _opened(self, session: Session, hand: Hand, found: RecoveredHand | None) -> None:
        lobby, _, table = session.key
        seed = found.seed if found is not None else self._random.getrandbits(63)
        hand.actor.table = Table(
            lobby=lobby,
            table=table,
            game=session.game,
            seat=hand.seat,
            seed=seed,
            level=hand.actor.plan.level,
            attributes=session.attributes,
        )
        if found is None:
            hand.game_id = new_id()
            self.recorder.hand_opened(hand, session.attributes)
        else:
            hand.game_id = found.game_id
        self.hooks.fire("bothost_table_opened", table=hand.actor.table)
        for event in self._early.pop(hand, ()):
            self.recorder.snapshot(event)
        self.perform(session, session.opened(hand, found.moves if found is not None else ()))

    def looks_up(self, table: TableKey, name: str) -> bool:
        """Whether a hand is still looked up."""
        return any((hand.key, hand.name) == (table, name) for hand in self._looking)

    def _looked_up(self, hand: Hand, found: RecoveredHand | None) -> None:
        if hand not in self._looking:
            return  # another host continues it
        end = self._looking.pop(hand)
        if end is None:
            session = self._sessions[hand]
            try:
                self._opened(session, hand, found)
            except ANY_FAILURE:
                self._fail(session)
            return
        snapshots = self._early.pop(hand, ())
        if found is not None:
            hand.game_id = found.game_id
            for event in snapshots:
                self.recorder.snapshot(event)
            self.recorder.hand_closed(end)

    def _snapshot(self, session: Session, event: SnapshotTaken) -> None:
        if event.hand.game_id:
            self.recorder.snapshot(event)
        elif event.hand in self._looking:
            self._early.setdefault(event.hand, []).append(event)

    def _close_hand(self, session: Session, event: HandClosed) -> None:
        hand = event.hand
        self._sessions.pop(hand, None)
        self._deadlines.forget(hand)
        if hand in self._looking:
            self._looking[hand] = event
        elif hand.game_id:
            self.recorder.hand_closed(event)
            self.counters.hands += 1
            if event.scores is None:
                self.counters.aborted += 1
            elif event.score is not None:
                self.counters.result(hand.view.game.name, hand.actor.plan.strategy, event.score)
            if self.observer is not None:
                self.observer.closed(hand, event.score)
            closed = TableClosed(hand.actor.table, hand.game_id.hex(), event.reason, event.scores)
            self.hooks.fire("bothost_table_closed", event=closed)
            self.workers.close_hand(hand)
            self._owners[session].hand_over(session, aborted=event.reason == "aborted")

    def let_go(self, session: Session) -> None:
        """Release a session's hand, which another host continues. A hand that is still looked up is not opened."""
        hand, session.hand = session.hand, None
        if hand is None or self._sessions.pop(hand, None) is None:
            return
        self._looking.pop(hand, None)
        self._early.pop(hand, None)
        self._deadlines.forget(hand)
        self.recorder.flush_events(hand)
        self.workers.close_hand(hand)

    # -------------------------------------------------------------------------------------------------- life cycle

    def open_hands(self) -> Counter[Loaded]:
        """The strategies that play open hands, and how many each plays."""
        return Counter(hand.actor.plan.strategy for hand in self._sessions)

    def playing(self) -> set[Loaded]:
        """The strategies of open hands, and their fallbacks."""
        plans = [hand.actor.plan for hand in self._sessions]
        return {loaded for plan in plans for loaded in (plan.strategy, plan.fallback) if loaded is not None}

    def _expire(self, hand: Hand, now: float) -> None:
        if (session := self._sessions.get(hand)) is None:
            return
        try:
            self.perform(session, session.requests.expire(hand, now))
        except ANY_FAILURE:
            self._fail(session)

    def close(self) -> None:
        """Stop the deadlines and the look-ups, and report the warnings that were left out."""
        self._deadlines.close()
        self._lookup.close()
        self._failures.report()
