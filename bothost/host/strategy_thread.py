"""A thread for the code of strategies, so that it does not block the event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from bothost.errors import PluginError

T = TypeVar("T")


class StrategyHangs(PluginError):
    """A call of a strategy has not returned in time."""


class StrategyThread:
    """Runs calls one after another, always in the same thread: the process of a strategy ends with the thread that
    started it. A call that hangs is left behind with its thread, and does not keep the program from ending.
    """

    def __init__(self, name: str) -> None:
        self._late: Future[Any] | None = None
        """The last call that took too long."""
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            result, work = call
            try:
                result.set_result(work())
            except BaseException as error:
                result.set_exception(error)

    async def call(self, address: str, limit_s: float, work: Callable[[], T]) -> T:
        """Return what the call returns. Raises what it raises, and StrategyHangs after ``limit_s``."""
        result: Future[T] = Future()
        result.set_running_or_notify_cancel()  # it cannot be cancelled from now on
        self._calls.put((result, work))
        try:
            async with asyncio.timeout(limit_s) as limit:
                return await asyncio.wrap_future(result)
        except TimeoutError:
            if not limit.expired():  # its own error
                raise
            self._late = result
            problem = f"it has not answered within {limit_s:.0f} s"
            raise StrategyHangs(address, problem, advice="choose another") from None

    @property
    def hangs(self) -> bool:
        """Whether a call that took too long has not returned yet."""
        return self._late is not None and not self._late.done()

    def close(self) -> None:
        """End the thread after its last call."""
        self._calls.put(None)
