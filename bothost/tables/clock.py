"""Time at the table: how long a decision may take, and which table must be looked at next."""

from __future__ import annotations

import heapq
import math
from typing import Protocol

import msgspec

MAX_GRANT_S = 3600.0
"""Most time for a request, whatever the lobby grants."""
MIN_WINDOW_S = 0.05
"""Shortest window. A lobby that says 0 right after a reconnect is usually wrong, and still gets a legal answer."""
SHRINK = 0.5
"""Part of a short grant that is kept when the margin would eat it."""


class ClockPolicy(msgspec.Struct, frozen=True):
    """How a lobby's clock is spent. Seconds."""

    margin_s: float = 0.25
    """An answer leaves this long before the lobby's deadline."""
    no_clock_s: float = 30.0
    """What a decision may take where the lobby has no clock."""
    bank_share: float = 0.05
    """Part of the remaining bank that one decision may spend."""
    min_move_s: float = 0.0
    """No answer leaves earlier than this after the request (for lobbies with people)."""


class Window(msgspec.Struct, frozen=True, gc=False):
    """The moments of one decision, monotonic seconds: ``arrival < strategy < late < fallback < answer``."""

    arrival: float
    strategy: float
    """The end of the strategy's budget."""
    late: float
    """Until then its answer is taken; then its quick policy and the route's fallback are asked."""
    fallback: float
    """Until then those may think; then the first legal action is taken."""
    answer: float
    """The deadline: by then an answer has left."""
    not_before: float
    bank_ms: float


def window(policy: ClockPolicy, arrival: float, grant_ms: float | None, bank_ms: float = 0.0) -> Window:
    """The window of a request that arrived at ``arrival``: a sane one, whatever the lobby says (nan, negative)."""
    bank_s = _clamped(bank_ms)
    total = policy.no_clock_s if grant_ms is None else _clamped(grant_ms) + policy.bank_share * bank_s
    length = max(total - policy.margin_s, SHRINK * total, MIN_WINDOW_S)
    answer = arrival + length
    ends = (0.15, 0.1, 0.03) if length >= 0.375 else (0.4 * length, 0.3 * length, 0.1 * length)
    not_before = arrival + policy.min_move_s
    return Window(
        arrival,
        answer - ends[0],
        answer - ends[1],
        answer - ends[2],
        answer,
        not_before if not_before < answer else answer,
        bank_s * 1000.0,
    )


def _clamped(ms: float) -> float:
    """The lobby's milliseconds in seconds, clipped to plausible values."""
    return min(ms / 1000.0, MAX_GRANT_S) if ms > 0.0 else 0.0


class Due(Protocol):
    """What :class:`Deadlines` keeps: ``due_at`` is when it wants to be looked at, ``wake_at`` belongs to the queue."""

    due_at: float
    wake_at: float


NEVER = math.inf
SWEEP = 16
"""Forgotten items that are not worth sweeping."""


class Deadlines:
    """The tables that wait for a moment, nearest first, for thousands of tables at little cost.

    A table whose deadline moves later keeps its one entry, which is moved only when it comes up: as each request of a
    table has a later deadline than the one before, asking and answering touch nothing here. Items that are gone are
    removed by ``forget``, and swept out when they are a quarter of all.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Due]] = []
        self._count = 0
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._heap)

    def watch(self, item: Due) -> bool:
        """Note ``item.due_at``. Returns whether the nearest moment became nearer (a timer must be set again)."""
        at = item.due_at
        if at >= item.wake_at:
            return False
        item.wake_at = at
        nearer = not self._heap or at < self._heap[0][0]
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, item))
        return nearer

    def forget(self, item: Due) -> None:
        """The item waits for nothing any more."""
        item.due_at = NEVER
        if item.wake_at == NEVER:
            return
        self._forgotten += 1
        if self._forgotten > SWEEP and self._forgotten * 4 > len(self._heap):
            self._sweep()

    def _sweep(self) -> None:
        kept = []
        for entry in self._heap:
            at, _, item = entry
            if at == item.wake_at and item.due_at == NEVER:
                item.wake_at = NEVER  # should it wait again, it comes back
            elif at == item.wake_at:
                kept.append(entry)
        heapq.heapify(kept)
        self._heap = kept
        self._forgotten = 0

    def next(self) -> float:
        """The moment at which ``due`` should be called, infinity when there is none."""
        return self._heap[0][0] if self._heap else NEVER

    def due(self, now: float) -> list[Due]:
        """The items whose ``due_at`` has come; each is returned once and then not watched."""
        items: list[Due] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, item = heapq.heappop(self._heap)
            if at != item.wake_at:
                continue  # an earlier entry of the same item stands in for this one
            item.wake_at = NEVER
            if item.due_at <= now:
                items.append(item)
            elif item.due_at < NEVER:
                self.watch(item)
        return items
