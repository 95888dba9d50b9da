"""Opens a host's decision log with the rows that earlier processes left in the spools of its ``data_dir``.

Each worker of ``bothost run --workers`` has its own spool. The next host may have another number of workers, or share
the accounts among them in another way. So all these rows go to the database before it plays.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TypeVar

import structlog

from bothost.config import Settings
from bothost.errors import StoreUnavailable
from bothost.store import DecisionLog

_log = structlog.get_logger("bothost.host")

T = TypeVar("T")

AWAY_S = 0.2
"""How long a patient host waits between two attempts to reach its database."""
WORKERS = "worker-*/spool"
"""The spools of workers, in ``data_dir``."""


def open_log(settings: Settings) -> DecisionLog:
    """Open the log of a host. Waits a while until it is ``recovered``. Raises as ``DecisionLog.open`` does."""
    data_dir = settings.host.data_dir
    return DecisionLog.open(
        settings.store, settings.host.name, data_dir / "spool", others=tuple(data_dir.glob(WORKERS))
    )


async def recover(settings: Settings) -> None:
    """Write the rows in all spools whose processes have ended to the database. Waits while it is away.

    Raises ConfigError and SchemaOutdated.
    """
    data_dir = settings.host.data_dir
    if not any(any(data_dir.glob(f"{spools}/*/*/*.spool")) for spools in ("spool", WORKERS)):
        return
    log = await reached(functools.partial(open_log, settings), patient=True)
    while not log.recovered:  # noqa: ASYNC110 (the log's thread has no event of this loop)
        await asyncio.sleep(AWAY_S)
    await log.aclose()


async def reached(connect: Callable[[], T], *, patient: bool) -> T:
    """The result of ``connect``, called in a thread. ``patient``: call it again while it raises StoreUnavailable."""
    reported = False
    while True:
        try:
            return await asyncio.to_thread(connect)
        except StoreUnavailable as error:
            if not patient:
                raise
            if not reported:
                _log.warning("database_away", error=str(error), advice=error.advice)
            reported = True
            await asyncio.sleep(AWAY_S)
