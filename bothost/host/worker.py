"""A worker: one thread that makes decisions, for all waiting tables of a strategy at a time."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import structlog

from bothost.errors import described
from bothost.host.limited_lines import FailureLines
from bothost.strategy import IS_ASYNC, Decision, Player, Request, Strategy, is_async
from bothost.tables import fallback
from bothost.tables.actor import Loaded
from bothost.tables.hand import DecidedBy, Job

_log = structlog.get_logger("bothost.host")

MAKE_S = 60.0
"""How long a strategy may take to load its model. After that it hangs."""
CLOSE_S = 1.0
"""How long a call that is for no table may hold up others: ``close``, and ``decide_many`` after its last decision."""
POST_EVERY_S = 0.002
"""A long batch of inline decisions posts its results at this interval. Others, and fallbacks, post each at once."""


class QueuedJob(NamedTuple):
    """A job in a worker's queue."""

    job: Job
    ticket: int


class Result(NamedTuple):
    """The result of a job: a decision, or why there is none."""

    job: Job
    ticket: int
    decision: Decision | None
    error: str | None
    by: DecidedBy
    cause: BaseException | None = None


class Call(NamedTuple):
    """A running plugin call."""

    loaded: Loaded
    tasks: Sequence[QueuedJob]
    until: float
    """From then on it hangs if a table waits for it, monotonic seconds."""


Post = Callable[["Worker", list[Result]], None]


class Worker:
    """One daemon thread with its own strategy instances. ``post`` is called from the thread.

    Plugin code may raise any BaseException here: a panic of a Rust extension is no Exception. KeyboardInterrupt reaches
    only the main thread.

    A thread cannot be stopped. A thread that hangs is *abandoned*: its results are ignored, and ``returned`` is called
    if the hanging call ever returns.
    """

    def __init__(
        self,
        name: str,
        post: Post,
        returned: Callable[[Worker], None],
        *,
        plays_fallbacks: bool = False,
        make: Callable[[Loaded], Strategy] = lambda loaded: loaded.resolved.make(),
    ) -> None:
        self.name = name
        self.plays_fallbacks = plays_fallbacks
        """Whether it runs the quick policies and fallbacks of strategies that failed."""
        self._hangs_in: Loaded | None = None
        """The strategy in which it was abandoned."""
        self.busy_since = math.inf
        """When it started the tasks of the present strategy."""
        self.call: Call | None = None
        """The running plugin call. Only the thread writes it."""
        self.instances: dict[Loaded, Strategy] = {}
        self._post = post
        self._returned = returned
        self._make = make
        self._waiting: dict[Loaded, list[QueuedJob]] = {}
        self._closing: deque[tuple[Loaded, Player | Strategy]] = deque()
        self._stopping = False
        self._failures = FailureLines()
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------------------------ from the event loop

    def submit(self, groups: dict[Loaded, list[QueuedJob]]) -> None:
        """Queue tasks."""
        with self._wake:
            for loaded, tasks in groups.items():
                self._waiting.setdefault(loaded, []).extend(tasks)
            self._wake.notify()

    def close_player(self, loaded: Loaded, player: Player | Strategy) -> None:
        """Close a player of a strategy, or its instance that is no longer needed, in the thread."""
        with self._wake:
            self._closing.append((loaded, player))
            self._wake.notify()

    def take_waiting(self, *, but: Loaded | None = None) -> dict[Loaded, list[QueuedJob]]:
        """Remove and return the tasks that have not started, except those of ``but``."""
        with self._wake:
            taken = {loaded: tasks for loaded, tasks in self._waiting.items() if loaded is not but}
            for loaded in taken:
                del self._waiting[loaded]
            return taken

    def hand_instances(self, other: Worker, *, but: Loaded) -> None:
        """Move the instances of all strategies except ``but`` to another worker, and what is to be closed of them."""
        for loaded in list(self.instances):  # a copy: the thread may add the one that it is making
            if loaded is not but:
                other.instances[loaded] = self.instances.pop(loaded)
        with self._wake:
            closing, self._closing = self._closing, deque(item for item in self._closing if item[0] is but)
        for item in closing:
            if item[0] is not but:
                other.close_player(*item)

    def others_wait(self, loaded: Loaded) -> bool:
        """Whether tasks of other strategies than ``loaded`` wait."""
        with self._wake:
            return any(other is not loaded and tasks for other, tasks in self._waiting.items())

    @property
    def abandoned(self) -> bool:
        """Whether its results are ignored."""
        return self._hangs_in is not None

    def abandon(self, loaded: Loaded) -> None:
        """Ignore results from now on, because the thread hangs in this plugin."""
        self._hangs_in = loaded

    def stop(self) -> None:
        """End the thread once it is idle."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    # ----------------------------------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        wake = self._wake
        while True:
            with wake:
                while not (self._waiting or self._closing or self._stopping):
                    wake.wait()
                closing = self._closing.popleft() if self._closing else None
                group = next(iter(self._waiting.items()), None) if closing is None else None
                if group is not None:
                    del self._waiting[group[0]]
                elif closing is None:
                    break
            if closing is not None:
                self._close(*closing)
            if group is not None:
                self._play(*group)
            if self._hangs_in is not None:
                # The replacement owns the other instances, but this one may have been made after the hang: close it.
                if (instance := self.instances.get(self._hangs_in)) is not None:
                    self._close(self._hangs_in, instance)
                self._returned(self)
                return
        for loaded, instance in self.instances.items():
            self._close(loaded, instance)
        self._failures.report()

    def _close(self, loaded: Loaded, closing: Player | Strategy) -> None:
        self.busy_since = time.monotonic()
        self.call = _call(loaded)
        try:
            closing.close()
        except BaseException:
            _log.exception("close_failed", plugin=type(closing).__name__)
        self.call = None
        self.busy_since = math.inf

    def _play(self, loaded: Loaded, tasks: list[QueuedJob]) -> None:
        """Decide for tables; without tasks only make the instance."""
        if tasks and all(task.ticket != task.job.ticket for task in tasks):
            return  # superseded: their strategy may have been forgotten
        self.busy_since = time.monotonic()
        if self.plays_fallbacks:
            self._one_by_one(loaded, None, tasks)
        else:
            self.call = Call(loaded, tasks, self.busy_since + MAKE_S)
            instance: Strategy | None = None
            try:
                instance = self._instance(loaded)
            except BaseException as error:
                self._finish([Result(*task, None, "error", "strategy", error) for task in tasks])
            if instance is not None and type(instance).decide_many is Strategy.decide_many:
                self._one_by_one(loaded, instance, tasks)
            elif instance is not None and tasks:
                self._many(loaded, instance, tasks)
        self.call = None
        self.busy_since = math.inf

    def _instance(self, loaded: Loaded) -> Strategy:
        instance = self.instances.get(loaded)
        if instance is None:
            instance = self.instances[loaded] = self._make(loaded)
        return instance

    def _one_by_one(self, loaded: Loaded, instance: Strategy | None, tasks: list[QueuedJob]) -> None:
        results: list[Result] = []
        clock = time.monotonic
        posted = clock()
        quick = instance is not None and loaded.execution == "inline"
        pause = POST_EVERY_S if quick else 0.0  # the next decision may take seconds
        for task in tasks:
            job, ticket = task
            now = clock()
            if ticket != job.ticket:
                continue  # superseded
            if instance is None:
                results.append(self._fall_back(task))
                continue
            self.call = _call(loaded, (task,))
            if now >= job.window.late:
                results.append(Result(job, ticket, None, "late", "strategy"))
            else:
                results.append(self._decide(task))
            if clock() - posted > pause and not self.abandoned:
                posted = clock()
                self._finish(results)
                results = []
        self._finish(results)

    def _decide(self, task: QueuedJob) -> Result:
        """Ask the strategy, the first link."""
        job, ticket = task
        try:
            decision = fallback.checked(fallback.CHAIN[0].decide(job, self._instance))
        except BaseException as error:
            return _failure(task, error)
        return Result(job, ticket, decision, None, "strategy")

    def _many(self, loaded: Loaded, instance: Strategy, tasks: list[QueuedJob]) -> None:
        """Call ``decide_many`` for all. If it fails, decide the rest one by one, so that only the failing table is
        affected."""
        live = [task for task in tasks if task.ticket == task.job.ticket]
        if not live:
            return
        live.sort(key=lambda task: task.job.window.late)
        left = dict(enumerate(live))
        self.call = _call(loaded, live)
        try:
            requests = [
                Request(fallback.player_of(job.hand, instance), job.view, job.legal, fallback.budget_of(job))
                for job, _ in live
            ]
            decisions = instance.decide_many(requests)
            if is_async(decisions):
                raise TypeError(f"decide_many {IS_ASYNC}")
            if isinstance(decisions, Iterator):
                for index, decision in decisions:
                    task = left.pop(index)
                    self.call = _call(loaded, list(left.values()))
                    self._finish([_result(task, decision)])
            elif len(decisions) == len(live):
                left = {}
                self._finish([_result(task, decision) for task, decision in zip(live, decisions, strict=True)])
            if left:
                raise ValueError(f"decide_many did not decide each of {len(live)} requests")
        except BaseException as error:
            self._failures.warning("decide_many_failed", loaded.address, error=described(error))
            self._one_by_one(loaded, instance, list(left.values()))

    def _fall_back(self, task: QueuedJob) -> Result:
        """Try the links after the strategy, because it failed."""
        job, ticket = task
        for link, loaded in fallback.middle_links(job):
            self.call = Call(loaded, (task,), job.window.fallback)
            try:
                decision = link.decide(job, self._instance)
                if decision is not None:
                    return Result(job, ticket, fallback.checked(decision, job.legal), None, link.by)
            except BaseException as error:
                self._failures.warning(f"{link.by}_failed", loaded.address, error=described(error))
        return Result(job, ticket, None, "error", "fallback")

    def _finish(self, results: list[Result]) -> None:
        if results and not self.abandoned:
            self._post(self, results)


def _call(loaded: Loaded, tasks: Sequence[QueuedJob] = ()) -> Call:
    """A call for these tasks, the most urgent first."""
    return Call(loaded, tasks, tasks[-1].job.window.late if tasks else time.monotonic() + CLOSE_S)


def _result(task: QueuedJob, decision: Any) -> Result:
    """The result of a job that ``decide_many`` decided, or failed to decide."""
    if isinstance(decision, Exception):
        return _failure(task, decision)
    try:
        return Result(*task, fallback.checked(decision), None, "strategy")
    except TypeError as error:
        return _failure(task, error)


def _failure(task: QueuedJob, error: BaseException) -> Result:
    return Result(*task, None, "late" if isinstance(error, TimeoutError) else "error", "strategy", error)
