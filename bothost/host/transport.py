"""Performs an adapter's effects: websockets, a send rate limit, HTTP calls and timers."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from bothost import messages as m
from bothost.host.certificates import trusted
from bothost.host.latency import Latency
from bothost.host.tasks import BackgroundTasks
from bothost.host.websocket import OPEN_TIMEOUT_S, OpenFailed, WebSocket
from bothost.tables.clock import TokenBucket

if TYPE_CHECKING:
    import httpx  # imported on first use, because few lobbies need it and it slows down the start

_log = structlog.get_logger("bothost.host")

SAMPLE = 16
"""One frame in this many is timed."""
HTTP_PHASES = 2.0
"""The whole call may take this many times the timeout of one phase: connecting, a silence. A lobby that sends a byte
now and then would hold the connections for ever."""
HTTP_BYTES = 4 * 1024 * 1024
"""Maximum size of an HTTP answer. A longer one counts as a failure."""
COOKIE_BYTES = 8 * 1024
"""Maximum size of the cookies of an account. If a lobby sets more, all are dropped, or the requests would grow."""
THROTTLED_RATE = 50.0
"""Frames per second after a throttle by a lobby without a declared limit."""

Feed = Callable[[m.Input], None]


class Effects:
    """Performs the effects of one adapter. ``feed`` gets what comes of them."""

    def __init__(self, feed: Feed, frame_bytes: int, open_timeout_s: float = OPEN_TIMEOUT_S) -> None:
        self.sockets = Sockets(feed, frame_bytes, open_timeout_s)
        self._http = HttpCalls(feed)
        self._timers = Timers(feed)
        self.performers: dict[type, Callable[[Any], object]] = {
            m.OpenSocket: self.sockets.open,
            m.SendFrame: self.sockets.send,
            m.CloseSocket: self.sockets.close,
            m.HttpRequest: self._http.request,
            m.SetTimer: self._timers.set,
            m.CancelTimer: self._timers.cancel,
        }
        """Type of effect → what performs it."""

    async def aclose(self) -> None:
        self._timers.close()
        await self.sockets.aclose()
        await self._http.aclose()


class Sockets:
    """The websockets of one adapter."""

    def __init__(self, feed: Feed, frame_bytes: int, open_timeout_s: float) -> None:
        self._feed = feed
        self._frame_bytes = frame_bytes
        self._open_timeout_s = open_timeout_s
        self._open: dict[int, WebSocket] = {}
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._all: weakref.WeakSet[WebSocket] = weakref.WeakSet()
        """Also those whose closing handshake still runs."""
        self._tasks = BackgroundTasks()
        self.frames = 0
        """Frames received."""
        self.fold = Latency()
        """Time that the adapter and the sessions take for a frame. One frame in ``SAMPLE`` is timed."""

    def life(self) -> tuple[int, int]:
        """Messages and pongs that came on the oldest open socket. A later one, to a chat server, is not the session."""
        socket = next(iter(self._open.values()), None)
        return (0, 0) if socket is None else (socket.messages, socket.pongs)

    def open(self, effect: m.OpenSocket) -> None:
        self._opening[effect.conn] = self._tasks.spawn(self._connect(effect))

    async def _connect(self, effect: m.OpenSocket) -> None:
        conn, feed = effect.conn, self._feed
        early: list[str | bytes] | None = []
        """Frames that arrived before the adapter received ``SocketOpened``."""

        def frame(data: str | bytes) -> None:
            if conn in self._open:  # else we closed it, and read what had already arrived
                feed(m.Frame(conn, data))

        def message(data: str | bytes) -> None:
            self.frames += 1
            if early is not None:
                early.append(data)
            elif self.frames % SAMPLE:
                frame(data)
            else:
                began = time.monotonic()
                frame(data)
                self.fold.observe(time.monotonic() - began)

        def closed(code: int, reason: str) -> None:
            if self._open.pop(conn, None) is not None:
                feed(m.SocketClosed(conn, code, reason))

        try:
            socket = WebSocket(effect.url, effect.headers, self._frame_bytes, message, closed)
            await socket.open(self._open_timeout_s)
        except OpenFailed as error:
            self._opening.pop(conn, None)
            feed(m.SocketFailed(conn, error.status, error.reason))
            return
        self._opening.pop(conn, None)
        self._open[conn] = socket
        self._all.add(socket)
        feed(m.SocketOpened(conn))
        first, early = early, None
        for data in first or ():
            frame(data)
        if socket.closed is not None:
            closed(*socket.closed)

    def send(self, effect: m.SendFrame) -> bool:
        """Send a frame. Returns whether its socket is open."""
        socket = self._open.get(effect.conn)
        if socket is not None:
            socket.send(effect.data)
        return socket is not None

    def ping(self) -> None:
        for socket in self._open.values():
            socket.ping()

    def close(self, effect: m.CloseSocket) -> None:
        if (task := self._opening.pop(effect.conn, None)) is not None:
            task.cancel()
        if (socket := self._open.pop(effect.conn, None)) is not None:
            socket.close(effect.code, effect.reason)

    def drop(self, report: str | None = None) -> None:
        """Drop all sockets, open and opening. With ``report``, the adapter receives it as the reason."""
        sockets, self._open = self._open, {}
        opening, self._opening = self._opening, {}
        for socket in sockets.values():
            socket.abort()
        for task in opening.values():
            task.cancel()
        if report is not None:
            for conn in sockets:
                self._feed(m.SocketClosed(conn, 1006, report))
            for conn in opening:
                self._feed(m.SocketFailed(conn, 0, report))

    async def aclose(self) -> None:
        self.drop()
        for socket in self._all:
            socket.abort()
        await self._tasks.aclose()


class Sender:
    """Sends frames no faster than the lobby allows, and queues the rest."""

    def __init__(
        self, send: Callable[[m.SendFrame], bool], rate: float | None, queue_frames: int, account: str
    ) -> None:
        """``send`` returns whether the frame was sent. ``rate`` is in frames per second; None: the lobby declares no
        limit."""
        self._send = send
        self._queue_frames = queue_frames
        self._account = account
        self._loop = asyncio.get_running_loop()
        self._bucket = TokenBucket(rate / 2, max(1.0, rate / 2), time.monotonic()) if rate is not None else None
        self._queue: deque[tuple[m.SendFrame, list[Callable[[], None]]]] = deque()
        """Frames, each with what to call when it is sent."""
        self.dropped = False
        """Whether the last frame was dropped."""
        self._full = False
        """Whether frames were dropped since the queue was empty."""
        self._quiet_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def send(self, effect: m.SendFrame) -> None:
        self.dropped = len(self._queue) >= self._queue_frames
        if self.dropped:
            if not self._full:
                _log.error("send_queue_full", account=self._account)
            self._full = True
            return
        self._queue.append((effect, []))
        if self._timer is None:
            self._send_queued()

    def after(self, sent: Callable[[], None]) -> None:
        """Call ``sent`` when the last frame is sent; never, if it is dropped."""
        if self._queue and not self.dropped:
            self._queue[-1][1].append(sent)
        elif not self.dropped:
            sent()

    def throttle(self, retry_after_s: float) -> None:
        """Send nothing for a while, because the lobby throttled us."""
        now = time.monotonic()
        self._quiet_until = now + min(max(retry_after_s, 0.0), 60.0)
        if self._bucket is None:
            self._bucket = TokenBucket(THROTTLED_RATE, 10.0, now)

    def clear(self) -> None:
        self._queue.clear()

    def close(self) -> None:
        self.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _send_queued(self) -> None:
        self._timer = None
        now = time.monotonic()
        if now < self._quiet_until:
            self._timer = self._loop.call_later(self._quiet_until - now, self._send_queued)
            return
        while self._queue:
            if self._bucket is not None and not self._bucket.take(now):
                self._timer = self._loop.call_later(self._bucket.wait(), self._send_queued)
                return
            frame, reports = self._queue.popleft()
            if self._send(frame):
                for sent in reports:
                    sent()
        self._full = False


class HttpCalls:
    """The HTTP calls of one adapter."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._tasks = BackgroundTasks()
        self._client: httpx.AsyncClient | None = None

    def request(self, effect: m.HttpRequest) -> None:
        self._tasks.spawn(self._request(effect))

    async def _request(self, effect: m.HttpRequest) -> None:
        """Errors never quote the URL, because at some lobbies it contains the secret."""
        import httpx

        if self._client is None:
            limits = httpx.Limits(max_connections=10)
            self._client = httpx.AsyncClient(verify=trusted(), follow_redirects=False, limits=limits)
        try:
            async with asyncio.timeout(HTTP_PHASES * effect.timeout_s):
                result = await self._answer(self._client, effect)
        except Exception as error:  # also a header that cannot be sent, such as a token of the lobby with an accent
            why = type(error).__name__
            if isinstance(error, httpx.ConnectError):  # the system's reason
                why += f": {error}"
            result = m.HttpResult(effect.request, 0, (), why.encode())
        self._feed(result)

    async def _answer(self, client: httpx.AsyncClient, effect: m.HttpRequest) -> m.HttpResult:
        import httpx

        body = bytearray()
        headers = [("Accept-Encoding", "identity"), *effect.headers]
        async with client.stream(
            effect.method, effect.url, headers=headers, content=effect.body, timeout=effect.timeout_s
        ) as response:
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise httpx.DecodingError("the answer is compressed, although we did not accept that")
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > HTTP_BYTES:
                    raise httpx.DecodingError(f"the answer is longer than {HTTP_BYTES} bytes")
            if sum(len(cookie.name) + len(cookie.value or "") for cookie in client.cookies.jar) > COOKIE_BYTES:
                client.cookies.clear()
            received = tuple(response.headers.multi_items())
            return m.HttpResult(effect.request, response.status_code, received, bytes(body))

    async def aclose(self) -> None:
        await self._tasks.aclose()
        if self._client is not None:
            await self._client.aclose()


class Timers:
    """The named timers of one adapter."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def set(self, effect: m.SetTimer) -> None:
        self.cancel(effect)
        self._handles[effect.name] = self._loop.call_later(max(0.0, effect.after_s), self._fire, effect.name)

    def cancel(self, effect: m.SetTimer | m.CancelTimer) -> None:
        if (handle := self._handles.pop(effect.name, None)) is not None:
            handle.cancel()

    def close(self) -> None:
        while self._handles:
            self._handles.popitem()[1].cancel()

    def _fire(self, name: str) -> None:
        self._handles.pop(name, None)
        self._feed(m.TimerFired(name))
