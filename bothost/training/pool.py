"""A pool of child processes of this machine that play hands or value positions."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from bothost.training.processes import WorkerDied

Worker = TypeVar("Worker")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class WorkerPool(Generic[Worker]):
    """Child processes that each build one worker, and then call its methods.

    They end at once if an exception such as KeyboardInterrupt leaves the pool's context, or if this process is killed.
    """

    def __init__(self, processes: int, build: Callable[[], Worker], *, advice: str) -> None:
        """``build`` is sent to the processes by pickle. ``advice``: what to do if a process was killed."""
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(processes, context, _begin, (build,))
        self._advice = advice

    def submit(
        self,
        method: Callable[Concatenate[Worker, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Future[Result]:
        """Call a method of a process's worker."""
        # A process that is started here inherits the mask: Ctrl-C while it imports would print a traceback.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._pool.submit(_call, method, args, kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Cancel what is queued. Without an error, wait for what runs. Raises WorkerDied if a process was killed."""
        pool: Any = self._pool  # before Python 3.14 nothing public ends its processes
        manager, processes, results = pool._executor_manager_thread, list(pool._processes.values()), pool._result_queue
        pool.shutdown(wait=error is None, cancel_futures=True)
        if error is not None and manager is not None:
            for process in processes:
                process.kill()
            # Who was killed while it sent a large result never sends the rest. Now no writer is left to wait for.
            results._writer.close()
            manager.join()
        if isinstance(error, BrokenProcessPool):
            raise WorkerDied("a worker process ended unexpectedly", advice=self._advice) from error


_build: Callable[[], Any]
_worker: Any = None


def _begin(build: Callable[[], Any]) -> None:
    """Prepare a child process. The first call builds its worker: there, errors reach the caller."""
    global _build
    _build = build
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The parent handles Ctrl-C. Programs that are started here would inherit a mask, or a signal that is ignored.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(method: Callable[..., Result], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
    global _worker
    if _worker is None:
        _worker = _build()
    return method(_worker, *args, **kwargs)
