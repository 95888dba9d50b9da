"""The pages on a listening socket."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator

import uvicorn

from bothost.config import WebSettings
from bothost.errors import ConfigError
from bothost.serving import WebServer
from bothost.web.application import Web
from bothost.web.guard import LOOPBACK
from bothost.web.site import Site
from bothost.web.viewers import Viewers

BACKLOG = 128


def checked(settings: WebSettings) -> None:
    """Raises ConfigError for an address that others reach without a password to protect it."""
    if not is_loopback(settings.host) and (settings.password is None or not settings.password.present):
        advice = "set web.password, or listen on 127.0.0.1"
        raise ConfigError("others can reach this address, so it needs a password", key="web.host", advice=advice)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.asynccontextmanager
async def serving(site: Site, settings: WebSettings) -> AsyncIterator[str]:
    """Serve the pages in this event loop; gives their address. Raises ConfigError."""
    checked(settings)
    password = None if settings.password is None or not settings.password.present else settings.password.reveal()
    web = Web(site, Viewers(password, spectators=settings.spectators))
    listening = _listen(settings.host, settings.port)
    port: int = listening.getsockname()[1]
    config = uvicorn.Config(
        web.application({*LOOPBACK, settings.host, *settings.hosts}),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=512,
        timeout_graceful_shutdown=1,
    )
    server = WebServer(config)
    running = asyncio.create_task(server.serve(sockets=[listening]), name="web")
    try:
        yield f"http://{_shown(settings.host)}:{port}/"
    finally:
        server.should_exit = True
        await asyncio.gather(running, return_exceptions=True)
        listening.close()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        advice = f"another program may use port {port}: choose another with --port or web.port"
        message = f"cannot listen on {host}:{port}: {error}"
        raise ConfigError(message, key="web.port", value=port, advice=advice) from None
    listening.setblocking(False)
    return listening
