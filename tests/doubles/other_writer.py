"""Another process that writes to a SQLite database whenever ours has read something."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

import sqlalchemy as sa


@contextmanager
def another_writer(path: Path) -> Iterator[None]:
    """After each SELECT, also inside of a transaction, another connection commits a row; if it cannot, it goes on."""
    numbers = count()
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:

        def write(_connection, _cursor, statement: str, *_rest: object) -> None:
            if statement.startswith("SELECT"):
                with suppress(sqlite3.OperationalError):
                    other.execute("INSERT INTO memos VALUES ('other', ?, '{}', 0)", (f"{next(numbers)}",))

        sa.event.listen(sa.Engine, "after_cursor_execute", write)
        try:
            yield
        finally:
            sa.event.remove(sa.Engine, "after_cursor_execute", write)
    assert next(numbers), "nothing was read"
