"""What a database offers to the writer thread: bulk inserts, one transaction at a time.

Rows that are already there are left alone. So a write whose outcome is unknown can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from bothost.errors import StoreError

Chunk = tuple[str, tuple[str, ...], Sequence[Sequence[Any]]]
"""Table, columns, rows."""


class BadRow(StoreError):
    """The database cannot hold a row of this write. Nothing of the write was kept."""


class Sink(Protocol):
    """A database that takes rows. Belongs to one thread, but may be made in another."""

    def connect(self) -> None:
        """Connect and check the schema. Raises StoreUnavailable, SchemaOutdated."""
        ...

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int, answer_s: float = 60.0) -> int:
        """Insert the rows in one transaction and return how many were new; connects where needed.

        Waits at most ``wait_ms`` for a lock, and ``answer_s`` for each answer of a server. Raises StoreUnavailable or
        SchemaOutdated (try again later: nothing of the write was kept, or all of it) and BadRow (do not).
        """
        ...

    def close(self) -> None: ...
