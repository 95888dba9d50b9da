"""Deadlines by key, without a clock: the shell asks when to wake up, and then which keys are due."""

from __future__ import annotations

import heapq


class Timers:
    """At most one deadline per key.

    Moving a deadline later, which every move at every table does, costs one dictionary write: the heap keeps the
    earlier entry, which is looked at once when it comes up.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._queued: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._due)

    @property
    def heap_size(self) -> int:
        """Entries in the heap: at least one for each deadline, bounded by twice their number."""
        return len(self._heap)

    def set(self, key: str, when: float) -> None:
        """Fire ``key`` at ``when``, instead of when it was to fire."""
        self._due[key] = when
        queued = self._queued.get(key)
        if queued is None or when < queued:
            self._queued[key] = when
            heapq.heappush(self._heap, (when, key))

    def cancel(self, key: str) -> None:
        """Forget ``key``; its heap entry goes when it comes up, or when too many have gathered."""
        self._due.pop(key, None)
        if len(self._heap) > 2 * len(self._due) + 64:
            self._queued = dict(self._due)
            self._heap = [(when, key) for key, when in self._due.items()]
            heapq.heapify(self._heap)

    def wake_at(self) -> float | None:
        """Return when to call :meth:`due` next; None: never. It may be too early, but not too late."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[str]:
        """The keys whose time has come, earliest first; they are forgotten."""
        fired = []
        while self._heap and self._heap[0][0] <= now:
            queued, key = heapq.heappop(self._heap)
            if self._queued.get(key) != queued:
                continue
            del self._queued[key]
            when = self._due.get(key)
            if when is None:
                continue
            if when <= now:
                del self._due[key]
                fired.append(key)
            else:
                self.set(key, when)
        return fired
