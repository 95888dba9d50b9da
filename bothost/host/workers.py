"""Passes jobs to the worker threads, takes their results, and detects threads that hang.

While workers are busy, the event loop checks them every ``LOOK_S``:

- If an inline strategy holds the shared worker while others wait, it gets its own worker.
- A call that runs past its table's deadline counts as hanging. So does one for no table, such as ``Player.close``, if a
  table waits until its deadline. The thread is abandoned, and fallbacks play the strategy's tables. The strategy is
  quarantined, and its open tables do not run it until the thread returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import time
from collections.abc import Callable

import structlog

from bothost.host.plans import Plans
from bothost.host.process import START_S, ProcessLimits, ProcessStrategy
from bothost.host.spares import Spares
from bothost.host.worker import QueuedJob, Result, Worker
from bothost.host.worker_pools import WorkerPools
from bothost.strategy import Strategy
from bothost.tables.actor import Loaded
from bothost.tables.hand import DecidedBy, Hand, Job

_log = structlog.get_logger("bothost.host")

LOOK_S = 0.05
PACE_S = 0.002
"""Minimum time between two batches of jobs. A batch costs two thread switches, as much as a decision. On a busy host
jobs wait this long and share the switches; on an idle host they do not wait."""
HOLD_S = 0.1
"""How long an inline strategy may hold the shared worker while others wait."""


class Workers:
    """All workers of a host. Used on the event loop; ``on_results`` is called there, too."""

    def __init__(
        self,
        plans: Plans,
        on_results: Callable[[list[Result]], None],
        *,
        threads: int,
        search_threads: int,
        processes: int,
        process_limits: ProcessLimits,
        spares: Spares | None,
    ) -> None:
        self._plans = plans
        self._on_results = on_results
        self._loop = asyncio.get_running_loop()
        self._process_limits = process_limits
        self._spares = spares or Spares()
        self.pools = WorkerPools(self._start, threads=threads, search_threads=search_threads, processes=processes)
        self._batch: list[Job] = []
        self._handed_over = -math.inf
        self._looking = False
        self._stopped = False
        self.abandoned: dict[Worker, Loaded] = {}
        """Threads that hang, each with the strategy that it hangs in."""

    # ------------------------------------------------------------------------------------------------------- asking

    def submit(self, job: Job) -> None:
        """Queue a job. Jobs of one turn of the event loop, or of ``PACE_S``, form a batch."""
        if not self._batch:
            wait = self._handed_over + PACE_S - time.monotonic()
            if wait <= 0.0:
                self._loop.call_soon(self._hand_over)
            else:
                self._loop.call_later(wait, self._hand_over)
        self._batch.append(job)

    def _hand_over(self) -> None:
        jobs, self._batch = self._batch, []
        self._handed_over = time.monotonic()
        groups: dict[Worker, dict[Loaded, list[QueuedJob]]] = {}
        failed: list[Result] = []
        pools = self.pools
        for job in jobs:
            if job.hand.job is not job:
                continue  # the lobby closed the request
            actor = job.hand.actor
            loaded = actor.plan.strategy
            if job.link:
                worker, loaded = pools.fallbacks, actor.plan.fallback or loaded
            elif loaded.hung:
                failed.append(Result(job, job.ticket, None, "quarantined", "strategy"))
                continue
            else:
                worker = pools.home(loaded, actor)
            groups.setdefault(worker, {}).setdefault(loaded, []).append(QueuedJob(job, job.ticket))
        for worker, tasks in groups.items():
            worker.submit(tasks)
        if failed:
            self._on_results(failed)
        if not self._looking and not self._stopped:
            self._looking = True
            self._loop.call_later(LOOK_S, self._look)

    async def processes_ready(self) -> None:
        """Wait until all processes of warmed strategies have started or failed to start."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.pools.processes_started():
                break
            await asyncio.sleep(0.02)
        self._spares.close()

    def close_hand(self, hand: Hand) -> None:
        """Close the players of a hand that is over, in their workers."""
        actor = hand.actor
        player, fallback_player = actor.player, actor.fallback_player
        actor.player = actor.fallback_player = actor.instance = None
        loaded = actor.plan.strategy
        if player is not None and not loaded.hung:
            self.pools.home(loaded, actor).close_player(loaded, player)
        if fallback_player is not None and actor.plan.fallback is not None:
            self.pools.fallbacks.close_player(actor.plan.fallback, fallback_player)

    # ------------------------------------------------------------------------------------------------- misbehaviour

    def late(self, job: Job) -> None:
        """Handle a late strategy. If its worker hangs in this call, or in another one, abandon the worker."""
        actor = job.hand.actor
        self._plans.failed(actor.plan.strategy, "late")
        worker = self.pools.home(actor.plan.strategy, actor)
        call = worker.call
        if call is None:
            return
        if time.monotonic() >= call.until or any(task.job is job for task in call.tasks):
            self._abandon(worker, call.loaded)

    def fallback_late(self) -> None:
        """Handle a fallback strategy that did not answer in time either."""
        worker = self.pools.fallbacks
        call = worker.call
        if call is not None and time.monotonic() >= call.until:
            self._abandon(worker, call.loaded)

    def _look(self) -> None:
        self._looking = False
        now = time.monotonic()
        inline = self.pools.inline
        call = inline.call
        if call is not None and now - inline.busy_since > HOLD_S and inline.others_wait(call.loaded):
            if call.tasks:  # else it is only being made or closed
                advice = 'set its execution to "thread" or "process"'
                _log.warning("strategy_slow", strategy=call.loaded.address, advice=advice)
            self.pools.separate(call.loaded)
        if any(worker.call is not None for worker in self.pools) and not self._stopped:
            self._looking = True
            self._loop.call_later(LOOK_S, self._look)

    def _abandon(self, worker: Worker, loaded: Loaded) -> None:
        """Replace a worker that hangs in a strategy."""
        if worker.abandoned:
            return
        worker.abandon(loaded)
        loaded.hung += 1
        self.abandoned[worker] = loaded
        self._plans.quarantine(loaded, "hang")
        _log.error("worker_abandoned", worker=worker.name, strategy=loaded.address, abandoned=len(self.abandoned))
        new = self.pools.replace(worker, loaded)
        _kill_processes(worker)
        waiting = worker.take_waiting()
        held = [task for task in waiting.pop(loaded, []) if task.ticket == task.job.ticket]
        new.submit(waiting)
        if held:
            by: DecidedBy = "fallback" if worker.plays_fallbacks else "strategy"
            self._on_results([Result(*task, None, "quarantined", by) for task in held])

    # ------------------------------------------------------------------------------------------------------ threads

    def make(self, loaded: Loaded, *, wait: bool = True) -> Strategy:
        """Make an instance of the strategy, in its own process if its execution says so."""
        if loaded.execution != "process":
            return loaded.resolved.make()
        return ProcessStrategy(loaded.resolved, self._process_limits, self._spares, wait=wait)

    def _start(self, name: str) -> Worker:
        plays_fallbacks = name == "fallback"
        return Worker(
            name,
            functools.partial(self._from_thread, self._deliver),
            functools.partial(self._from_thread, self._returned),
            plays_fallbacks=plays_fallbacks,
            make=functools.partial(self.make, wait=not plays_fallbacks),
        )

    def _from_thread(self, callback: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _deliver(self, worker: Worker, results: list[Result]) -> None:
        if not worker.abandoned:
            self._on_results(results)

    def _returned(self, worker: Worker) -> None:
        """Handle an abandoned worker whose call returned."""
        loaded = self.abandoned.pop(worker, None)
        if loaded is not None:
            loaded.hung -= 1
            _log.warning("worker_returned", strategy=loaded.address)

    async def aclose(self, timeout_s: float = 2.0) -> None:
        """Stop the threads. Threads that hang are left running; they are daemons."""
        self._stopped = True
        self._spares.close()
        workers = set(self.pools)
        for worker in workers:
            worker.stop()
        end = time.monotonic() + timeout_s
        for worker in workers:
            await asyncio.to_thread(worker.join, max(0.0, end - time.monotonic()))
            _kill_processes(worker)


def _kill_processes(worker: Worker) -> None:
    for instance in list(worker.instances.values()):
        if isinstance(instance, ProcessStrategy):
            instance.close()
