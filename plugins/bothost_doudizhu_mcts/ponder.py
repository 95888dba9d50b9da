"""Searching on while others move."""

from __future__ import annotations

import threading

from bothost.rules import Search
from bothost_doudizhu_mcts.evaluated import LeafValues, search_on

SLICE_MS = 4.0
"""Longest that a decision waits for pondering to end."""
MOST_ITERATIONS = 200_000
"""Of one pause: a table where nobody moves costs no core for ever."""


class Pondering:
    """A thread that goes on with a search whose root action was committed; the search releases the GIL.

    The search is the thread's alone from the beginning to ``stop``.
    """

    def __init__(self, search: Search, evaluator: LeafValues | None) -> None:
        self._search, self._evaluator = search, evaluator
        self._begin = search.iterations
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ponder")
        self._thread.start()

    def _run(self) -> None:
        main = threading.main_thread()  # it is over when the interpreter ends, and waits for this thread
        while not self._stop.is_set() and main.is_alive() and self._done < MOST_ITERATIONS:
            search_on(self._search, self._evaluator, iterations=MOST_ITERATIONS, ms=SLICE_MS)

    def stop(self) -> int:
        """End it and return how many iterations it did."""
        self._stop.set()
        self._thread.join()
        return self._done

    @property
    def _done(self) -> int:
        return self._search.iterations - self._begin
