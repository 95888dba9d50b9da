"""Leases on accounts: at most one host holds an account's, by the clock of the database.

A lease is a row. Its holder renews it; another host may take it when it is released or when it has expired.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterable
from typing import Any, Self

import msgspec
import sqlalchemy as sa

from bothost.errors import StoreError, StoreUnavailable
from bothost.store.models import leases
from bothost.store.store import Store

AccountKey = tuple[str, str]
"""(lobby, account)"""

_NOW_US = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}


class LeaseRound(msgspec.Struct, frozen=True):
    """What one transaction found."""

    kept: frozenset[AccountKey]
    """Renewed."""
    taken: frozenset[AccountKey]
    """New ones."""
    others: dict[AccountKey, str]
    """Wanted, but held by another: the holders."""


class Leases:
    """The leases of one holder. Synchronous; every call is one short transaction.

    ``holder`` must be the same after a restart of this host, which then takes its own leases at once. No other
    host may use it. All methods raise StoreUnavailable while the database cannot be reached.
    """

    def __init__(self, store: Store, holder: str, ttl_s: float) -> None:
        self._store = store
        self.holder = holder
        self.ttl_s = ttl_s
        self._now: Any = sa.literal_column(_NOW_US[store.engine.dialect.name], sa.BigInteger)
        self._insert = store.insert
        # Made once: a host renews all that it holds every few seconds, beside the tables that it plays.
        self._renewal = (
            leases.update()
            .where(
                leases.c.lobby == sa.bindparam("of_lobby"),
                leases.c.account == sa.bindparam("of_account"),
                leases.c.holder == holder,
            )
            .values(expires_us=self._expiry())
        )

    def round(self, held: Iterable[AccountKey], wanted: Iterable[AccountKey], *, take_over: bool) -> LeaseRound:
        """Renew ``held`` and try to get ``wanted``; ``take_over``: also those of others that have expired."""
        kept: set[AccountKey] = set()
        taken: set[AccountKey] = set()
        others: dict[AccountKey, str] = {}
        with self._store.begin() as connection:
            for key in sorted(held):  # in one order everywhere: no deadlocks
                if self._renew(connection, key):
                    kept.add(key)
            for key in sorted(wanted):
                if self._take(connection, key, take_over):
                    taken.add(key)
                else:
                    who = sa.select(leases.c.holder).where(*_is(key))
                    others[key] = connection.execute(who).scalar() or "?"
        return LeaseRound(frozenset(kept), frozenset(taken), others)

    def holder_of(self, key: AccountKey) -> str | None:
        """Who holds a lease now; None if it is free or has expired."""
        with self._store.begin() as connection:
            held = sa.select(leases.c.holder).where(*_is(key), leases.c.expires_us > self._now)
            return connection.execute(held).scalar()

    def release(self, keys: Iterable[AccountKey]) -> None:
        """Let go: another host may take them at once. The accounts must be disconnected by now."""
        with self._store.begin() as connection:
            for key in sorted(keys):
                connection.execute(leases.delete().where(*_is(key), leases.c.holder == self.holder))

    def _renew(self, connection: sa.Connection, key: AccountKey) -> bool:
        return bool(connection.execute(self._renewal, {"of_lobby": key[0], "of_account": key[1]}).rowcount)

    def _take(self, connection: sa.Connection, key: AccountKey, take_over: bool) -> bool:
        insert = self._insert(leases).values(
            lobby=key[0], account=key[1], holder=self.holder, expires_us=self._expiry()
        )
        free = leases.c.holder == self.holder
        if take_over:
            free = free | (leases.c.expires_us <= self._now)
        statement = insert.on_conflict_do_update(
            index_elements=["lobby", "account"],
            set_={"holder": insert.excluded.holder, "expires_us": insert.excluded.expires_us},
            where=free,
        ).returning(leases.c.holder)
        return connection.execute(statement).first() is not None

    def _expiry(self) -> Any:
        return self._now + int(self.ttl_s * 1_000_000)


class LeaseHeld(StoreError):
    """Another process holds the lease of a job."""


class JobLease:
    """A lease on a job, so that one process at a time does it, whatever the host: renewed in a thread while held.

    The lobby of its key is empty, which no lobby's name is.
    """

    def __init__(self, store: Store, job: str, *, ttl_s: float = 60.0) -> None:
        self._key = "", job
        self._leases = Leases(store, f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}", ttl_s)
        self._ended = threading.Event()
        self._renewed_at = 0.0
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Raises LeaseHeld when another process has it."""
        found = self._leases.round((), (self._key,), take_over=True)
        if self._key not in found.taken:
            holder = found.others.get(self._key, "?")
            raise LeaseHeld(
                f"{holder} does this job now", advice="wait until it is done, or has been gone for a minute"
            )
        self._renewed_at = time.monotonic()
        self._thread = threading.Thread(target=self._renew, name="job-lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with contextlib.suppress(StoreUnavailable):  # it expires
            self._leases.release((self._key,))

    def check(self) -> None:
        """Raise LeaseHeld where the lease may be another's by now: what is left of the job must not be done."""
        if time.monotonic() - self._renewed_at > self._leases.ttl_s:
            raise LeaseHeld("the lease of this job was lost", advice="resume it when the database is back")

    def _renew(self) -> None:
        while not self._ended.wait(self._leases.ttl_s / 4):
            with contextlib.suppress(StoreUnavailable):
                if self._key not in self._leases.round((self._key,), (), take_over=False).kept:
                    self._renewed_at = -math.inf
                    return
                self._renewed_at = time.monotonic()


def _is(key: AccountKey) -> tuple[Any, Any]:
    return leases.c.lobby == key[0], leases.c.account == key[1]
