"""Uvicorn inside an event loop that it does not own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from bothost.listening import stop_accepting


class WebServer(uvicorn.Server):
    """Installs no signal handlers and leaves no connection open."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections, including those that are being accepted."""
        await stop_accepting(*self.servers)
        await super().shutdown(sockets)
