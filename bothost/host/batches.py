"""Submits rows to the decision log in batches, and sends each answer when its rows are durable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from bothost.host.latency import Latency
from bothost.store import DecisionLog, Record
from bothost.tables.hand import Answer

LINGER_S = 0.025
"""How long rows may wait for others if no answer needs them. Outcomes and events are spread over pages of their tables,
so a commit with one row costs as much as a commit with ten. On a busy host, one commit in five contains them all. A
kill loses the rows that wait here; with ``async`` also decisions."""


class Batches:
    """Collects rows, and submits those of decisions once per turn of the event loop.

    ``before_send``: answers wait until their rows are durable. Otherwise they are sent at once, unless the log's queue
    is full, so that the tables cannot run ahead of the log without limit.
    """

    def __init__(self, log: DecisionLog, *, before_send: bool) -> None:
        self._log = log
        self._before_send = before_send
        self._loop = asyncio.get_running_loop()
        self._next: list[Record] = []
        self._deferred: list[Record] = []
        self._answers: list[Answer] = []
        self._soon = False
        """Whether ``flush`` is called in this turn of the event loop."""
        self._later = False
        """Whether the deferred rows are submitted after ``LINGER_S``."""
        self.send: Callable[[list[Answer]], None] = lambda answers: None
        """Called with answers that may be sent now."""
        self.durable = Latency()
        """Time from submitting rows until they are durable."""
        self._submitted: dict[asyncio.Future[None], float] = {}
        """What is not durable yet, oldest first, and when its first rows were submitted."""
        self._closed = False

    def add(self, *records: Record) -> None:
        """Add rows that no answer needs. They may wait for others."""
        self._deferred.extend(records)
        self._linger()

    def add_next(self, records: Iterable[Record]) -> None:
        """Add rows that the next decision's batch must contain."""
        self._next.extend(records)
        self._linger()

    def add_answer(self, answer: Answer, records: Iterable[Record] = ()) -> None:
        """Add an answer, and the rows that must be durable before it is sent."""
        self._next.extend(records)
        self._answers.append(answer)
        if not self._soon:
            self._soon = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Submit the collected rows."""
        self._soon = False
        if self._closed:
            return
        answers, self._answers = self._answers, []
        if answers and not self._before_send and not self._log.full:
            self._send(answers)
            self._linger()
            return
        if not self._before_send:  # then all rows are deferred
            self._take_deferred()
        records, self._next = self._next, []
        durable = self._log.submit(records) if records else None
        if durable is not None and durable not in self._submitted:
            self._submitted[durable] = time.monotonic()
            durable.add_done_callback(self._done)
        if not answers:
            return
        if durable is None:
            self._send(answers)
        else:
            durable.add_done_callback(lambda done: self._send(answers) if done.exception() is None else None)

    def close(self) -> None:
        """Submit all rows. Later ones are dropped, because the log closes next."""
        self._take_deferred()
        records, self._next = self._next, []
        if records:
            self._log.submit(records)
        self._closed = True

    def waiting_s(self, now: float) -> float:
        """How long rows have been waiting to become durable."""
        return now - next(iter(self._submitted.values()), now)

    def _linger(self) -> None:
        if not self._later:
            self._later = True
            self._loop.call_later(LINGER_S, self._submit_deferred)

    def _submit_deferred(self) -> None:
        self._later = False
        self._take_deferred()
        if self._next and not self._soon:
            self.flush()

    def _take_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        self._next.extend(deferred)

    def _done(self, durable: asyncio.Future[None]) -> None:
        since = self._submitted.pop(durable)
        if durable.exception() is None:
            self.durable.observe(time.monotonic() - since)

    def _send(self, answers: list[Answer]) -> None:
        for answer in answers:
            answer.state = "logged"
        self.send(answers)
