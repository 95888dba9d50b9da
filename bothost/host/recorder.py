"""Turns what happens at the tables into rows of the decision log, and hands them over in batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import uuid_utils

from bothost.host.latency import Latency
from bothost.host.plans import Loaded, Plan
from bothost.rules.game import View
from bothost.store.records import (
    DecisionRecord,
    EventsRecord,
    GameEndRecord,
    GameRecord,
    OutcomeRecord,
    Record,
    Role,
    SnapshotRecord,
)
from bothost.strategy import Decision
from bothost.tables.hand import Answer, Hand, HandClosed, Job, Outcome, SnapshotTaken

FIRST_LEGAL = "first-legal"
"""Name of the strategy that answers when all others failed."""
RAW_BYTES = 65_536
"""A longer frame is kept cut off."""
EVENTS = 16
"""Events of a hand that make a row; fewer wait for more, or for the end of the hand. A kill costs the log at most these
events: after the restart the lobby's snapshot stands in for them."""
LINGER_S = 0.025
"""How long rows that nothing waits for may wait for others. Outcomes and events lie all over their tables, a page each,
which costs as much for one row as for ten: on a busy host they go into one commit of five. A kill costs what lingered:
outcomes and events, with ``async`` decisions too, and what is being written."""

_json = msgspec.json.Encoder(enc_hook=repr).encode


def new_id() -> bytes:
    """A uuid7, which grows with time."""
    return uuid_utils.uuid7().bytes


def now_us() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


class Log(Protocol):
    """What the recorder needs of ``bothost.store.DecisionLog``."""

    @property
    def full(self) -> bool: ...
    def submit(self, records: Sequence[Record]) -> asyncio.Future[None]: ...


class Recorder:
    """The one writer of a host. Rows are collected; decisions are submitted once per turn of the event loop.

    ``before_send``: answers wait until their rows are durable; otherwise they leave at once, but for those that find
    the log's queue full: no table may go on faster than rows are written for ever.
    """

    def __init__(self, log: Log, *, host: str, config_hash: str, before_send: bool) -> None:
        self._log = log
        self._host = host
        self._config_hash = config_hash
        self._before_send = before_send
        self._loop = asyncio.get_running_loop()
        self._records: list[Record] = []
        """What is handed over next."""
        self._deferred: list[Record] = []
        """What lingers first."""
        self._answers: list[Answer] = []
        self._soon = False
        """Whether ``flush`` is called in this turn of the event loop."""
        self._later = False
        """Whether it is called after ``LINGER_S``."""
        self.send: Callable[[list[Answer]], None] = lambda answers: None
        """Called with answers that may leave now."""
        self.decisions = 0
        """Decision rows handed to the log."""
        self.durable = Latency()
        """From handing rows over until they are durable; one batch at a time is timed."""
        self._timed_since: float | None = None
        """When the batch that is being timed was handed over."""
        self._closed = False

    # -------------------------------------------------------------------------------------------------- what happens

    def hand_opened(self, hand: Hand, attributes: Any) -> None:
        """A hand began; its ``game_id``, ``table`` and ``plan`` are set."""
        table, plan = hand.table, hand.plan
        assert table is not None
        lobby, account, name = hand.session.key
        self._records.append(
            GameRecord(
                game_id=hand.game_id,
                host=self._host,
                lobby=lobby,
                account=account,
                table=name,
                hand=hand.name,
                game=table.game.name,
                rules=_text(table.game.rules),
                format_version=table.game.format_version,
                seat=hand.seat,
                players=_text(hand.players),
                seed=table.seed,
                strategy=plan.strategy.name,
                strategy_version=plan.strategy.version,
                model_sha256=plan.strategy.sha256,
                config_hash=self._config_hash,
                attributes=_text(attributes),
                started_us=now_us(),
            )
        )
        self._linger()

    def hand_closed(self, event: HandClosed) -> None:
        """A hand ended: the rest of its events, and its result."""
        hand = event.hand
        self.flush_events(hand)
        scores = None if event.scores is None else _text(event.scores)
        self._add(
            GameEndRecord(
                game_id=hand.game_id,
                seat=hand.seat,
                reason=event.reason,
                scores=scores,
                ended_us=now_us(),
                away=_text(sorted(hand.away)),
            )
        )

    def hand_lost(self, game_id: bytes, seat: int, reason: str, scores: tuple[float, ...] | None) -> None:
        """A hand of an earlier process ended, and we do not know how it went on."""
        logged = None if scores is None else _text(scores)
        self._add(GameEndRecord(game_id=game_id, seat=seat, reason=reason, scores=logged, ended_us=now_us()))

    def snapshot(self, event: SnapshotTaken) -> None:
        """A snapshot replaced the view: the events before it, then the snapshot."""
        hand = event.hand
        seq, events = event.before
        if events:
            self._add(EventsRecord(hand.game_id, hand.seat, seq, "\n".join(events)))
        self._add(SnapshotRecord(hand.game_id, hand.seat, event.seq, _text(event.view), now_us()))

    def flush_events(self, hand: Hand) -> None:
        """Hand the events so far to the log."""
        if hand.unlogged and hand.game_id:
            seq, events = hand.take_events()
            self._add(EventsRecord(hand.game_id, hand.seat, seq, "\n".join(events)))

    def outcome(self, event: Outcome) -> None:
        """What became of a move."""
        at = now_us()
        # A restarted host reads what was refused: that goes with the decision that follows at the latest.
        rows = self._records if event.kind == "rejected" else self._deferred
        rows += [OutcomeRecord(decision_id, event.kind, event.detail, at) for decision_id in event.answer.ids]
        self._linger()

    def sent(self, answer: Answer, at_us: int) -> None:
        for decision_id in answer.ids:
            self._add(OutcomeRecord(decision_id, "sent", None, at_us))

    def answer(self, answer: Answer) -> None:
        """Log the decisions of a move, then let it leave. A move that is in the log already leaves at once."""
        if answer.state == "logging":
            return  # it leaves when its rows are durable
        if answer.state == "new":
            answer.state = "logging"
            steps, hand = answer.steps, answer.hand
            at = now_us()
            ids = []
            for job in steps:
                job.id = new_id()
                ids.append(job.id)
                self._records.append(self._decision(hand, hand.plan, job, at))
            self.decisions += len(ids)
            answer.ids = tuple(ids)
            if len(hand.unlogged) >= EVENTS:
                self.flush_events(hand)
        self._answers.append(answer)
        if not self._soon:
            self._soon = True
            self._loop.call_soon(self.flush)

    # --------------------------------------------------------------------------------------------------------- rows

    def _decision(self, hand: Hand, plan: Plan, job: Job, at: int) -> DecisionRecord:
        assert job.decision is not None
        by: Loaded | None = plan.strategy
        if job.decided_by == "fallback":
            by = plan.fallback
        elif job.decided_by == "first-legal":
            by = None
        raw = hand.raw
        kept = None if raw is None else (raw.encode() if isinstance(raw, str) else raw)[:RAW_BYTES]
        return self._row(
            job.id, "live", job, job.view, job.decision, by, job.reason or plan.reason, job.elapsed_s, kept, at
        )

    def shadow(self, job: Job, view: View, decision: Decision, by: Loaded, elapsed_s: float) -> None:
        """What a shadow would have done where ``job`` was decided; ``view`` is as it was then."""
        self._add(self._row(new_id(), "shadow", job, view, decision, by, None, elapsed_s, None, now_us()))

    def _row(
        self,
        row_id: bytes,
        role: Role,
        job: Job,
        view: View,
        decision: Decision,
        by: Loaded | None,
        fallback: str | None,
        elapsed_s: float,
        raw: bytes | None,
        at: int,
    ) -> DecisionRecord:
        hand, window = job.hand, job.window
        assert hand.table is not None
        action = int(decision.action)
        lobby, _, table = hand.session.key
        # By position, in the order of DecisionRecord.
        return DecisionRecord(
            row_id,
            hand.game_id,
            hand.seat,
            job.seq,
            job.substep,
            job.attempt,
            role,
            self._host,
            lobby,
            table,
            job.request_id,
            hand.table.game.name,
            decision.phase or view.phase,
            view.hash(),
            view.to_bytes(),
            job.legal.tobytes(),
            None if decision.policy is None else _floats(decision.policy, len(job.legal)),
            None if decision.values is None else _floats(decision.values, len(job.legal)),
            None if decision.value is None else _number(decision.value),
            action,
            view.notation(action),
            by.name if by is not None else FIRST_LEGAL,
            by.version if by is not None else "1",
            decision.model_sha256 or (by.sha256 if by is not None else None),
            decision.encoder_version,
            None if decision.stats is None else _text(decision.stats),
            fallback,
            (window.answer - window.arrival) * 1000.0,
            elapsed_s * 1000.0,
            self._config_hash,
            hand.table.seed,
            raw,
            at,
        )

    def use_config(self, config_hash: str) -> None:
        """Rows from now on are decided under another configuration."""
        self._config_hash = config_hash

    # ----------------------------------------------------------------------------------------------------- handing over

    def _add(self, record: Record) -> None:
        """A row that nothing waits for."""
        self._deferred.append(record)
        self._linger()

    def _linger(self) -> None:
        if not self._later:
            self._later = True
            self._loop.call_later(LINGER_S, self._lingered)

    def _lingered(self) -> None:
        self._later = False
        self._take_unhurried()
        if self._records and not self._soon:
            self.flush()

    def _take_unhurried(self) -> None:
        deferred, self._deferred = self._deferred, []
        self._records.extend(deferred)

    def close(self) -> None:
        """Submit what is left. What happens from now on is not logged: the log is about to be closed."""
        self._take_unhurried()
        records, self._records = self._records, []
        if records:
            self._log.submit(records)
        self._closed = True

    def flush(self) -> None:
        """Submit what was collected."""
        self._soon = False
        if self._closed:
            return
        answers, self._answers = self._answers, []
        if answers and not self._before_send and not self._log.full:
            self._leave(answers)
            self._linger()
            return
        if not self._before_send:  # all rows linger alike
            self._take_unhurried()
        records, self._records = self._records, []
        durable = self._log.submit(records) if records else None
        if durable is not None and self._timed_since is None:
            self._timed_since = time.monotonic()
            durable.add_done_callback(self._timed)
        if not answers:
            return
        if durable is None:
            self._leave(answers)
        else:
            durable.add_done_callback(lambda done: self._durable(done, answers))

    def _durable(self, done: asyncio.Future[None], answers: list[Answer]) -> None:
        if done.exception() is None:
            self._leave(answers)

    def _timed(self, done: asyncio.Future[None]) -> None:
        since, self._timed_since = self._timed_since, None
        if since is not None and done.exception() is None:
            self.durable.observe(time.monotonic() - since)

    def waiting_s(self, now: float) -> float:
        """How long rows have been waiting to become durable."""
        return 0.0 if self._timed_since is None else now - self._timed_since

    def _leave(self, answers: list[Answer]) -> None:
        for answer in answers:
            answer.state = "logged"
        self.send(answers)


def _text(value: Any) -> str:
    return _json(value).decode()


def _floats(values: Any, length: int) -> bytes | None:
    """Little-endian float32; None where the plugin's array does not fit the legal actions."""
    try:
        array = np.asarray(values, dtype="<f4")
    except (TypeError, ValueError):
        return None
    return array.tobytes() if array.shape == (length,) else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
