"""Leases on accounts: at most one host holds the lease of an account, by the clock of the database.

A lease is a row. Its holder renews it. Another host may take it when it is released or has expired. If the clock of the
database was set back, a lease seems to last longer than it does. So who waits for one also measures its time by a clock
that is never set.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import msgspec
import sqlalchemy as sa

from bothost.errors import StoreError, StoreUnavailable
from bothost.store.models import leases
from bothost.store.store import Store

AccountKey = tuple[str, str]
"""(lobby, account)"""
LONGEST_S = 3600.0
"""No lease is longer: the greatest ``host.lease_s``."""

_NOW_US = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}


class LeaseRound(msgspec.Struct, frozen=True):
    """The result of one transaction."""

    kept: frozenset[AccountKey]
    """Renewed leases."""
    taken: frozenset[AccountKey]
    """New leases."""
    others: dict[AccountKey, str]
    """Wanted leases that another host holds, with their holders."""


class Leases:
    """The leases of one holder. Every call is one short, synchronous transaction.

    ``holder`` must be unique to this host and the same after a restart: then the host takes its own leases at once.
    All methods raise StoreUnavailable while the database cannot be reached.
    """

    def __init__(self, store: Store, holder: str, ttl_s: float, longest_s: float = LONGEST_S) -> None:
        """``longest_s``: believe the lease of another host for no longer than this, unless it is renewed."""
        self._store = store
        self.holder = holder
        self.ttl_s = ttl_s
        self._longest_s = longest_s
        self._now: Any = sa.literal_column(_NOW_US[store.engine.dialect.name], sa.BigInteger)
        self._insert = store.insert
        self._believed: dict[AccountKey, tuple[int, float]] = {}
        """Lease of another host → when it expires by the database, and from when on it is not believed, monotonic."""
        # Made once, because a host renews all its leases every few seconds.
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
        """Renew ``held`` and try to get ``wanted``. ``take_over``: also take expired leases of others."""
        kept: set[AccountKey] = set()
        taken: set[AccountKey] = set()
        others: dict[AccountKey, str] = {}
        with self._store.begin() as connection:
            for key in sorted(held):  # sorted to avoid deadlocks
                if self._renew(connection, key):
                    kept.add(key)
            for key in sorted(wanted):
                if self._take(connection, key, take_over):
                    taken.add(key)
                else:
                    others[key] = self._look(connection, key)
        return LeaseRound(frozenset(kept), frozenset(taken), others)

    def holder_of(self, key: AccountKey) -> str | None:
        """Return the current holder of a lease; None if it is free or expired."""
        with self._store.begin() as connection:
            held = sa.select(leases.c.holder).where(*_is(key), leases.c.expires_us > self._now)
            return connection.execute(held).scalar()

    def seconds_left(self, key: AccountKey) -> float:
        """How long a lease lasts by the clock of the database; 0 if there is none."""
        with self._store.begin() as connection:
            lasts = connection.execute(sa.select(leases.c.expires_us - self._now).where(*_is(key))).scalar()
        return (lasts or 0) / 1e6

    def release(self, keys: Iterable[AccountKey]) -> None:
        """Release leases, so that another host may take them at once. Disconnect the accounts first."""
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
            expires_us, until = self._believed.get(key, (0, math.inf))
            if time.monotonic() >= until:
                free = free | (leases.c.expires_us == expires_us)
        statement = insert.on_conflict_do_update(
            index_elements=["lobby", "account"],
            set_={"holder": insert.excluded.holder, "expires_us": insert.excluded.expires_us},
            where=free,
        ).returning(leases.c.holder)
        return connection.execute(statement).first() is not None

    def _look(self, connection: sa.Connection, key: AccountKey) -> str:
        """The holder of a lease of another host; "?" if it has just gone. Notes for how long to believe the lease."""
        lasts = leases.c.expires_us - self._now
        held = connection.execute(sa.select(leases.c.holder, leases.c.expires_us, lasts).where(*_is(key))).first()
        if held is None:
            return "?"
        holder, expires_us, lasts_us = held
        until = time.monotonic() + min(lasts_us / 1e6, self._longest_s)
        seen_us, earlier = self._believed.get(key, (None, until))
        self._believed[key] = expires_us, min(until, earlier) if seen_us == expires_us else until
        return str(holder)

    def _expiry(self) -> Any:
        return self._now + int(self.ttl_s * 1_000_000)


def release_of(store: Store, ends: Iterable[str]) -> None:
    """Release the leases of holders whose names end so."""
    with store.begin() as connection:
        for end in ends:
            connection.execute(leases.delete().where(leases.c.holder.endswith(end, autoescape=True)))


class LeaseHeld(StoreError):
    """Another process holds the lease of a job."""


class JobLease:
    """A lease on a job: one process at a time, on any host, may do it. A thread renews it while it is held.

    Its key has an empty lobby name, which no account has. ``lock`` is a file in the host's ``data_dir``: while the job
    runs, it is locked. If the process is killed, the next one with this file has the same number, so it continues the
    lease at once. Others wait until it expires.
    """

    def __init__(self, store: Store, job: str, *, lock: Path | None = None, ttl_s: float = 60.0) -> None:
        self._store = store
        self._key = "", job
        self._lock = lock
        self._ttl_s = ttl_s
        self._ended = threading.Event()
        self._renewed_at = 0.0
        self._end = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Take the lease. Raises LeaseHeld if another process holds it."""
        with contextlib.ExitStack() as end:  # its callbacks run in reverse order
            renewed_s = self._ttl_s / 2  # a living process renews it within this time
            leases = Leases(self._store, f"{socket.gethostname()}/{self._number(end)}", self._ttl_s, renewed_s)
            found = leases.round((), (self._key,), take_over=True)
            if self._key not in found.taken and leases.seconds_left(self._key) > self._ttl_s:  # the clock was set back
                time.sleep(renewed_s)
                found = leases.round((), (self._key,), take_over=True)
            if self._key not in found.taken:
                holder = found.others.get(self._key, "?")
                raise LeaseHeld(
                    f"{holder} is doing this job",
                    advice="wait until it is done, or for a minute if that process has died",
                )
            end.callback(self._release, leases)
            self._renewed_at = time.monotonic()
            thread = threading.Thread(target=self._renew, args=(leases,), name="job-lease", daemon=True)
            thread.start()
            end.callback(thread.join)
            end.callback(self._ended.set)
            self._end = end.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def check(self) -> None:
        """Raise LeaseHeld if another process may hold the lease by now: then stop the job."""
        if time.monotonic() - self._renewed_at > self._ttl_s:
            raise LeaseHeld("the lease of this job was lost", advice="resume it when the database is back")

    def _number(self, end: contextlib.ExitStack) -> str:
        """The number in the lock, which is unlocked at the end; a new one if the file cannot be locked."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                number, file = locked_number(self._lock)
                end.callback(os.close, file)
                return number
        return f"{os.getpid()}/{uuid.uuid4().hex[:8]}"

    def _release(self, leases: Leases) -> None:
        with contextlib.suppress(StoreUnavailable):  # then it expires
            leases.release((self._key,))

    def _renew(self, leases: Leases) -> None:
        while not self._ended.wait(self._ttl_s / 4):
            with contextlib.suppress(StoreUnavailable):
                if self._key not in leases.round((self._key,), (), take_over=False).kept:
                    self._renewed_at = -math.inf
                    return
                self._renewed_at = time.monotonic()


def locked_number(path: Path, *, wait: bool = False) -> tuple[str, int]:
    """Lock a file. Returns the number in it, which the first process chose, and the open file, which holds the lock.

    The kernel unlocks the file of a killed process at once. ``wait``: block until no other process has locked it.
    Raises BlockingIOError if another process has, and OSError if the file is unusable.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        number = os.read(file, 64).decode("ascii", "replace").strip()
        if not number:
            number = uuid.uuid4().hex
            os.write(file, number.encode())
    except BaseException:
        os.close(file)
        raise
    return number, file


def _is(key: AccountKey) -> tuple[Any, Any]:
    return leases.c.lobby == key[0], leases.c.account == key[1]
