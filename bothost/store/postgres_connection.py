"""Connections to PostgreSQL with a time limit for each answer.

If a server, its disk or its network hangs, the connection stays open and silent. TCP notices after 15 minutes or
never. So a connection is closed when an answer takes longer than ``most_s``. Then it is unknown whether the last
statement took effect.
"""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

CONNECT_TIMEOUT_S = 3
T = TypeVar("T")


class TimedConnection(psycopg.Connection[Any]):
    """A connection that is closed when an answer takes longer than ``most_s`` seconds."""

    most_s = 10.0

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Override psycopg's wait for the server, with the limit. Raises psycopg.OperationalError."""
        try:
            return super().wait(gen, interval, self.most_s if timeout is None else timeout)
        except psycopg.errors._WaitTimeout as error:
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"no answer within {self.most_s if timeout is None else timeout:g} s"
            ) from error


def connect(dsn: str, most_s: float, *, autocommit: bool = False) -> TimedConnection:
    """Connect within ``CONNECT_TIMEOUT_S``. Raises psycopg.OperationalError."""
    connection = TimedConnection.connect(dsn, connect_timeout=CONNECT_TIMEOUT_S, autocommit=autocommit)
    connection.most_s = most_s
    return connection
