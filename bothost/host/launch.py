"""Starts a host from settings: opens the database and the control socket, handles signals, closes everything."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import structlog
import uvloop

from bothost.config import Settings, config_hash
from bothost.errors import StoreUnavailable
from bothost.host import commands, reload, signals
from bothost.host.check import check_settings
from bothost.host.control import Control, socket_path
from bothost.host.leases import Identity, Keeper, release_dead
from bothost.host.memory import StoreMemory
from bothost.host.models import ModelWatch
from bothost.host.recovery import open_log, reached
from bothost.host.spares import Spares
from bothost.host.supervisor import Host
from bothost.host.tasks import BackgroundTasks
from bothost.native import _native
from bothost.plugins import Plugins
from bothost.store import DecisionLog, Store
from bothost.store.decision_log import make_sink
from bothost.store.engine import make_engine
from bothost.store.leases import Leases
from bothost.store.registry import Registry

_log = structlog.get_logger("bothost.host")

T = TypeVar("T")

GC_THRESHOLDS = (20_000, 20, 100)
"""Reference counting frees tables and decisions. Only cycles in plugins need the collector. With Python's default
thresholds it used a quarter of the time of a busy host."""
ANSWER_S = 10.0
"""If the database server takes longer than this to answer a running host, it counts as unreachable."""
SWITCH_INTERVAL_S = 0.001
"""How long a thread may hold the GIL while the event loop waits for it."""
ARENAS = 2
"""Parts of the allocator that serve all threads. glibc would make eight for each core, and pages that one part has
freed do not serve the others."""
TRIM_S = 60.0
"""How often freed memory goes back to the system. Otherwise each thread's part of the allocator keeps free pages below
its last block in use."""


def prepare(settings: Settings, plugins: Plugins) -> None:
    """Import what ``opened`` needs for these settings: strategies, adapters, and the driver of the database.

    A standby does so before it waits. Raises ConfigError and ConfigErrors for settings that cannot work.
    """
    check_settings(settings, plugins)
    make_sink(settings.store)
    with contextlib.suppress(StoreUnavailable):  # a SQLite file may be away now
        make_engine(settings.store).dispose()


@contextlib.asynccontextmanager
async def opened(
    settings: Settings,
    plugins: Plugins,
    *,
    file: str | None = None,
    read: Callable[[], Settings] | None = None,
    spares: Spares | None = None,
    identity: Identity | None = None,
    patient: bool = False,
) -> AsyncIterator[Host]:
    """A host with its database and control socket, ready to ``run``. The first signal drains it, the second quits.

    ``file``: the configuration's. ``read`` reads it again, for SIGHUP; without it SIGHUP is ignored.
    ``spares``: worker processes that are already started. ``identity``: of this ``data_dir``, if the caller has locked
    it already; it is closed at the end.
    ``patient``: wait for a database that is away, instead of raising StoreUnavailable.
    Raises ConfigError, SchemaOutdated, StoreUnavailable, and HostRunning if another host uses this ``data_dir``.
    """
    host: Host | None = None
    # First, because its lock also protects the socket.
    identity = identity or Identity.of(settings.host.data_dir, settings.host.name)
    control = Control(socket_path(settings.host.data_dir), commands.of(lambda: host))
    try:
        await control.start()
        store, log = await reached(functools.partial(_database, settings), patient=patient)
        with store:
            host = Host(
                settings,
                plugins,
                log,
                StoreMemory(store, lambda: log.recovered),
                config_hash=config_hash(settings),
                leases=Keeper(Leases(store, identity.holder, settings.host.lease_s)),
                spares=spares,
                file=file,
            )
            gc.freeze()  # imported objects are never freed
            gc.enable()
            registry = Registry(store, settings.host.data_dir / "models")
            host.models = models = ModelWatch(host, registry)
            hangup = asyncio.Event()
            async with _pages(host), BackgroundTasks() as tasks:
                tasks.spawn(_trim())
                tasks.spawn(_reload(host, read, hangup))
                with signals.handling(host.interrupt, hangup.set):
                    async with models.following():
                        yield host
    finally:
        await control.aclose()
        identity.close()


def _database(settings: Settings) -> tuple[Store, DecisionLog]:
    """The open database and its log. Raises SchemaOutdated and StoreUnavailable."""
    store = Store.open(settings.store, answer_s=ANSWER_S)
    try:
        log = open_log(settings)
        if log.recovered:
            release_dead(store, settings.host.data_dir)
        return store, log
    except BaseException:
        store.close()
        raise


def _pages(host: Host) -> contextlib.AbstractAsyncContextManager[int | None]:
    if host.settings.metrics.port is None:
        return contextlib.nullcontext()
    from bothost.host.metrics_server import serving  # imports a web server, which most hosts do not need

    return serving(host, host.settings.metrics)


async def _trim() -> None:
    """Return freed memory to the system, now and then."""
    while True:
        await asyncio.sleep(TRIM_S)
        await asyncio.to_thread(_native.return_free_memory)


async def _reload(host: Host, read: Callable[[], Settings] | None, hangup: asyncio.Event) -> None:
    """Reload the settings at each hangup. One that comes during a reload is followed by another."""
    while read is not None:
        await hangup.wait()
        hangup.clear()
        await reload.apply(host, read)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on uvloop."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    _native.take_short_turns()
    _native.limit_arenas(ARENAS)
    return uvloop.run(main)
