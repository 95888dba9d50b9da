"""Counts the seats that an account, and the whole host, holds or has asked for. They never exceed the cap."""

from __future__ import annotations


class Capacity:
    """A number of seats that several accounts share."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.used = 0

    def take(self) -> bool:
        if self.used >= self.cap:
            return False
        self.used += 1
        return True

    def give_back(self) -> None:
        self.used -= 1


class Slots:
    """Seats of one account.

    A slot is *reserved* before we ask for a seat, because an acceptance cannot be withdrawn. It is *held* when the
    lobby seats us, and free when the table ends, the seek ends, or the reservation expires. If the lobby seats us
    without a reservation, we need a free slot to stay.
    """

    def __init__(self, cap: int, shared: Capacity) -> None:
        self.cap = cap
        self._shared = shared
        self._reserved: dict[str, float] = {}
        self._held: set[str] = set()

    @property
    def held(self) -> frozenset[str]:
        """Tables that we sit at."""
        return frozenset(self._held)

    @property
    def reserved(self) -> frozenset[str]:
        """Open seeks."""
        return frozenset(self._reserved)

    @property
    def used(self) -> int:
        return len(self._reserved) + len(self._held)

    def _take(self) -> bool:
        return self.used < self.cap and self._shared.take()

    def reserve(self, seek: str, expires_at: float) -> bool:
        """Reserve a slot for a seek. Returns False if there is none, or the seek has one already."""
        if seek in self._reserved or not self._take():
            return False
        self._reserved[seek] = expires_at
        return True

    def extend(self, seek: str, expires_at: float) -> bool:
        """Keep the slot of a seek until then. Returns False if it has none."""
        if seek not in self._reserved:
            return False
        self._reserved[seek] = expires_at
        return True

    def cancel(self, seek: str) -> bool:
        """Free the slot of a seek that ended without a seat. Returns whether it had one."""
        if self._reserved.pop(seek, None) is None:
            return False
        self._shared.give_back()
        return True

    def seat(self, table: str, seek: str | None = None) -> bool:
        """Take a slot for a table. Returns False if there is none, so that we must leave the table."""
        if table in self._held:
            if seek is not None:
                self.cancel(seek)
            return True
        if seek is not None and self._reserved.pop(seek, None) is not None:
            self._held.add(table)  # the reservation's slot becomes the table's
            return True
        if not self._take():
            return False
        self._held.add(table)
        return True

    def release(self, table: str) -> bool:
        """Free the slot of a table that ended. Returns whether it had one."""
        if table not in self._held:
            return False
        self._held.remove(table)
        self._shared.give_back()
        return True

    def expire(self, now: float) -> list[str]:
        """Free expired reservations. Returns their seeks, which must be cancelled at the lobby."""
        late = [seek for seek, at in self._reserved.items() if at <= now]
        for seek in late:
            self.cancel(seek)
        return late
