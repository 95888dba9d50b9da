"""Run uvicorn inside an existing event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bothost.listening import stop_accepting

REQUEST_S = 10.0
"""Seconds within which a request must be complete, and a client must read what fills the write buffer."""
UNFINISHED = 100
"""Most connections that have such a deadline. One more disconnects the oldest of them."""
LINES_PER_MINUTE = 20
"""Most lines of uvicorn in the log: a client causes one with every invalid request."""
SETTINGS: dict[str, Any] = {
    "ws": "none",
    "lifespan": "off",
    "log_config": None,
    "log_level": "warning",
    "access_log": False,
    "timeout_graceful_shutdown": 1,
}
"""Defaults of ``running``."""


class WebServer(uvicorn.Server):
    """A uvicorn server without signal handlers. It closes every connection and limits the time of clients."""

    def __init__(self, config: uvicorn.Config, request_s: float) -> None:
        unfinished: dict[BoundedHttp, asyncio.TimerHandle] = {}
        logger = logging.Logger("uvicorn.error")
        logger.parent = logging.getLogger("uvicorn.error")
        logger.addFilter(PerMinute(LINES_PER_MINUTE))
        protocol = partial(BoundedHttp, unfinished=unfinished, request_s=request_s, logger=logger)
        config.http = protocol  # type: ignore[assignment]
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections, including those that are being accepted."""
        await stop_accepting(*self.servers)
        await super().shutdown(sockets)


@contextlib.asynccontextmanager
async def running(
    application: Any, listening: socket.socket, name: str, *, request_s: float = REQUEST_S, **settings: Any
) -> AsyncIterator[int]:
    """Serve an application on this socket while the block runs. Gives the port once connections are accepted.

    ``name`` is that of the task. ``settings`` of uvicorn override ``SETTINGS``. Raises the error that keeps the server
    from starting.
    """
    server = WebServer(uvicorn.Config(application, **{**SETTINGS, **settings}), request_s=request_s)
    task = asyncio.create_task(server.serve(sockets=[listening]), name=name)
    try:
        while not server.started:
            if task.done():
                await task
                raise RuntimeError("the server stopped before it accepted connections")
            await asyncio.sleep(0.005)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        listening.close()


class PerMinute(logging.Filter):
    """Lets some lines a minute pass. The first of the next minute says how many it left out."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._lines = 0
        self._since = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._since >= 60.0:
            if self._lines > self._most:
                record.msg = f"{record.getMessage()} ({self._lines - self._most} lines before this one were left out)"
                record.args = ()
            self._since, self._lines = now, 0
        self._lines += 1
        return self._lines <= self._most


class BoundedHttp(H11Protocol):
    """Uvicorn's HTTP protocol with deadlines for clients that do not finish a request or do not read the response."""

    def __init__(
        self,
        *args: Any,
        unfinished: dict[BoundedHttp, asyncio.TimerHandle],
        request_s: float,
        logger: logging.Logger,
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self.logger = logger
        self._unfinished = unfinished
        self._request_s = request_s

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.more_body:
            self._finish()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid data. The application, which may have begun with the request, answers no more."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        super().send_400_response(msg)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._finish()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        super().on_response_complete()  # also begins with a request that has come meanwhile
        next_is_complete = not self.cycle.response_complete and not self.cycle.more_body
        if not self.transport.is_closing() and not next_is_complete:
            self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._answering:
            self._finish()

    def shutdown(self) -> None:
        """Let a request finish. But a response that is being sent, such as a stream of events, ends at once."""
        super().shutdown()
        if self._answering and self.flow.write_paused:  # the client does not read what would be sent first
            self.transport.abort()
        elif self._answering:
            self.transport.close()

    @property
    def _answering(self) -> bool:
        """Whether a response has started and is not complete."""
        return self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete

    def _wait(self) -> None:
        """Start a deadline: the next request must be complete, or the client must have read."""
        self._finish()
        self._unfinished[self] = self.loop.call_later(self._request_s, self.transport.abort)
        if len(self._unfinished) > UNFINISHED:
            oldest = next(iter(self._unfinished))
            oldest._finish()
            oldest.transport.abort()

    def _finish(self) -> None:
        deadline = self._unfinished.pop(self, None)
        if deadline is not None:
            deadline.cancel()
