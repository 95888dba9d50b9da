"""The worker threads of a host, and the choice of a worker for each hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bothost.host.worker import Worker
from bothost.strategy import Strategy
from bothost.tables.actor import Actor, Loaded


class WorkerPools:
    """One shared worker for inline strategies, a pool for each other kind, and one worker for fallbacks."""

    def __init__(self, start: Callable[[str], Worker], *, threads: int, search_threads: int, processes: int) -> None:
        """``start`` starts a worker with a name. ``processes`` is the number of processes for each strategy."""
        self._start = start
        self._processes_each = processes
        self.inline = start("inline")
        self.fallbacks = start("fallback")
        self.own: dict[Loaded, Worker] = {}
        """Slow inline strategies, each with its own worker."""
        self._pool = [start(f"pool-{n}") for n in range(threads)]
        self._search = [start(f"search-{n}") for n in range(search_threads)]
        self._processes: dict[Loaded, list[Worker]] = {}
        """Strategies that run in processes, each with the threads that wait for its processes."""
        self._turn = 0

    def __iter__(self) -> Iterator[Worker]:
        yield from (self.inline, self.fallbacks, *self.own.values(), *self._pool, *self._search)
        for pool in self._processes.values():
            yield from pool

    def home(self, loaded: Loaded, actor: Actor) -> Worker:
        """The worker of this hand. It is always the same, so that only one thread calls a player."""
        if loaded.execution == "inline":
            return self._inline_of(loaded)
        if actor.slot < 0:
            self._turn += 1
            actor.slot = self._turn
        pool = self.of(loaded)
        return pool[actor.slot % len(pool)]

    def of(self, loaded: Loaded) -> Sequence[Worker]:
        """The workers that may play the strategy."""
        if loaded.execution == "inline":
            return [self._inline_of(loaded)]
        if loaded.execution != "process":
            return self._search if loaded.search else self._pool
        pool = self._processes.get(loaded)
        if pool is None:
            pool = [self._start(f"process-{loaded.name}-{n}") for n in range(self._processes_each)]
            self._processes[loaded] = pool
        return pool

    def _inline_of(self, loaded: Loaded) -> Worker:
        return self.own.get(loaded, self.inline) if self.own else self.inline

    def warm(self, loaded: Loaded) -> None:
        """Make the instances before the first table needs them."""
        for worker in self.of(loaded):
            worker.submit({loaded: []})

    def processes_started(self) -> bool:
        """Whether all processes of warmed strategies have started or failed to start."""
        return all(loaded in worker.instances for loaded, pool in self._processes.items() for worker in pool)

    def adopt(self, loaded: Loaded, instances: Sequence[Strategy]) -> None:
        """Use existing instances, one for each worker ``of`` the strategy."""
        for worker, instance in zip(self.of(loaded), instances, strict=True):
            worker.instances[loaded] = instance

    def forget(self, loaded: Loaded) -> None:
        """Close the instances of a strategy that no hand uses in their threads, and end its processes."""
        for worker in self:
            instance = worker.instances.pop(loaded, None)
            if instance is not None:
                worker.close_player(loaded, instance)
        for worker in self._processes.pop(loaded, ()):
            worker.stop()
        own = self.own.pop(loaded, None)
        if own is not None and own not in self.own.values():
            own.stop()

    def separate(self, loaded: Loaded) -> None:
        """Move all other inline strategies to a new shared worker, and leave the present one to this slow strategy."""
        slow, self.inline = self.inline, self._start("inline")
        slow.name = f"own-{loaded.name}"
        self.own[loaded] = slow
        slow.hand_instances(self.inline, but=loaded)
        self.inline.submit(slow.take_waiting(but=loaded))

    def replace(self, old: Worker, loaded: Loaded) -> Worker:
        """Replace a worker that hangs in ``loaded``. The new one gets the instances of the other strategies."""
        new = self._start(old.name)
        old.hand_instances(new, but=loaded)
        self.inline = new if self.inline is old else self.inline
        self.fallbacks = new if self.fallbacks is old else self.fallbacks
        self.own = {key: new if worker is old else worker for key, worker in self.own.items()}
        for pool in (self._pool, self._search, *self._processes.values()):
            pool[:] = [new if worker is old else worker for worker in pool]
        return new
