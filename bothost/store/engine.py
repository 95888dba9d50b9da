"""Make SQLAlchemy engines and set up raw SQLite connections with the same settings."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError

from bothost.config import StoreSettings
from bothost.errors import ConfigError, StoreUnavailable, UsageError

PAGE_BYTES = 4096
"""Page size of new SQLite files. Interleaved hands write their keys to different pages, and a commit writes each
changed page in full: with 8 KiB pages the write-ahead log of a busy host was almost twice as long."""
CACHE_KIB = 16_384
"""Page cache of a connection. Ids grow with time, so the writer mostly needs the newest pages. Until the cache is full,
each commit allocates more memory."""
WRITES = "bothost_writes"
"""Execution option of transactions that read before they write. In SQLite they take the write lock at once: a
transaction that has read cannot write any more after another process has written, however long it waits."""


def parse_url(url: str) -> URL:
    """Parse the URL of a supported database, and set the driver that we use.

    Raises ConfigError for other databases and invalid URLs.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigError("not a database URL", key="store.url", value=url, advice=_URL_ADVICE) from error
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise ConfigError("the log must be a file, not memory", key="store.url", value=url, advice=_URL_ADVICE)
        return parsed.set(drivername="sqlite+pysqlite")
    if backend == "postgresql":
        if find_spec("psycopg") is None:
            advice = "install it with: pip install 'bothost[postgres]'"
            raise ConfigError("PostgreSQL needs psycopg, which is not installed", key="store.url", advice=advice)
        return parsed.set(drivername="postgresql+psycopg")
    raise ConfigError(f"no support for {backend} databases", key="store.url", value=url, advice=_URL_ADVICE)


_DAMAGED = "the file is damaged: move it and its -wal and -shm files away, then: bothost db restore BACKUP"
_FULL = "make room on its disk; if there is room, see the system's log for a broken disk"
_SERVER = "check that the server runs, and store.url"
_ADVICE = {
    "readonly": "let this user write to the file and to its folder: SQLite needs both, even to read",
    "malformed": _DAMAGED,
    "not a database": _DAMAGED,
    "disk I/O error": _FULL,
    "disk is full": _FULL,
    "is locked": "another process has been writing for long: wait until it has ended, or end it",
    "unable to open": "check that its folder exists, and let this user read and write both",
    "password": "set $BOTHOST_STORE_PASSWORD, or [store] password",
    "connection to server": _SERVER,
    "resolve host": _SERVER,
    "closed the connection": _SERVER,
    "terminating connection": _SERVER,
    "the database system is": _SERVER,  # starting up, in recovery mode, shutting down
    "no answer within": _SERVER,
    "permission denied": "let the role in store.url read and write the tables of its database",
}
"""Words in a driver's message → what to do."""
_URL_ADVICE = "use sqlite:///var/bothost.db or postgresql+psycopg://user@host/name"


def full_url(settings: StoreSettings) -> URL:
    """Return the URL with the separately configured password, if any. Never print it: see ``shown``."""
    url = parse_url(settings.url)
    if settings.password is not None and url.get_backend_name() != "sqlite":
        return url.set(password=settings.password.reveal())
    return url


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite URL; None for other databases."""
    parsed = parse_url(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def shown(url: str) -> str:
    """Return the URL without its password, for messages."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return f"sqlite:///{parsed.database}"  # as people write it, not with encoded Chinese characters
    return parsed.render_as_string(hide_password=True)


def in_one_line(error: object) -> str:
    """A driver's message without its line ends and tabs."""
    return " ".join(str(error).split())


def unavailable(where: object, error: object, *, advice: str = "") -> StoreUnavailable:
    """The error of a database that cannot be used now. ``error``: the driver's."""
    cause = in_one_line(error) or type(error).__name__
    return StoreUnavailable(f"database {where}: {cause}", advice=advice or advice_on(cause))


def advice_on(cause: str) -> str:
    """What to do about a driver's message; empty: nothing is known."""
    return next((text for words, text in _ADVICE.items() if words in cause), "")


def storable(text: str) -> str:
    """Return the text as PostgreSQL can store it. A lobby may send names with NUL and lone surrogates."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def set_up_sqlite(connection: sqlite3.Connection, *, synchronous: str = "normal", busy_ms: int = 5000) -> None:
    """Apply our settings to a new connection.

    WAL with synchronous NORMAL keeps every commit if the process dies; FULL also if the power fails.
    """
    connection.execute(f"PRAGMA busy_timeout = {busy_ms:d}")
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # only takes effect on an empty file
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous == 'full' else 'NORMAL'}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")


def open_sqlite(path: Path, *, create: bool = False, **options: Any) -> sqlite3.Connection:
    """Connect to a database file, with ``options`` of :func:`sqlite3.connect`. Raises sqlite3.Error if it is missing.

    A file that is moved away for a moment must not be made anew: SQLite deletes the write-ahead log beside an empty
    file, and with it the newest rows of the moved one.
    """
    uri = f"file:{quote(str(path.resolve()))}?mode={'rwc' if create else 'rw'}"
    connection: sqlite3.Connection = sqlite3.connect(uri, uri=True, **options)
    return connection


def file_identity(path: Path) -> tuple[int, int]:
    """Device and inode of a file, which tell whether it is still the one that was opened. Raises OSError."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def file_at(path: Path) -> tuple[int, int] | None:
    """As ``file_identity``; None if there is no file."""
    with contextlib.suppress(OSError):
        return file_identity(path)
    return None


def bind_without_adapters() -> None:
    """Make the sqlite3 module bind bytes and None faster, in this process.

    By default it searches for an adapter in four places for each such value. That is a quarter of the time of binding
    a decision.
    """
    nothing: dict[None, None] = {}
    sqlite3.register_adapter(bytes, bytes)
    sqlite3.register_adapter(type(None), nothing.get)


def make_engine(settings: StoreSettings, *, create: bool = False, answer_s: float | None = None) -> sa.Engine:
    """Make an engine for small reads and writes and for migrations.

    A missing SQLite file is an error unless ``create``: an empty database would look like lost data. Where its
    write-ahead log is still there, it is one always. ``answer_s``: how long to wait for a server's answer in seconds;
    None: no limit. Raises ConfigError and StoreUnavailable.
    """
    url = full_url(settings)
    if url.get_backend_name() != "sqlite":
        return _server_engine(url, answer_s)
    path = Path(url.database or "")
    newest = Path(f"{path}-wal")
    if newest.exists() and not path.exists():
        advice = f"move it back; to begin anew, move {newest}, which has its newest rows, to where it is"
        raise StoreUnavailable(f"no database at {path}", advice=advice)
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not path.exists():
        raise StoreUnavailable(f"no database at {path}", advice="create it with: bothost db upgrade")
    engine = sa.create_engine(url, creator=lambda: open_sqlite(path, create=create, check_same_thread=False))

    def on_connect(connection: Any, record: Any) -> None:
        # We begin transactions ourselves: the sqlite3 module would run DDL outside of them.
        connection.isolation_level = None
        set_up_sqlite(connection, synchronous=settings.synchronous)
        record.info["file"] = file_at(path)

    def on_begin(connection: sa.Connection) -> None:
        at_once = create or connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if at_once else "BEGIN")

    def on_checkout(_connection: object, record: Any, _proxy: object) -> None:
        # A pooled connection would go on with a file that was replaced: a host would renew leases that no other sees.
        if file_at(path) != record.info["file"]:
            raise sa.exc.DisconnectionError(f"{path} was moved, deleted or replaced")

    sa.event.listen(engine, "connect", on_connect)
    sa.event.listen(engine, "begin", on_begin)
    if not create:
        sa.event.listen(engine, "checkout", on_checkout)
    return engine


def _server_engine(url: URL, answer_s: float | None) -> sa.Engine:
    from bothost.store import postgres_connection

    if answer_s is None:
        options = {"connect_timeout": postgres_connection.CONNECT_TIMEOUT_S}
        return sa.create_engine(url, pool_pre_ping=True, connect_args=options)
    dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
    return sa.create_engine(url, pool_pre_ping=True, creator=lambda: postgres_connection.connect(dsn, answer_s))


@contextlib.contextmanager
def reaching(settings: StoreSettings) -> Iterator[None]:
    """Turn driver errors into StoreUnavailable, except IntegrityError. Raises UsageError for a value such as NUL."""
    try:
        yield
    except IntegrityError:
        raise
    except (DataError, UnicodeEncodeError, OverflowError) as error:
        cause = in_one_line(error.orig if isinstance(error, DataError) else error)
        raise UsageError(f"the database cannot hold this value: {cause}") from error
    except (DBAPIError, sa.exc.TimeoutError) as error:  # the latter: other threads use all connections
        raise unavailable(shown(settings.url), error.orig if isinstance(error, DBAPIError) else error) from error
