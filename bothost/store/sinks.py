"""The interface of a database for the writer thread: bulk inserts, one transaction at a time.

Inserting an existing row does nothing. So a write with an unknown outcome can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from bothost.errors import StoreError

Chunk = tuple[str, tuple[str, ...], Sequence[Sequence[Any]]]
"""Table, columns, rows."""


class BadRow(StoreError):
    """The database cannot store a row of this write. The write was rolled back."""


class Sink(Protocol):
    """A database that stores rows. Only one thread may use it, but another one may create it."""

    def connect(self) -> None:
        """Connect and check the schema. Raises StoreUnavailable, SchemaOutdated."""
        ...

    def write(self, chunks: Iterable[Chunk], *, wait_ms: int, answer_s: float = 60.0) -> int:
        """Insert the rows in one transaction and return the number of new ones. Connects if needed.

        Waits at most ``wait_ms`` for a lock, and ``answer_s`` for each answer of a server. After StoreUnavailable and
        SchemaOutdated, retry later: the write was stored completely or not at all. After BadRow, do not retry.
        """
        ...

    def displaced(self) -> str:
        """Why the open database is no longer the one at its address; empty if it is. Any thread may ask."""
        ...

    def close(self) -> None: ...
