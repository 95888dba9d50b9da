"""Calls the notification hooks of plugins in a separate thread, from a bounded queue."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from typing import Any

import structlog

from bothost.hookspecs import DecisionMade
from bothost.plugins import Failure, Plugins
from bothost.tables.hand import Answer

_log = structlog.get_logger("bothost.host")

QUEUE = 10_000
"""Most notifications that wait for slow plugins. Further ones are dropped and counted."""


class HookThread:
    """Calls the notification hooks in order. A hook without listeners costs nothing."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._queue: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = queue.SimpleQueue()
        self._listened = {
            name
            for name in ("bothost_table_opened", "bothost_decision_made", "bothost_table_closed")
            if getattr(plugins.hook, name).get_hookimpls()
        }
        self.decisions = "bothost_decision_made" in self._listened
        """Whether any plugin listens to decisions."""
        self.dropped = 0
        self._failures: Counter[str] = Counter()
        """Failed calls by plugin."""
        self._thread = threading.Thread(target=self._run, name="hooks", daemon=True)
        self._thread.start()

    def fire(self, name: str, **arguments: Any) -> None:
        """Queue a call of the hook ``name``."""
        if name not in self._listened:
            return
        if self._queue.qsize() >= QUEUE:
            self.dropped += 1
            return
        self._queue.put((name, arguments))

    def decisions_sent(self, answer: Answer) -> None:
        """Report the decisions of an answer, once."""
        steps, answer.steps = answer.steps, ()
        if not self.decisions:
            return
        hand = answer.hand
        game_id = hand.game_id.hex()
        for job in steps:
            assert job.decision is not None
            made = DecisionMade(
                hand.actor.table, game_id, job.seq, job.request_id, job.decision, job.reason, job.elapsed_s * 1000.0
            )
            self.fire("bothost_decision_made", event=made)

    def close(self, timeout_s: float = 1.0) -> None:
        """Deliver the queued calls, but wait at most this long."""
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            name, arguments = item
            self._plugins.notify(name, self._failed, **arguments)

    def _failed(self, failure: Failure) -> None:
        self._failures[failure.plugin] += 1
        times = self._failures[failure.plugin]
        if times & (times - 1) == 0:  # the first, the second, the fourth, …
            _log.error("hook_failed", plugin=failure.plugin, cause=failure.cause, times=times)
