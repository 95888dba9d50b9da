"""Where decisions are made: the shared worker of inline strategies, the pool, the worker of fallbacks.

The event loop looks at the workers every ``LOOK_S`` while they are busy:

- an inline strategy that holds the shared worker while others wait gets a worker of its own, the others a fresh one;
- a call that has outlived its tables' time is taken to hang: its thread is abandoned and fallbacks play its tables. The
  strategy gets no new tables for a while, and no live ones until the thread comes back.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence

import structlog

from bothost.host.plans import Loaded, Plans
from bothost.host.process import START_S, ProcessLimits, ProcessStrategy
from bothost.host.spares import Spares
from bothost.host.worker import QueuedJob, Result, Worker
from bothost.strategy import Strategy
from bothost.tables.hand import DecidedBy, Hand, Job

_log = structlog.get_logger("bothost.host")

LOOK_S = 0.05
PACE_S = 0.002
"""Least time between two hand-overs to the workers: on a busy host requests wait for one another, and share the two
thread switches and wake-ups that a hand-over costs, as much as the decision itself. An idle host does not wait."""
HOLD_S = 0.1
"""How long an inline strategy may hold the shared worker while others wait."""


class Workers:
    """All workers of a host. Used from the event loop; ``on_results`` is called there too."""

    def __init__(
        self,
        plans: Plans,
        on_results: Callable[[list[Result]], None],
        *,
        threads: int,
        search_threads: int,
        processes: int = 1,
        process_limits: ProcessLimits | None = None,
        spares: Spares | None = None,
    ) -> None:
        self._plans = plans
        self._on_results = on_results
        self._loop = asyncio.get_running_loop()
        self._inline = self._worker("inline")
        self._fallbacks = self._worker("fallback", plays_fallbacks=True)
        self._own: dict[Loaded, Worker] = {}
        """Inline strategies that were moved apart."""
        self._pool = [self._worker(f"pool-{n}") for n in range(threads)]
        self._search = [self._worker(f"search-{n}") for n in range(search_threads)]
        self._processes: dict[Loaded, list[Worker]] = {}
        """Strategies that run in processes: the threads that wait for these, one each."""
        self._per_strategy = processes
        self._process_limits = process_limits or ProcessLimits()
        self._spares = spares or Spares()
        self._turn = 0
        self._batch: list[Job] = []
        self._handed_over = -math.inf
        self._looking = False
        self._stopped = False
        self.abandoned: dict[Worker, Loaded] = {}
        """Threads that hang, each with the strategy that holds it."""

    # ------------------------------------------------------------------------------------------------------- asking

    def submit(self, job: Job) -> None:
        """Have a decision made. Jobs go to the workers together: those of a turn of the event loop, or ``PACE_S``."""
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
        for job in jobs:
            plan = job.hand.plan
            loaded = plan.strategy
            if job.link:
                worker, loaded = self._fallbacks, plan.fallback or loaded
            elif loaded.hung:
                failed.append(Result(job, job.ticket, None, "quarantined", "strategy"))
                continue
            else:
                worker = self._home(loaded, job.hand)
            job.worker = worker
            groups.setdefault(worker, {}).setdefault(loaded, []).append(QueuedJob(job, job.ticket))
        for worker, tasks in groups.items():
            worker.submit(tasks)
        if failed:
            self._on_results(failed)
        if not self._looking and not self._stopped:
            self._looking = True
            self._loop.call_later(LOOK_S, self._look)

    def _home(self, loaded: Loaded, hand: Hand) -> Worker:
        """The worker that plays this hand: always the same one, for a player is called by one thread only."""
        if loaded.execution == "inline":
            return self._own.get(loaded, self._inline) if self._own else self._inline
        if hand.slot < 0:
            self._turn += 1
            hand.slot = self._turn
        pool = self._pool_of(loaded)
        return pool[hand.slot % len(pool)]

    def _pool_of(self, loaded: Loaded) -> list[Worker]:
        if loaded.execution != "process":
            return self._search if loaded.search else self._pool
        pool = self._processes.get(loaded)
        if pool is None:
            pool = [self._worker(f"process-{loaded.name}-{n}") for n in range(self._per_strategy)]
            self._processes[loaded] = pool
        return pool

    def warm(self, loaded: Loaded) -> None:
        """Make the instances before the first table waits for them."""
        for worker in [self._inline] if loaded.execution == "inline" else self._pool_of(loaded):
            worker.submit({loaded: []})

    def instances_of(self, loaded: Loaded) -> int:
        """How many instances play: one per thread."""
        return 1 if loaded.execution == "inline" else len(self._pool_of(loaded))

    def adopt(self, loaded: Loaded, instances: Sequence[Strategy]) -> None:
        """Take instances that were made elsewhere, ``instances_of`` many: no thread that plays waits for a model."""
        pool = [self._inline] if loaded.execution == "inline" else self._pool_of(loaded)
        for worker, instance in zip(pool, instances, strict=True):
            worker.instances[loaded] = instance

    def forget(self, loaded: Loaded) -> None:
        """No hand plays by this any more: close its instances, in their threads, and end its processes."""
        for worker in self._all():
            instance = worker.instances.pop(loaded, None)
            if instance is not None:
                worker.close_player(instance)
        for worker in self._processes.pop(loaded, ()):
            worker.stop()
        own = self._own.pop(loaded, None)
        if own is not None and own not in self._own.values():
            own.stop()

    async def processes_ready(self) -> None:
        """Wait until the processes of the strategies that were warmed have started, or failed to."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if all(loaded in worker.instances for loaded, pool in self._processes.items() for worker in pool):
                break
            await asyncio.sleep(0.02)
        self._spares.close()

    def close_hand(self, hand: Hand) -> None:
        """The hand is over: let its players tidy up, in their worker."""
        player, fallback_player = hand.player, hand.fallback_player
        hand.player = hand.fallback_player = hand.instance = None
        if player is not None and not hand.plan.strategy.hung:
            self._home(hand.plan.strategy, hand).close_player(player)
        if fallback_player is not None:
            self._fallbacks.close_player(fallback_player)

    # ------------------------------------------------------------------------------------------------- misbehaviour

    def late(self, job: Job) -> None:
        """The strategy did not answer in time; its worker may hang."""
        self._plans.failed(job.hand.plan.strategy, "late")
        worker = job.worker
        call = worker.call if worker is not None else None
        if call is not None and any(task.job is job for task in call.tasks):
            self._abandon(worker, call.loaded)

    def fallback_late(self) -> None:
        """Not even the fallback strategy answered in time."""
        call = self._fallbacks.call
        if call is not None and any(time.monotonic() >= task.job.window.fallback for task in call.tasks):
            self._abandon(self._fallbacks, call.loaded)

    def _look(self) -> None:
        self._looking = False
        now = time.monotonic()
        call = self._inline.call
        if call is not None and now - self._inline.busy_since > HOLD_S and self._inline.others_wait(call.loaded):
            self._move_apart(call.loaded)
        if any(worker.call is not None for worker in self._all()) and not self._stopped:
            self._looking = True
            self._loop.call_later(LOOK_S, self._look)

    def _move_apart(self, loaded: Loaded) -> None:
        """An inline strategy is slow: it keeps its thread for itself, the others go on in a fresh one."""
        slow = self._inline
        _log.warning("strategy_slow", strategy=loaded.address, advice='let it run in "thread" or "process"')
        slow.name = f"own-{loaded.name}"
        self._own[loaded] = slow
        self._inline = self._worker("inline")
        self._inherit(self._inline, slow, loaded)
        self._resubmit(slow.take_waiting(but=loaded), self._inline)

    def _abandon(self, worker: Worker, loaded: Loaded) -> None:
        """The worker hangs in a strategy."""
        if worker.abandoned:
            return
        worker.abandon(loaded)
        loaded.hung += 1
        self.abandoned[worker] = loaded
        self._plans.quarantine(loaded, "hang")
        _log.error("worker_abandoned", worker=worker.name, strategy=loaded.address, abandoned=len(self.abandoned))
        fresh = self._worker(worker.name, plays_fallbacks=worker.plays_fallbacks)
        self._inherit(fresh, worker, loaded)
        if worker is self._inline:
            self._inline = fresh
        elif worker is self._fallbacks:
            self._fallbacks = fresh
        self._own = {key: fresh if value is worker else value for key, value in self._own.items()}
        self._pool = [fresh if value is worker else value for value in self._pool]
        self._search = [fresh if value is worker else value for value in self._search]
        self._processes = {
            key: [fresh if value is worker else value for value in pool] for key, pool in self._processes.items()
        }
        self._kill_processes(worker)
        waiting = worker.take_waiting()
        held = [task for task in waiting.pop(loaded, []) if task.ticket == task.job.ticket]
        self._resubmit(waiting, fresh)
        if held:
            by: DecidedBy = "fallback" if worker.plays_fallbacks else "strategy"
            self._on_results([Result(*task, None, "quarantined", by) for task in held])

    @staticmethod
    def _kill_processes(worker: Worker) -> None:
        for instance in list(worker.instances.values()):
            if isinstance(instance, ProcessStrategy):
                instance.close()

    @staticmethod
    def _inherit(fresh: Worker, old: Worker, but: Loaded) -> None:
        for key in [key for key in old.instances if key is not but]:
            fresh.instances[key] = old.instances.pop(key)

    @staticmethod
    def _resubmit(tasks: dict[Loaded, list[QueuedJob]], worker: Worker) -> None:
        for many in tasks.values():
            for task in many:
                task.job.worker = worker
        if tasks:
            worker.submit(tasks)

    # ------------------------------------------------------------------------------------------------------ plumbing

    def make(self, loaded: Loaded, *, wait: bool = True) -> Strategy:
        """An instance of the strategy; in a process of its own, where it wants that."""
        if loaded.execution != "process":
            return loaded.resolved.make()
        return ProcessStrategy(loaded.resolved, self._process_limits, self._spares, wait=wait)

    def _worker(self, name: str, *, plays_fallbacks: bool = False) -> Worker:
        def make(loaded: Loaded) -> Strategy:
            return self.make(loaded, wait=not plays_fallbacks)

        return Worker(name, self._post, self._returned, plays_fallbacks=plays_fallbacks, make=make)

    def _post(self, worker: Worker, results: list[Result]) -> None:
        """In the worker's thread."""
        try:
            self._loop.call_soon_threadsafe(self._deliver, worker, results)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _deliver(self, worker: Worker, results: list[Result]) -> None:
        if not worker.abandoned:
            self._on_results(results)

    def _returned(self, worker: Worker) -> None:
        """In the thread of an abandoned worker that came back."""
        try:
            self._loop.call_soon_threadsafe(self._came_back, worker)
        except RuntimeError:
            return

    def _came_back(self, worker: Worker) -> None:
        loaded = self.abandoned.pop(worker, None)
        if loaded is not None:
            loaded.hung -= 1
            _log.warning("worker_returned", strategy=loaded.address)

    def _all(self) -> Iterable[Worker]:
        processes = (worker for pool in self._processes.values() for worker in pool)
        return (self._inline, self._fallbacks, *self._own.values(), *self._pool, *self._search, *processes)

    async def aclose(self, timeout_s: float = 2.0) -> None:
        """Stop the threads; those that hang are left behind (they are daemons)."""
        self._stopped = True
        self._spares.close()
        workers = set(self._all())
        for worker in workers:
            worker.stop()
        end = time.monotonic() + timeout_s
        for worker in workers:
            await asyncio.to_thread(worker.join, max(0.0, end - time.monotonic()))
            self._kill_processes(worker)
