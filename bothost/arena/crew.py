"""Where deals are played: in this process, in child processes, or in actors on a Ray cluster.

A worker builds all contestants once. Then it plays deals of any match among them.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import queue
import shlex
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, Self

from bothost.arena.lineup import letter, lineups
from bothost.arena.luck import luck_of
from bothost.arena.match import ContestantError, DealResult, play_deals
from bothost.arena.spec import Build, MatchSpec
from bothost.rules.game import Game
from bothost.strategy import Strategy
from bothost.training.pool import WorkerPool
from bothost.training.processes import WorkerDied

ATTEMPTS = 3
"""A match fails when the same deals ended this many Ray actors."""


class Work(NamedTuple):
    """Deals of one match."""

    match: int
    """The caller's number of the match."""
    who: tuple[int, ...]
    """The match's contestants: indices of ``MatchSpec.contestants``."""
    seed: int
    deals: Sequence[int]


def missing(deals: int, done: Collection[int]) -> Sequence[int]:
    """The numbers of the deals that are not done."""
    return [deal for deal in range(deals) if deal not in done] if done else range(deals)


Finished = Generator[tuple[int, DealResult], None, None]
"""(match, deal) in the order in which deals end."""


class Crew(ABC):
    """Workers that play at the same time."""

    size: int
    """Number of workers."""

    @abstractmethod
    def submit(self, work: Work) -> Future[list[DealResult]]:
        """Play these deals."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """End the workers and cancel queued deals."""


def play_here(spec: MatchSpec, game: Game, strategies: Sequence[Strategy], works: Iterable[Work]) -> Finished:
    ms = math.inf if spec.ms is None else spec.ms
    luck = luck_of(game) if spec.luck_adjusted else None
    for work in works:
        sides = [strategies[who] for who in work.who]
        seats = lineups(game, len(sides))
        try:
            for result in play_deals(
                game, sides, seats, work.deals, seed=work.seed, ms=ms, batch=spec.batch, forgive=spec.forgive, luck=luck
            ):
                yield work.match, result
        except ContestantError as failure:
            raise _named(failure, work.who[failure.who], spec) from failure.__cause__


def _named(failure: ContestantError, who: int, spec: MatchSpec) -> ContestantError:
    """The error with the contestant's letter and address, and with what to do."""
    address = spec.contestants[who]
    advice = f"bothost plugin check {shlex.quote(address)}"
    if not spec.forgive:
        advice += "; a tournament counts errors and plays on"
    parts = [failure.advice, advice] if failure.advice else [advice]
    return ContestantError(who, f"{letter(who)} ({address})", failure.what, "; ".join(parts))


def spread(crew: Crew, works: Sequence[Work], batch: int) -> Finished:
    """Spread deals over a crew, a few at a time, so that an early stop wastes little."""
    parts = iter(_parts(works, crew.size, batch))
    running: dict[Future[list[DealResult]], int] = {}
    try:
        while True:
            for part in itertools.islice(parts, crew.size + 1 - len(running)):
                running[crew.submit(part)] = part.match
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                match = running.pop(future)
                yield from ((match, result) for result in future.result())
    finally:
        for future in running:
            future.cancel()


def _parts(works: Sequence[Work], workers: int, batch: int) -> Iterator[Work]:
    total = sum(len(work.deals) for work in works)
    size = max(1, min(batch, math.ceil(total / (4 * workers))))
    for work in works:
        for start in range(0, len(work.deals), size):
            yield work._replace(deals=work.deals[start : start + size])


class MatchWorker:
    """Plays in a worker process, or in an actor of Ray."""

    def __init__(self, build: Build, spec: MatchSpec) -> None:
        self._spec = spec
        self._game, self._strategies = build(spec)

    def play(self, work: Work) -> list[DealResult]:
        return [result for _, result in play_here(self._spec, self._game, self._strategies, [work])]


class ProcessCrew(Crew):
    """Child processes of this machine."""

    def __init__(self, build: Build, spec: MatchSpec) -> None:
        self.size = spec.workers
        advice = "run the same command again: finished deals are kept"
        self._pool = WorkerPool(spec.workers, functools.partial(MatchWorker, build, spec), advice=advice)

    def submit(self, work: Work) -> Future[list[DealResult]]:
        return self._pool.submit(MatchWorker.play, work)

    def __exit__(self, *error: Any) -> None:
        self._pool.__exit__(*error)


class RayCrew(Crew):
    """Actors on a Ray cluster, each with one core.

    All nodes need the programs of exec strategies and the configuration under the same paths.
    """

    def __init__(self, build: Build, spec: MatchSpec, address: str | None) -> None:
        """``address``: ``auto`` or ``HOST:PORT``; None starts Ray on this machine. Raises UsageError if Ray is not
        installed or cannot be reached."""
        from bothost.training.ray_cluster import connect

        self.size = spec.workers
        self._make = (build, spec)
        self._ours = connect(address, cores=max(self.size, os.cpu_count() or 1), device="cpu")
        self._actors: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(self.size):
            self._actors.put(self._start())
        self._threads = ThreadPoolExecutor(self.size)  # each waits for one actor

    def _start(self) -> Any:
        import ray

        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
        worker: Any = ray.remote(MatchWorker)
        return worker.options(**options).remote(*self._make)

    def submit(self, work: Work) -> Future[list[DealResult]]:
        return self._threads.submit(self._play, work)

    def _play(self, work: Work) -> list[DealResult]:
        actor = self._actors.get()
        try:
            for _ in range(ATTEMPTS - 1):
                try:
                    return self._value(actor.play.remote(work))
                except WorkerDied:
                    actor = self._start()
            return self._value(actor.play.remote(work))
        finally:
            self._actors.put(actor)

    @staticmethod
    def _value(reference: Any) -> list[DealResult]:
        from bothost.training.ray_cluster import value_of

        return value_of(reference, "a worker of the match", None)  # type: ignore[no-any-return]

    def __exit__(self, *_: object) -> None:
        import ray

        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._actors.empty():
            ray.kill(self._actors.get(), no_restart=True)
        if self._ours:
            ray.shutdown()
