"""uvicorn, as a guest of an event loop that is somebody else's."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from bothost.listening import stop_accepting


class WebServer(uvicorn.Server):
    """Leaves signals to whoever runs the loop, and no connection behind."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections, those too that are being accepted."""
        await stop_accepting(*self.servers)
        await super().shutdown(sockets)
