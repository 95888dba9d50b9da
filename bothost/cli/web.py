"""``bothost web``: the browser's pages, from the log of this configuration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bothost import children, config
from bothost.cli import options


def settings_or_demo(path: Path | None) -> config.Settings:
    """Return the settings; without a configuration those of `bothost demo`, and create its database."""
    if options.is_configured(path):
        return options.settings(path)
    from bothost.store import schema

    settings = config.parse("", base=Path.cwd())
    schema.upgrade(settings.store)
    return settings


def command(
    config_file: options.Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: web.host.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 0 takes any free one; default: web.port.")
    ] = None,
    parent: options.Parent = None,
) -> None:
    """Serve the pages: live tables, logged hands, replays. Ctrl-C ends it."""
    from bothost.cli.run import start_logs

    children.hide()
    settings = settings_or_demo(config_file)
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    web = msgspec.structs.replace(settings.web, **given)
    start_logs(settings)
    from bothost.host import fleet
    from bothost.store import Store
    from bothost.web.server import serving
    from bothost.web.site import Site

    plugins = options.plugins(config_file)

    interrupted = False

    def interrupt(serving_pages: asyncio.Task[None]) -> None:
        nonlocal interrupted
        if interrupted:  # a second Ctrl-C ends it at once; uvicorn would log the traceback of what is cut off
            logging.disable()
            raise KeyboardInterrupt
        interrupted = True
        serving_pages.cancel()

    async def serve() -> None:
        serving_pages = asyncio.current_task()
        assert serving_pages is not None
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, serving_pages.cancel)  # games and jobs end first
        loop.add_signal_handler(signal.SIGINT, interrupt, serving_pages)
        with Store.open(settings.store) as store:
            async with serving(Site(settings, store, plugins), web) as url:
                typer.echo(f"Open {url} in a browser. Ctrl-C ends it.")
                if parent is not None:
                    await fleet.drain_without_parent(parent, lambda: None)
                else:
                    await asyncio.Event().wait()

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(serve())
    if interrupted:
        raise KeyboardInterrupt
