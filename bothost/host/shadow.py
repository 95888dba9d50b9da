"""Shadows: models that decide the same positions as a strategy. Their decisions are logged and never played.

A shadow gets a position after the strategy has answered, so no move waits for it. One thread takes the positions from
a bounded queue. If it cannot keep up, positions are dropped and counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import structlog

from bothost.errors import described
from bothost.host.recorder import Recorder
from bothost.rules.game import View
from bothost.strategy import Budget, Decision, Player, Strategy, Table
from bothost.tables.actor import Loaded
from bothost.tables.fallback import checked
from bothost.tables.hand import Hand, Job

_log = structlog.get_logger("bothost.host")

QUEUE = 512
PLAYERS = 2000
"""Most hands whose players are kept."""


class Position(NamedTuple):
    """The position of a live decision."""

    loaded: Loaded
    game_id: bytes
    table: Table
    job: Job
    view: View
    """The shadow's own copy."""
    grant_s: float


class Shadow:
    """The shadows of a host. Its methods are called on the event loop."""

    def __init__(self, recorder: Recorder, make: Callable[[Loaded], Strategy]) -> None:
        self._recorder = recorder
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._by_name: dict[str, Loaded] = {}
        self._queue: queue.Queue[Position | Literal["tidy", "end"]] = queue.Queue(QUEUE)
        self._thread: threading.Thread | None = None
        self.decided = self.dropped = self.failed = 0

    def strategies(self) -> list[str]:
        """The strategies that have a shadow."""
        return list(self._by_name)

    def of(self, strategy: str) -> Loaded | None:
        return self._by_name.get(strategy)

    def use(self, strategy: str, loaded: Loaded | None) -> None:
        """Set the shadow of a strategy; None removes it."""
        if loaded is None:
            self._by_name.pop(strategy, None)
            with contextlib.suppress(queue.Full):  # then the thread tidies up after the next position
                self._queue.put_nowait("tidy")
            return
        self._by_name[strategy] = loaded
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="shadow", daemon=True)
            self._thread.start()

    def offer(self, hand: Hand, job: Job) -> None:
        """Queue the position of a live decision for its shadow, if the queue is not full."""
        if not self._by_name:
            return
        actor = hand.actor
        loaded = self._by_name.get(actor.plan.strategy.name)
        if loaded is None:
            return
        if self._queue.full():
            self.dropped += 1
            return
        grant_s = job.window.answer - job.window.arrival
        self._queue.put_nowait(Position(loaded, hand.game_id, actor.table, job, job.view.clone(), grant_s))

    def status(self) -> dict[str, Any]:
        versions = {name: loaded.version for name, loaded in sorted(self._by_name.items())}
        return {"models": versions, "decided": self.decided, "dropped": self.dropped, "failed": self.failed}

    def close(self) -> None:
        """Stop the thread. It may take a second to finish its present decision."""
        self._by_name.clear()
        if self._thread is not None:
            with contextlib.suppress(queue.Empty):  # the thread also takes items
                while True:
                    self._queue.get_nowait()
            self._queue.put("end")
            self._thread.join(1.0)

    # ----------------------------------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        instances: dict[Loaded, Strategy] = {}
        players: OrderedDict[tuple[Loaded, bytes, int], Player] = OrderedDict()
        while (item := self._queue.get()) != "end":
            try:
                if item != "tidy":
                    self._decide(item, instances, players)
                self._tidy(instances, players)
            except BaseException as error:  # also what a panic of a Rust extension raises
                self.failed += 1
                if self.failed & (self.failed - 1) == 0:  # the first, the second, the fourth, …
                    strategy = item if item == "tidy" else item.loaded.address
                    _log.warning("shadow_failed", strategy=strategy, error=described(error), times=self.failed)

    def _tidy(self, instances: dict[Loaded, Strategy], players: OrderedDict[tuple[Loaded, bytes, int], Player]) -> None:
        while len(players) > PLAYERS:
            players.popitem(last=False)[1].close()
        for gone in [loaded for loaded in instances if loaded not in self._by_name.values()]:
            for key in [key for key in players if key[0] is gone]:
                players.pop(key).close()
            instances.pop(gone).close()

    def _decide(
        self,
        position: Position,
        instances: dict[Loaded, Strategy],
        players: OrderedDict[tuple[Loaded, bytes, int], Player],
    ) -> None:
        loaded, table, view = position.loaded, position.table, position.view
        if loaded not in instances:
            instances[loaded] = self._make(loaded)
        key = loaded, position.game_id, table.seat
        if key not in players:
            players[key] = instances[loaded].player(table)
        players.move_to_end(key)
        started = time.monotonic()
        legal = position.job.legal
        decision = checked(players[key].decide(view, legal, Budget(started + position.grant_s, 0.0)), legal)
        elapsed_s = time.monotonic() - started
        try:
            self._loop.call_soon_threadsafe(self._record, position, decision, elapsed_s)
        except RuntimeError:  # the host has ended
            return

    def _record(self, position: Position, decision: Decision, elapsed_s: float) -> None:
        self.decided += 1
        loaded, job = position.loaded, position.job
        self._recorder.shadow(job, position.view, decision, loaded, elapsed_s)
