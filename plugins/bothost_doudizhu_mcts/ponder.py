"""Continues a search while other players move."""

from __future__ import annotations

import threading

from bothost.rules import Search
from bothost_doudizhu_mcts.evaluated import LeafValues, search_on

SLICE_MS = 4.0
"""Longest time that a decision waits for pondering to end."""
MOST_ITERATIONS = 200_000
"""Most iterations between two decisions, so that an idle table does not use a core for ever."""


class Pondering:
    """A thread that continues a search after its root action was committed. The search releases the GIL.

    Only the thread may use the search until ``stop``.
    """

    def __init__(self, search: Search, evaluator: LeafValues | None) -> None:
        self._search, self._evaluator = search, evaluator
        self._begin = search.iterations
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ponder")
        self._thread.start()

    def _run(self) -> None:
        main = threading.main_thread()  # the interpreter waits for this thread at exit
        while not self._stop.is_set() and main.is_alive() and self._done < MOST_ITERATIONS:
            search_on(self._search, self._evaluator, iterations=MOST_ITERATIONS, ms=SLICE_MS)

    def stop(self) -> int:
        """Stop the thread. Returns its number of iterations."""
        self._stop.set()
        self._thread.join()
        return self._done

    @property
    def _done(self) -> int:
        return self._search.iterations - self._begin
