"""Erase a player's names outside the log's rows: spool, memos, leases, log files, and bytes that SQLite freed.

``bothost games forget`` calls it around :func:`bothost.store.forget.delete_hands`.
"""

from __future__ import annotations

import json
import mmap
import re
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from bothost.config import StoreSettings
from bothost.errors import StoreError, UsageError
from bothost.store.decision_log import make_sink
from bothost.store.engine import open_sqlite, sqlite_path
from bothost.store.models import COLUMNS, leases, memos
from bothost.store.spool import Spool
from bothost.store.store import Store
from bothost.store.writer import Writer

REPLAY_S = 60.0
"""How long the replay of one spool folder may take."""
WAIT_S = 30.0
"""How long SQLite waits for locks of other processes."""


def replay_spool(settings: StoreSettings, data_dir: Path) -> None:
    """Move the rows that stopped hosts and their workers left in spools into the database.

    Raises UsageError if rows remain in a spool.
    """
    for folder in sorted({segment.parents[1] for segment in data_dir.rglob("*.spool")}):
        writer = Writer(make_sink(settings), Spool(folder, COLUMNS))
        writer.recovered.wait(REPLAY_S)
        writer.close()
    if waiting := sorted(data_dir.rglob("*.spool")):
        raise UsageError(
            f"rows of a host are still in the spool, in {waiting[0]}",
            advice="wait until that host reaches the database, or stop it. Then repeat the command.",
        )


def mask_files(names: Collection[str], files: Iterable[Path]) -> dict[Path, int]:
    """Overwrite the names with dashes where they are whole words. Returns the number of replacements by file.

    Bytes are replaced in place, so a running host may append meanwhile.
    """
    pattern = _pattern(names)
    masked: dict[Path, int] = {}
    for path in files:
        if path.is_symlink() or not path.is_file() or path.stat().st_size == 0:
            continue
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
            places = [match.span() for match in pattern.finditer(content)]
            for start, end in places:
                content[start:end] = b"-" * (end - start)
            content.flush()
        if places:
            masked[path] = len(places)
    return masked


def files_with_names(data_dir: Path, log: Path | None) -> Iterator[Path]:
    """Files that may name players: rejected and damaged rows of spools, and log files.

    A log file has rotated versions, and workers have their own. Games in the browser keep theirs if they fail.
    """
    yield from sorted(data_dir.rglob("rejected.log"))
    yield from sorted(data_dir.rglob("*.damaged"))
    rooms = [room / "host.log" for room in sorted(data_dir.glob("play/*"))]
    for file in rooms if log is None else (log, *rooms):
        pattern = re.compile(rf"{re.escape(file.stem)}(-\d+)?{re.escape(file.suffix)}(\.\d+)?")
        yield from sorted(path for path in file.parent.glob("*") if pattern.fullmatch(path.name))


def delete_memos(store: Store, names: Collection[str]) -> int:
    """Delete memos of these accounts or with one of the names, and expired leases. Returns the number of memos."""
    now_us = time.time_ns() // 1000
    with store.begin(writes=True) as connection:
        stale = [
            (row.lobby, row.account)
            for row in connection.execute(memos.select())
            if row.account in names or not set(names).isdisjoint(_strings(json.loads(row.memo)))
        ]
        for lobby, account in stale:
            connection.execute(memos.delete().where(memos.c.lobby == lobby, memos.c.account == account))
        connection.execute(leases.delete().where(leases.c.account.in_(sorted(names)), leases.c.expires_us < now_us))
    return len(stale)


def rewrite_database(settings: StoreSettings) -> None:
    """Rewrite a SQLite file without the bytes of deleted rows, and empty its write-ahead log.

    ``secure_delete`` alone would leave copies of rows that SQLite moved earlier. Running hosts write to the spool
    meanwhile. Does nothing for other databases. Raises StoreError if the disk is full or another process reads.
    """
    path = sqlite_path(settings.url)
    if path is None:
        return
    advice = (
        f"The rows are deleted. Free as much disk space as {path.name} uses, stop its readers, and repeat the command."
    )
    try:
        with closing(open_sqlite(path, timeout=WAIT_S, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be rewritten: {error}", advice=advice) from error
    if busy:
        raise StoreError(f"{path}-wal cannot be emptied: another process reads the database", advice=advice)


def _pattern(names: Collection[str]) -> re.Pattern[bytes]:
    """Match the names as whole words, in UTF-8 and with the escapes of JSON and Python."""
    spellings: set[bytes] = set()
    for name in names:
        escaped = (json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1], repr(name)[1:-1])
        spellings |= {text.encode(errors="backslashreplace") for text in (name, *escaped)}
        spellings.add(name.encode("ascii", "backslashreplace"))
    words = b"|".join(re.escape(text) for text in sorted(spellings, key=len, reverse=True) if text)
    return re.compile(rb"(?:(?<![0-9A-Za-z_-])|(?<=\\[nrt]))(?:" + words + rb")(?![0-9A-Za-z_-])")


def _strings(value: object) -> Iterator[str]:
    """All keys and strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
