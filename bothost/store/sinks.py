"""Bulk inserts, one transaction at a time: what stands between the writer thread and a database.

Rows that are already there are left alone, so that whatever is uncertain can simply be written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from bothost.config import StoreSettings
from bothost.errors import StoreError
from bothost.store.engine import parse_url

Chunk = tuple[str, tuple[str, ...], Sequence[Sequence[Any]]]
"""Table, columns, rows."""


class BadRow(StoreError):
    """A row of this write is nothing that the database can hold; nothing of the write was kept."""


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


def make_sink(settings: StoreSettings) -> Sink:
    """The sink of a database URL."""
    url = parse_url(settings.url)
    if url.get_backend_name() == "sqlite":
        from bothost.store.sqlite_sink import SqliteSink

        background = settings.durability == "async"
        return SqliteSink(Path(url.database or ""), synchronous=settings.synchronous, background=background)
    from bothost.store.postgres import PostgresSink

    return PostgresSink(settings)
