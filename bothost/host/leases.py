"""The leases of accounts in the database, renewed in the background.

A host connects an account only while it holds the account's lease. There are four ways to get a lease of another
process:

- The holder ends or has drained the account. It disconnects, then releases the lease.
- The holder restarts with the same ``data_dir``. Its :class:`Identity` is the same, so it takes its leases at once.
- The holder was a process of this ``data_dir`` that was killed, and others play its accounts now, as after a change of
  ``--workers``. :func:`release_dead` releases its leases.
- The holder does not return. Its lease expires.

If a lobby allows an account several connections (``Capabilities.connections_per_identity``), there are as many leases,
and another host can take a free one at once.

While the database is unreachable no host can take a lease, so the holder continues to play. When the database is back,
the holder renews within a second. Other hosts take over expired leases only after they have reached the database
without a gap for the duration of a lease.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import socket
import time
from collections.abc import Collection
from pathlib import Path
from typing import Self

import structlog

from bothost.errors import BothostError, StoreUnavailable
from bothost.host.control import HostRunning
from bothost.store import Store
from bothost.store.leases import AccountKey, Leases, locked_number, release_of

_log = structlog.get_logger("bothost.host")

ROUND_S = 1.0
"""Seconds between two attempts to get a lease from another host."""


class Identity:
    """The identity of a host across restarts: a number in its ``data_dir``, locked while the process runs."""

    def __init__(self, holder: str, file: int) -> None:
        self.holder = holder
        self._file = file

    @classmethod
    def of(cls, data_dir: Path, name: str, *, wait: bool = False) -> Self:
        """Read or make the identity. Raises HostRunning if another process uses this ``data_dir``.

        ``wait``: block until no other process uses it. Raises BothostError if the folder is unusable.
        """
        try:
            number, file = locked_number(data_dir / "host.id", wait=wait)
        except BlockingIOError as error:
            raise HostRunning(
                f"a host is already running in {data_dir}", advice="give this host another host.data_dir"
            ) from error
        except OSError as error:
            advice = "let this user write to it, or set another [host] data_dir"
            raise BothostError(f"host.data_dir {data_dir}: {error.strerror}", advice=advice) from error
        return cls(name + _in_holder(number), file)

    def close(self) -> None:
        os.close(self._file)


def release_dead(store: Store, data_dir: Path) -> None:
    """Release the leases of a host and of workers in this ``data_dir`` that were killed: nothing locks their numbers.

    Call it when the rows in their spools are in the database. Raises StoreUnavailable.
    """
    with contextlib.ExitStack() as locked:
        dead = []
        for path in (data_dir / "host.id", *data_dir.glob("worker-*/host.id")):
            with contextlib.suppress(OSError):  # it runs, or is this process
                if path.exists():
                    number, file = locked_number(path)
                    locked.callback(os.close, file)
                    dead.append(_in_holder(number))
        if dead:
            release_of(store, dead)


def _in_holder(number: str) -> str:
    """How the names of holders with this number end."""
    return f"@{socket.gethostname()}/{number}"


class Keeper:
    """Keeps the leases of a host. Used on the event loop; database calls run in a thread."""

    def __init__(self, book: Leases, *, round_s: float = ROUND_S) -> None:
        self._book = book
        self.round_s = round_s
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "leases")
        self.held: set[AccountKey] = set()
        self.others: dict[AccountKey, str] = {}
        """Account → the other host that holds it."""
        self.problem = ""
        """Why the last round did not reach the database."""
        self._asked_for: set[AccountKey] = set()
        """Leases that the last round tried to get. If it was cancelled, we may hold them."""
        self._renewed_at = 0.0
        self._reached_since: float | None = None
        """Since when every round has reached the database; None: the last one did not."""

    async def round(
        self, wanted: Collection[AccountKey], *, now: bool = False
    ) -> tuple[set[AccountKey], set[AccountKey]]:
        """Renew held leases if they are due, and try to take the ``wanted`` ones. Returns the lost and gained leases.

        ``now``: renew them although they are not due, to learn whether another host has one. While the database is
        unreachable no lease is lost or gained.
        """
        began = time.monotonic()
        wanted = set(wanted) - self.held
        due = now or began - self._renewed_at >= self._book.ttl_s / 3
        if not wanted and not due:
            return set(), set()
        self._asked_for = wanted
        reached_s = began - self._reached_since if self._reached_since is not None else 0.0
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                self._thread, lambda: self._book.round(self.held, wanted, take_over=reached_s >= self._book.ttl_s)
            )
        except StoreUnavailable as error:
            if not self.problem:
                _log.warning("leases_not_renewed", error=str(error), advice=error.advice)
            self.problem = str(error)
            self._reached_since = None
            return set(), set()
        self.problem = ""
        if self._reached_since is None:
            self._reached_since = began
        self._renewed_at = began
        lost = self.held - found.kept
        self.held = set(found.kept | found.taken)
        self.others = found.others
        return lost, set(found.taken)

    async def release(self, keys: Collection[AccountKey]) -> None:
        """Release those of these leases that are held. Their accounts must be disconnected."""
        mine = self.held & set(keys)
        if not mine:
            return
        self.held -= mine
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._book.release, mine)
        except StoreUnavailable as error:
            _log.warning("leases_not_released", error=str(error), advice=f"they expire in {self._book.ttl_s:g} s")

    async def aclose(self) -> None:
        """Release all leases."""
        self.held |= self._asked_for
        await self.release(self.held)
        await asyncio.to_thread(self._thread.shutdown)
