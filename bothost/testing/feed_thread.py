"""Feeds lobby adapters in a thread, because an adapter may never return: for the conformance kit."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from concurrent.futures import Future

from bothost import messages as m
from bothost.errors import PluginError
from bothost.lobbies.base import LobbyAdapter
from bothost.testing.adapter_driver import fed

LIMIT_S = 10.0
"""A ``feed`` that takes longer hangs. It should take microseconds."""


class FeedHangs(PluginError):
    """``feed`` has not returned in time."""


class FeedThread:
    """Feeds adapters one after another, all in one thread.

    A ``feed`` that hangs is left behind with its thread, which does not keep the program from ending. From then on
    every call raises the same FeedHangs, so a run ends soon.
    """

    def __init__(self) -> None:
        self.hung: FeedHangs | None = None
        self.took_ms = 0.0
        """Time that the last ``feed`` took. Measured in the thread, so the way there and back does not count."""
        self._calls: queue.SimpleQueue[tuple[Future[list[m.Output]], LobbyAdapter, m.Input] | None]
        self._calls = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            result, adapter, item = call
            began = time.monotonic()
            try:
                outputs = fed(adapter, item)
            except BaseException as error:
                result.set_exception(error)
            else:
                self.took_ms = (time.monotonic() - began) * 1000.0
                result.set_result(outputs)

    def fed(self, adapter: LobbyAdapter, item: m.Input) -> list[m.Output]:
        """What an adapter makes of an input. Raises PluginError as ``adapter_driver.fed`` does, and FeedHangs."""
        if self.hung is not None:
            raise self.hung
        result: Future[list[m.Output]] = Future()
        self._calls.put((result, adapter, item))
        try:
            return result.result(LIMIT_S)
        except TimeoutError:
            if result.done():  # it came at the last moment
                return result.result()
            at = self._stands_at(type(adapter).__module__)
            problem = f"feed({type(item).__name__}) has not returned after {LIMIT_S:g} s{f' ({at})' if at else ''}"
            self.hung = FeedHangs(adapter.name, problem, advice="leave waiting to SetTimer")
            raise self.hung from None

    def _stands_at(self, module: str) -> str | None:
        """``FILE:LINE`` in the package of a module at which the thread is."""
        package = module.partition(".")[0]
        frame = sys._current_frames().get(self._thread.ident or 0)
        for inner, line in traceback.walk_stack(frame):  # the innermost first
            if str(inner.f_globals.get("__name__")).partition(".")[0] == package:
                return f"{os.path.basename(inner.f_code.co_filename)}:{line}"
        return None

    def close(self) -> None:
        """End the thread, unless it hangs."""
        self._calls.put(None)
