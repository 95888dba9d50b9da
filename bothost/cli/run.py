"""``bothost run``: play until told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from bothost import config
from bothost.cli import options


def command(
    config_file: options.Config = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End with exit code 75 when a lobby cannot be reached at the start.")
    ] = False,
) -> None:
    """Connect to the lobbies, take seats, play, log. The first Ctrl-C or SIGTERM drains, the second quits."""
    settings = options.settings(config_file)
    start_logs(settings)
    from bothost.host import launch
    from bothost.plugins import Plugins

    plugins = Plugins.load(settings.host.plugins_dir)

    async def play() -> None:
        async with launch.opened(settings, plugins) as host:
            await host.run(fail_fast=fail_fast)

    launch.run(play())


def start_logs(settings: config.Settings) -> None:
    """Logs as ``[log]`` says, with the configuration's secrets redacted."""
    from bothost import logs

    known = [secret.reveal() for secret in config.secrets(settings) if secret.present]
    log = settings.log
    logs.configure(
        level=log.level, format=log.format, file=log.file, rotate_bytes=log.rotate_bytes, keep=log.keep, secrets=known
    )
