"""The pages on a listening socket."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from bothost.config import WebSettings
from bothost.errors import ConfigError
from bothost.listening import listen, url_host
from bothost.serving import running
from bothost.web.application import Web
from bothost.web.guard import LOOPBACK
from bothost.web.site import Site
from bothost.web.viewers import Viewers

CONNECTIONS = 512
"""Most connections at once. Each stream holds one: see ``application.WATCHERS``."""


def checked(settings: WebSettings) -> None:
    """Raises ConfigError for an address that others reach without a password, and for a password without a value."""
    if settings.password is not None:
        settings.password.reveal()
    elif settings.unprotected:
        advice = "set web.password, or listen on 127.0.0.1"
        raise ConfigError("others can reach this address, so it needs a password", key="web.host", advice=advice)


@contextlib.asynccontextmanager
async def serving(site: Site, settings: WebSettings) -> AsyncIterator[str]:
    """Serve the pages in this event loop; gives their address. Raises ConfigError."""
    checked(settings)
    password = None if settings.password is None else settings.password.reveal()
    web = Web(site, Viewers(password, spectators=settings.spectators))
    advice = "choose another with --port or web.port"
    listening = listen(settings.host, settings.port, key="web.port", advice=advice)
    application = web.application({*LOOPBACK, settings.host, *settings.hosts})
    async with running(
        application, listening, "web", lifespan="on", server_header=False, limit_concurrency=CONNECTIONS
    ) as port:
        yield f"http://{url_host(settings.host)}:{port}/"
