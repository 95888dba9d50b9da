"""Open listening sockets, and close them without losing connections that are being accepted."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterable
from typing import Protocol

from bothost.errors import ConfigError


class Listening(Protocol):
    """An ``asyncio.Server`` or a wrapper of one."""

    @property
    def sockets(self) -> Iterable[socket.socket]:
        """The listening sockets."""


def listen(host: str, port: int, *, key: str, advice: str, backlog: int = 128) -> socket.socket:
    """Open a listening TCP socket; port 0 takes a free one.

    Raises ConfigError: for the setting ``key`` if the port is taken, for the one of the host if the address is not
    ours. ``advice`` says how to choose another port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY for this one
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(backlog)
    except (OSError, OverflowError, ValueError, TypeError) as error:
        listening.close()
        number = error.errno if isinstance(error, OSError) else None
        if number == errno.EADDRINUSE:
            advice = f"another program may use port {port}: {advice}"
        elif number == errno.EACCES:
            advice = "only root may listen there: choose a port above 1023"
        else:
            key, advice = key.removesuffix("port") + "host", "name an address of this machine, such as 127.0.0.1"
        raise ConfigError(f"cannot listen on {host}:{port}: {error}", key=key, advice=advice) from None
    listening.setblocking(False)
    return listening


def url_host(host: str) -> str:
    """The host as it stands in a URL: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


async def stop_accepting(*servers: Listening) -> None:
    """Stop accepting connections, and wait until those just accepted have transports. Call it before ``close()``.

    Otherwise asyncio's selector loop loses a connection that it accepted in the iteration before the server was
    closed, and never closes its socket (python/cpython#109564).
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # a proactor loop (Windows) has no readers
        for server in servers:
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
