"""Deadlines by key, without a clock: the shell asks when to wake up, and then which keys are due."""

from __future__ import annotations

from bothost.tables.clock import NEVER, Deadlines


class Timer:
    """A key and its deadline."""

    __slots__ = ("due_at", "key", "wake_at")

    def __init__(self, key: str) -> None:
        self.key = key
        self.due_at = self.wake_at = NEVER


class Timers:
    """At most one deadline per key."""

    def __init__(self) -> None:
        self._deadlines = Deadlines[Timer]()
        self._by_key: dict[str, Timer] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def set(self, key: str, when: float) -> None:
        """Fire ``key`` at ``when``, instead of when it was to fire."""
        timer = self._by_key.get(key)
        if timer is None:
            timer = self._by_key[key] = Timer(key)
        timer.due_at = when
        self._deadlines.watch(timer)

    def cancel(self, key: str) -> None:
        """Forget ``key``."""
        if (timer := self._by_key.pop(key, None)) is not None:
            self._deadlines.forget(timer)

    def wake_at(self) -> float | None:
        """Return when to call :meth:`due` next; None: never. It may be too early, but not too late."""
        at = self._deadlines.next()
        return None if at == NEVER else at

    def due(self, now: float) -> list[str]:
        """The keys whose time has come, earliest first; they are forgotten."""
        keys = [timer.key for timer in self._deadlines.due(now)]
        for key in keys:
            del self._by_key[key]
        return keys
