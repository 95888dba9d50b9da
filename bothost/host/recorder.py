"""Turns events at the tables into rows of the decision log."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import uuid_utils

from bothost.host.batches import Batches
from bothost.host.logged_json import as_json, stats_as_json
from bothost.rules.game import View
from bothost.store import DecisionLog
from bothost.store.records import (
    ChatRecord,
    DecisionRecord,
    EventsRecord,
    GameEndRecord,
    GameRecord,
    OutcomeRecord,
    Role,
    SnapshotRecord,
)
from bothost.strategy import Decision
from bothost.tables.actor import Loaded
from bothost.tables.hand import Answer, Hand, HandClosed, Job, Outcome, SnapshotTaken

FIRST_LEGAL = "first-legal"
"""Name in the log for a decision of the last link of the fallback chain."""
RAW_BYTES = 65_536
"""Longer frames are truncated."""
EVENTS = 16
"""Minimum events in a row, except at the end of a hand and at slow tables. A kill loses fewer than these; after the
restart the lobby's snapshot replaces them."""
SLOW_US = 1_000_000
"""A decision that comes so long after the last events were logged takes those since along, so that who watches the
table in a browser sees them."""


def new_id() -> bytes:
    """A uuid7, which is ordered by time."""
    return uuid_utils.uuid7().bytes


def now_us() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


class Recorder:
    """Makes the rows of one host. ``batches`` submits them, and decides when answers may be sent."""

    def __init__(self, log: DecisionLog, *, host: str, config_hash: str, before_send: bool) -> None:
        self.batches = Batches(log, before_send=before_send)
        self.config_hash = config_hash
        """The hash of the present configuration."""
        self._host = host

    def hand_opened(self, hand: Hand, attributes: Any) -> None:
        """Log the start of a hand. Its ``game_id`` and ``actor`` are set."""
        table, by, level = hand.actor.table, hand.actor.plan.strategy, hand.actor.plan.level
        lobby, account, name = hand.key
        row = GameRecord(
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
            strategy=by.name,
            strategy_version=by.version,
            model_sha256=by.sha256,
            config_hash=self.config_hash,
            attributes=_text(attributes if level is None else {**attributes, "strategy_level": level}),
            started_us=now_us(),
        )
        hand.events_logged_us = row.started_us
        self.batches.add_next((row,))

    def hand_closed(self, event: HandClosed) -> None:
        """Log the end of a hand: the rest of its events, and its result."""
        hand = event.hand
        self.flush_events(hand)
        self.hand_lost(hand.game_id, hand.seat, event.reason, event.scores, _text(sorted(hand.away)))

    def hand_lost(
        self, game_id: bytes, seat: int, reason: str, scores: tuple[float, ...] | None, away: str | None = None
    ) -> None:
        """Log the end of a hand without further events, for example of an earlier process."""
        logged = None if scores is None else _text(scores)
        self.batches.add(
            GameEndRecord(game_id=game_id, seat=seat, reason=reason, scores=logged, ended_us=now_us(), away=away)
        )

    def snapshot(self, event: SnapshotTaken) -> None:
        """Log a snapshot that replaced the view, and the events before it."""
        hand = event.hand
        seq, events = event.before
        if events:
            self.batches.add(EventsRecord(hand.game_id, hand.seat, seq, "\n".join(events)))
        self.batches.add(SnapshotRecord(hand.game_id, hand.seat, event.seq, _text(event.view), now_us()))

    def flush_events(self, hand: Hand) -> None:
        """Log the events so far."""
        if hand.unlogged and hand.game_id:
            seq, events = hand.take_events()
            hand.events_logged_us = now_us()
            self.batches.add(EventsRecord(hand.game_id, hand.seat, seq, "\n".join(events)))

    def chat(self, game_id: bytes, seat: int, player: str, text: str) -> None:
        """Log what a player said at the table of a hand."""
        self.batches.add(ChatRecord(new_id(), game_id, seat, player, text, now_us()))

    def outcome(self, event: Outcome) -> None:
        """Log what happened to a move."""
        at = now_us()
        rows = [OutcomeRecord(decision_id, event.kind, event.detail, at) for decision_id in event.answer.ids]
        if event.kind == "rejected":  # a restarted host reads it, so it must be durable before the next decision
            self.batches.add_next(rows)
        else:
            self.batches.add(*rows)

    def answer(self, answer: Answer) -> None:
        """Log the decisions of a move, then send it. A move that is already in the log is sent at once."""
        if answer.state == "logging":
            return  # it is sent when its rows are durable
        if answer.state == "logged":
            self.batches.add_answer(answer)
            return
        answer.state = "logging"
        hand = answer.hand
        at = now_us()
        rows = []
        for job in answer.steps:
            job.id = new_id()
            rows.append(self._decision(hand, job, at))
        answer.ids = tuple([job.id for job in answer.steps])
        if len(hand.unlogged) >= EVENTS or at - hand.events_logged_us >= SLOW_US:
            self.flush_events(hand)
        self.batches.add_answer(answer, rows)

    def shadow(self, job: Job, view: View, decision: Decision, by: Loaded, elapsed_s: float) -> None:
        """Log a shadow's decision at the position of ``job``. ``view`` is a copy from that time."""
        self.batches.add(self._row(new_id(), "shadow", job, view, decision, by, None, elapsed_s, None, now_us()))

    def _decision(self, hand: Hand, job: Job, at: int) -> DecisionRecord:
        assert job.decision is not None
        plan = hand.actor.plan
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
        table = hand.actor.table
        action = int(decision.action)
        # Positional arguments in the order of DecisionRecord, because keywords are slower.
        return DecisionRecord(
            row_id,
            hand.game_id,
            hand.seat,
            job.seq,
            job.substep,
            job.attempt,
            role,
            self._host,
            hand.key.lobby,
            hand.key.table,
            job.request_id,
            table.game.name,
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
            None if decision.stats is None else stats_as_json(decision.stats).decode(),
            fallback,
            (window.answer - window.arrival) * 1000.0,
            elapsed_s * 1000.0,
            self.config_hash,
            table.seed,
            raw,
            at,
        )


def _text(value: Any) -> str:
    return as_json(value).decode()


def _floats(values: Any, length: int) -> bytes | None:
    """Little-endian float32; None if the plugin's array does not fit the legal actions."""
    try:
        array = np.asarray(values, dtype="<f4")
    except Exception:
        return None
    return array.tobytes() if array.shape == (length,) else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except Exception:
        return None
