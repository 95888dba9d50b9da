"""``bothost run``: connect to the lobbies and play until stopped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bothost import children, config
from bothost.cli import options
from bothost.errors import BothostError, ConfigError, UsageError

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after a second Ctrl-C, as of any program that Ctrl-C ends."""


def command(
    config_file: options.Config = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End with exit code 75 if a lobby cannot be reached at the start.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Number of processes to spread the accounts over.")] = 1,
    standby: Annotated[
        bool, typer.Option("--standby", help="While another host uses this data_dir, wait; play when it has ended.")
    ] = False,
    worker: Annotated[str | None, typer.Option(hidden=True, help="K/N: be worker K of N.")] = None,
    parent: options.Parent = None,
) -> None:
    """Connect to the lobbies and play. The first Ctrl-C or SIGTERM finishes the open hands, the second quits.

    SIGHUP applies a changed configuration for new tables.
    """
    children.hide()
    # Until the host listens to it: a reload that comes early must not end what is starting.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    file = config.find(config_file)
    settings = options.settings(file)
    if not any(lobby.accounts for lobby in settings.lobbies):
        advice = "add a [[lobby]] with a [[lobby.account]]; bothost init writes an example"
        raise ConfigError("no account is configured, so nothing would play", file=str(file), advice=advice)
    if worker is not None:
        share = share_of(settings, worker)
        _play(share, lambda: share_of(config.load(file), worker), file, fail_fast, parent=parent or os.getppid())
    elif (processes := min(workers, sum(len(lobby.accounts) for lobby in settings.lobbies))) <= 1:
        _play(settings, lambda: config.load(file), file, fail_fast, standby=standby)
    elif standby:
        raise UsageError("--standby goes with one process", advice="leave out --workers")
    else:
        _play_in_processes(settings, file, processes, fail_fast)


def _pages(settings: config.Settings, file: Path) -> contextlib.AbstractAsyncContextManager[None]:
    """The browser's pages beside the host, where ``web.enabled``. They have a process of their own, so that viewers do
    not slow the tables."""
    if not settings.web.enabled:
        return contextlib.nullcontext()
    from bothost.host.kept_process import KeptProcess

    argv = [sys.executable, "-m", "bothost", "web", "--config", str(file), "--parent", str(os.getpid())]
    return KeptProcess("web", argv).beside()


def _play(
    settings: config.Settings,
    read: Callable[[], config.Settings],
    file: Path,
    fail_fast: bool,
    *,
    parent: int | None = None,
    standby: bool = False,
) -> None:
    """Play with these settings. ``read`` reads them again, for SIGHUP, and when a standby's wait is over.

    ``parent``: the process of which this one is a worker.
    """
    start_logs(settings)
    gc.disable()  # imports make no garbage, and a host that was killed must be back soon; `launch` enables it again
    from bothost.host.spares import Spares, number_for
    from bothost.plugins import Plugins

    plugins = Plugins.load(settings.host.plugins_dir)
    plugins.folder = file.parent
    spares = Spares(number_for(settings, plugins), settings.host.plugin_environment)
    from bothost.host import fleet, launch, leases  # half a second, in which the worker processes import too

    identity = None
    if standby:
        launch.prepare(settings, plugins)
        identity = leases.Identity.of(settings.host.data_dir, settings.host.name, wait=True)
        settings = read()
        start_logs(settings)  # with new secrets, too

    async def play() -> bool:
        opening = launch.opened(
            settings, plugins, file=str(file), read=read, spares=spares, identity=identity, patient=standby
        )
        async with opening as host, contextlib.nullcontext() if parent else _pages(settings, file):
            watching = asyncio.create_task(fleet.drain_without_parent(parent, host.drain)) if parent else None
            try:
                await host.run(fail_fast=fail_fast)
            finally:
                if watching is not None:
                    watching.cancel()
            return host.interrupted

    if launch.run(play()):
        raise typer.Exit(INTERRUPTED)


def _play_in_processes(settings: config.Settings, file: Path, processes: int, fail_fast: bool) -> None:
    start_logs(settings)
    from bothost.host import fleet, launch

    def worker_command(number: int) -> list[str]:
        argv = [sys.executable, "-m", "bothost", "run", "--config", str(file)]
        argv += ["--worker", f"{number}/{processes}", "--parent", str(os.getpid())]
        return [*argv, "--fail-fast"] if fail_fast else argv

    async def run() -> int:
        async with _pages(settings, file):
            return await fleet.Fleet(settings, processes, worker_command, fail_fast=fail_fast).run()

    if code := launch.run(run()):
        raise typer.Exit(code)


def share_of(settings: config.Settings, worker: str) -> config.Settings:
    """The settings of worker ``K/N``."""
    from bothost.host import fleet

    match = re.fullmatch(r"([1-9]\d{0,2})/([1-9]\d{0,2})", worker)
    if match is None or int(match[1]) > int(match[2]):
        raise UsageError(f"--worker {worker} is not K/N", advice="it is for bothost's own use: bothost run --workers N")
    return fleet.share(settings, int(match[1]), int(match[2]))


def start_logs(settings: config.Settings, stream_level: str = "notset") -> None:
    """Logs as ``[log]`` says, with the secrets redacted. Raises BothostError if its file is unusable.

    stderr gets only those of ``stream_level`` or worse.
    """
    from bothost import logs

    known = []
    for secret in config.secrets(settings):
        if secret.present:
            pairs = secret is settings.lobby_server.tokens
            known += logs.tokens_of(secret.reveal()) if pairs else [secret.reveal()]
    log = settings.log
    try:
        logs.configure(secrets=known, stream_level=stream_level, **msgspec.structs.asdict(log))
    except OSError as error:
        advice = "let this user write to it, or set another [log] file"
        raise BothostError(f"log.file {log.file}: {error.strerror}", advice=advice) from error
