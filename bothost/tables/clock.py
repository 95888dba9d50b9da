"""Time at the table: how long a decision may take, which table has the next deadline, and rate limits."""

from __future__ import annotations

import heapq
import math
from typing import Generic, Protocol, TypeVar

import msgspec

MAX_GRANT_S = 3600.0
"""Most time for a request, whatever the lobby grants."""
MIN_WINDOW_S = 0.05
"""Shortest window. A lobby that grants 0 right after a reconnect is usually wrong, and still gets a legal answer."""
SHRINK = 0.5
"""Minimum share of the grant that remains after the margin is subtracted."""


class ClockPolicy(msgspec.Struct, frozen=True):
    """How the time of a lobby's clock is used. Seconds."""

    margin_s: float = 0.25
    """Answers are sent at least this long before the lobby's deadline."""
    no_clock_s: float = 30.0
    """Time for a decision if the lobby has no clock."""
    bank_share: float = 0.05
    """Share of the remaining bank that one decision may use."""
    min_move_s: float = 0.0
    """Minimum time between a request and its answer, for lobbies with people."""


class Window(msgspec.Struct, frozen=True, gc=False):
    """The moments of one decision, monotonic seconds: ``arrival < strategy < late < fallback < answer``."""

    arrival: float
    strategy: float
    """When the strategy's budget ends."""
    late: float
    """When the strategy's answer is late. Its quick policy and the route's fallback are then asked."""
    fallback: float
    """When those are late, too. The first legal action is then taken."""
    answer: float
    """The deadline: the answer is sent before it."""
    not_before: float
    bank_ms: float

    def waiting(self, wait_ms: float) -> float:
        """When an answer may leave that shall wait so long after the arrival: never after the deadline."""
        if not wait_ms > 0.0:  # nor where a plugin says nan
            return self.not_before
        return min(self.answer, max(self.not_before, self.arrival + wait_ms / 1000.0))


def window(policy: ClockPolicy, arrival: float, grant_ms: float | None, bank_ms: float = 0.0) -> Window:
    """The window of a request that arrived at ``arrival``. It is valid for any grant (nan, negative)."""
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
    """Convert the lobby's milliseconds to seconds, clipped to 0 … ``MAX_GRANT_S``."""
    return min(ms, MAX_GRANT_S * 1000.0) / 1000.0 if ms > 0.0 else 0.0


class TokenBucket:
    """A token bucket with ``rate`` tokens a second, at most ``burst``. Times are monotonic seconds."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Take a token. Returns False if there is none."""
        self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens < 1.0 - 1e-9:
            return False
        self._tokens -= 1.0
        return True

    def wait(self) -> float:
        """Seconds until the next token, as of the last ``take``."""
        return max(0.0, (1.0 - self._tokens) / self.rate)


class Due(Protocol):
    """An item of :class:`Deadlines`. ``due_at`` is its deadline; ``wake_at`` belongs to the queue."""

    due_at: float
    wake_at: float


Item = TypeVar("Item", bound=Due)
NEVER = math.inf
SWEEP = 16
"""With at most this many useless entries, there is no sweep."""


class Deadlines(Generic[Item]):
    """A priority queue of deadlines, cheap for thousands of tables.

    If the deadline of a table moves to a later time, its entry in the heap stays until it comes up, and moves then.
    Each request of a table usually has a later deadline than the one before, so most requests do not change the heap.
    Entries of forgotten items, and those that an earlier entry replaced, are swept out when they are a quarter of all.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._count = 0
        self._useless = 0

    def __len__(self) -> int:
        return len(self._heap)

    def watch(self, item: Item) -> bool:
        """Watch ``item.due_at``. Returns whether it is now the earliest deadline, so that the timer must change."""
        at, before = item.due_at, item.wake_at
        if at >= before:
            return False
        item.wake_at = at
        nearer = not self._heap or at < self._heap[0][0]
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, item))
        if before < NEVER:
            self._count_useless()
        return nearer

    def forget(self, item: Item) -> None:
        """Stop watching the item."""
        item.due_at = NEVER
        if item.wake_at < NEVER:
            self._count_useless()

    def _count_useless(self) -> None:
        self._useless += 1
        if self._useless > SWEEP and self._useless * 4 > len(self._heap):
            self._sweep()

    def _sweep(self) -> None:
        kept = []
        for entry in self._heap:
            at, _, item = entry
            if at == item.wake_at and item.due_at == NEVER:
                item.wake_at = NEVER  # so that ``watch`` can add it again
            elif at == item.wake_at:
                kept.append(entry)
        heapq.heapify(kept)
        self._heap = kept
        self._useless = 0

    def next(self) -> float:
        """When ``due`` should be called; infinity if there are no items."""
        return self._heap[0][0] if self._heap else NEVER

    def due(self, now: float) -> list[Item]:
        """Take the items whose ``due_at`` has passed. They are no longer watched."""
        items: list[Item] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, item = heapq.heappop(self._heap)
            if at != item.wake_at:
                continue  # the item has an earlier entry
            item.wake_at = NEVER
            if item.due_at <= now:
                items.append(item)
            elif item.due_at < NEVER:
                self.watch(item)
        return items
