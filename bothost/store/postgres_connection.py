"""Connections to PostgreSQL that do not wait for ever.

A server that is frozen, or whose disk or network hangs, leaves a connection open and silent. TCP notices after a
quarter of an hour, or never. So a connection is closed when an answer takes longer than ``most_s``. It is then unknown
whether the last statement took effect.
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
        """As psycopg does, whose every wait for the server comes through here. Raises psycopg.OperationalError."""
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
