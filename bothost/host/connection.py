"""One account's connection: performs what its adapter asks for, and keeps the session alive.

The adapter decides what is said; here are the sockets, HTTP calls, timers, rate limit, heartbeat and reconnecting.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import structlog

from bothost.errors import ANY_FAILURE
from bothost.host.latency import Latency
from bothost.host.limits import Backoff, TokenBucket
from bothost.host.websocket import OpenFailed, WebSocket
from bothost.lobbies.base import LobbyAdapter, checked
from bothost.messages import (
    Alive,
    Authenticate,
    AuthFailed,
    CancelTimer,
    Close,
    CloseSocket,
    Connected,
    Disconnected,
    Event,
    Frame,
    HttpRequest,
    HttpResult,
    Input,
    Json,
    OpenSocket,
    Ping,
    Remember,
    Resume,
    SendFrame,
    SetTimer,
    SocketClosed,
    SocketFailed,
    SocketOpened,
    Superseded,
    Throttled,
    TimerFired,
)

if TYPE_CHECKING:
    import httpx

_log = structlog.get_logger("bothost.host")

HURRY_S = 1.0
"""When one account got through, the others of its lobby try within this time."""
SAMPLE = 16
"""One frame in so many is timed."""
HTTP_BYTES = 4 * 1024 * 1024
"""A longer HTTP answer is cut off and counts as none."""


class ConnectionSettings(msgspec.Struct, frozen=True):
    """What an operator may choose about connections."""

    frame_bytes: int = 1 << 20
    heartbeat_s: float = 20.0
    """How often the lobby is asked for a sign of life; after two without one the connection is dropped."""
    connect_s: float = 30.0
    """How long connecting and logging in may take together."""
    queue_frames: int = 10_000
    """Frames that may wait for the rate limit."""
    backoff_first_s: float = 0.5
    backoff_most_s: float = 60.0
    steady_s: float = 30.0
    """A session that stood for so long was a good one: reconnecting begins with a short pause again."""
    quarantine_after: int = 3
    """An adapter that fails so often within ``quarantine_s`` pauses for that time."""
    quarantine_s: float = 300.0
    refused_s: float = 60.0
    """The least pause before credentials that were good once are tried again."""


class Owner(Protocol):
    """Who hears of events: the account."""

    def event(self, event: Event, now: float) -> None: ...
    def known_tables(self) -> tuple[str, ...]: ...
    def memo(self) -> Json: ...
    def remember(self, memo: Json) -> None: ...


class Connection:
    """Runs one adapter. ``start`` connects; from then on it reconnects by itself until ``close``."""

    def __init__(self, adapter: LobbyAdapter, owner: Owner, settings: ConnectionSettings) -> None:
        self.adapter = adapter
        self.settings = settings
        self.connected = False
        """Whether the lobby has logged us in."""
        self.ended = False
        """Whether there will be no further attempt: closed, refused or superseded."""
        self._connected_at = 0.0
        self._may_hurry = False
        self._hurried = False
        """Whether this outage was cut short already."""
        self._failures: list[float] = []
        """When the adapter failed lately, monotonic seconds."""
        self._good = False
        """Whether the lobby has taken our credentials before."""
        self.reconnects = 0
        self.frames = 0
        """Frames received."""
        self.fold = Latency()
        """How long frames take to be folded; one in ``SAMPLE`` is timed."""
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff(settings.backoff_first_s, settings.backoff_most_s)
        self._sockets: dict[int, WebSocket] = {}
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._http: httpx.AsyncClient | None = None
        self._again: asyncio.TimerHandle | None = None
        self._guard: asyncio.TimerHandle | None = None
        rate = adapter.capabilities.messages_per_second
        self._bucket = TokenBucket(rate / 2, max(1.0, rate / 2), time.monotonic()) if rate is not None else None
        self._queue: deque[SendFrame] = deque()
        self._quiet_until = 0.0
        self._pump: asyncio.TimerHandle | None = None
        self._heard = False
        self._pongs = 0
        self._silent = 0
        self._effects: dict[type, Callable[[Any], None]] = {
            SendFrame: self._send if self._bucket is None else self._send_limited,
            OpenSocket: self._open_socket,
            CloseSocket: self._close_socket,
            HttpRequest: self._request,
            SetTimer: self._set_timer,
            CancelTimer: self._cancel_timer,
            Remember: lambda effect: owner.remember(effect.memo),
        }
        self._session_events: dict[type, Callable[[Any], None]] = {
            Connected: self._on_connected,
            Disconnected: self._on_disconnected,
            AuthFailed: self._on_refused,
            Superseded: self._on_refused,
            Throttled: self._on_throttled,
            Alive: lambda event: None,
        }

    # ------------------------------------------------------------------------------------------------- the adapter

    def start(self) -> None:
        """Connect and log in."""
        self._watch_connecting()
        self.feed(Authenticate(self._owner.memo()))

    def feed(self, item: Input) -> None:
        """Give the adapter an input and do what it wants."""
        try:
            outputs = checked(self.adapter.feed(item))
        except ANY_FAILURE as error:
            self._adapter_failed(item, error)
            return
        now = time.monotonic()
        effects, event = self._effects, self._owner.event
        for output in outputs:
            effect = effects.get(type(output))
            if effect is not None:
                effect(output)
                continue
            if (handler := self._session_events.get(type(output))) is not None:
                handler(output)
            event(output, now)  # type: ignore[arg-type]

    def progress(self) -> None:
        """The session works: a hand ended, or it has stood for a while. The next reconnect is quick again."""
        self._backoff.reset()
        self._hurried = False

    def hurry(self) -> None:
        """Another account got through to our lobby: try soon. Once for each outage, and not if the lobby said when."""
        if self._again is None or not self._may_hurry:
            return
        soon = self._loop.time() + self._backoff.spread(HURRY_S)
        if soon < self._again.when():
            self._hurried, self._may_hurry = True, False
            self._again.cancel()
            self._again = self._loop.call_at(soon, self._resume)

    def _quarantine(self) -> float:
        """Seconds until the next attempt of an adapter that has just failed; 0: it has not failed often."""
        now, settings = time.monotonic(), self.settings
        self._failures = [at for at in self._failures if at > now - settings.quarantine_s] + [now]
        if len(self._failures) < settings.quarantine_after:
            return 0.0
        self._failures = []
        _log.error(
            "adapter_quarantined",
            adapter=self.adapter.name,
            account=self.adapter.account.name,
            for_s=settings.quarantine_s,
        )
        return settings.quarantine_s

    def _adapter_failed(self, item: Input, error: BaseException) -> None:
        """A bug in the adapter costs this connection, not the host. A few of them cost it a longer pause."""
        cause = f"{type(error).__name__}: {error}"[:500]
        _log.exception("adapter_failed", adapter=self.adapter.name, input=type(item).__name__, cause=cause)
        self._drop_sockets()
        if not self.ended and self._again is None:
            lost = Disconnected("the adapter failed", self._quarantine() or None)
            self._on_disconnected(lost)
            self._owner.event(lost, time.monotonic())

    # ------------------------------------------------------------------------------------------------------ session

    def _on_connected(self, event: Connected) -> None:
        self.connected = self._good = True
        self._connected_at = time.monotonic()
        self._may_hurry = False
        self._heard, self._silent = True, 0
        self._stop_guard()
        if self.adapter.capabilities.transport == "websocket":
            self._guard = self._loop.call_later(self.settings.heartbeat_s, self._beat)

    def _on_disconnected(self, event: Disconnected) -> None:
        self._lost()
        if self.ended or self._again is not None:
            return
        wait = self._backoff.next(max(0.0, event.retry_after_s or 0.0))
        self._may_hurry = not self._hurried and not event.retry_after_s
        _log.warning("disconnected", account=self.adapter.account.name, reason=event.reason, retry_s=round(wait, 2))
        self._again = self._loop.call_later(wait, self._resume)

    def _on_refused(self, event: AuthFailed | Superseded) -> None:
        """The end; but a lobby that took our credentials before and is ill now must not cost us the months to come."""
        self._lost()
        if isinstance(event, AuthFailed) and self._good and not self.ended:
            if self._again is None:
                self._again = self._loop.call_later(self._backoff.next(self.settings.refused_s), self._resume)
        else:
            self.ended = True

    def _lost(self) -> None:
        if self.connected and time.monotonic() - self._connected_at >= self.settings.steady_s:
            self.progress()
        self.connected = False
        self._queue.clear()
        self._stop_guard()
        self._drop_sockets()

    def _resume(self) -> None:
        self._again = None
        if not self.ended:
            self.reconnects += 1
            self._watch_connecting()
            self.feed(Resume(self._owner.known_tables(), self._owner.memo()))

    def _watch_connecting(self) -> None:
        self._stop_guard()
        self._guard = self._loop.call_later(self.settings.connect_s, self._connect_late)

    def _connect_late(self) -> None:
        """Neither logged in nor refused: an open socket is not a session."""
        self._cut(f"not logged in within {self.settings.connect_s:g} s")

    def _stop_guard(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None

    def _beat(self) -> None:
        """Ask for a sign of life; drop a session that gave none."""
        self._guard = self._loop.call_later(self.settings.heartbeat_s, self._beat)
        app = self.adapter.capabilities.heartbeat == "app"
        pongs = sum(socket.pongs for socket in self._sockets.values())
        alive = self._heard or (not app and pongs != self._pongs)
        self._heard, self._pongs = False, pongs
        self._silent = 0 if alive else self._silent + 1
        if self._silent >= 2:
            self._cut("no sign of life")
        elif app:
            self.feed(Ping())
        else:
            for socket in self._sockets.values():
                socket.ping()

    def _cut(self, reason: str) -> None:
        """Drop a session that is none. The adapter hears of it; where that does not make it say that it is
        disconnected, it is all the same: nobody else would ever connect again."""
        self._drop_sockets(tell=reason)
        if not self.ended and self._again is None and self.adapter.capabilities.transport == "websocket":
            lost = Disconnected(reason)
            self._on_disconnected(lost)
            self._owner.event(lost, time.monotonic())

    def close(self) -> None:
        """Log out; no further attempts."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if not self.ended:
            self.ended = True
            self.feed(Close())
        self._stop_guard()

    async def aclose(self) -> None:
        """Let go of everything, at once."""
        self.ended = True
        self.connected = False
        self._stop_guard()
        for handle in (*self._timers.values(), self._again, self._pump):
            if handle is not None:
                handle.cancel()
        self._timers.clear()
        self._drop_sockets()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._http is not None:
            await self._http.aclose()

    # ------------------------------------------------------------------------------------------------------ sockets

    def _open_socket(self, effect: OpenSocket) -> None:
        self._opening[effect.conn] = self._spawn(self._open(effect))

    async def _open(self, effect: OpenSocket) -> None:
        conn = effect.conn
        feed = self.feed
        early: list[str | bytes] | None = []
        """Frames that arrived before the adapter received the open socket."""

        def message(data: str | bytes) -> None:
            self._heard = True
            self.frames += 1
            if early is not None:
                early.append(data)
            elif self.frames % SAMPLE:
                feed(Frame(conn, data))
            else:
                began = time.monotonic()
                feed(Frame(conn, data))
                self.fold.observe(time.monotonic() - began)

        def closed(code: int, reason: str) -> None:
            if self._sockets.pop(conn, None) is not None:
                feed(SocketClosed(conn, code, reason))

        try:
            socket = await WebSocket.open(effect.url, effect.headers, self.settings.frame_bytes, message, closed)
        except OpenFailed as error:
            self._opening.pop(conn, None)
            feed(SocketFailed(conn, error.status, error.reason))
            return
        self._opening.pop(conn, None)
        self._sockets[conn] = socket
        feed(SocketOpened(conn))
        first, early = early, None
        for data in first or ():
            feed(Frame(conn, data))
        if socket.closed is not None and self._sockets.pop(conn, None) is not None:
            feed(SocketClosed(conn, *socket.closed))

    def _close_socket(self, effect: CloseSocket) -> None:
        if (task := self._opening.pop(effect.conn, None)) is not None:
            task.cancel()
        if (socket := self._sockets.pop(effect.conn, None)) is not None:
            socket.close(effect.code, effect.reason)

    def _drop_sockets(self, tell: str | None = None) -> None:
        """Cut all sockets, also those that are being opened; ``tell``: the adapter hears of it, with this reason."""
        sockets, self._sockets = self._sockets, {}
        opening, self._opening = self._opening, {}
        for socket in sockets.values():
            socket.abort()
        for task in opening.values():
            task.cancel()
        if tell is not None:
            for conn in sockets:
                self.feed(SocketClosed(conn, 1006, tell))
            for conn in opening:
                self.feed(SocketFailed(conn, 0, tell))

    # ------------------------------------------------------------------------------------------------------ sending

    def _send(self, effect: SendFrame) -> None:
        socket = self._sockets.get(effect.conn)
        if socket is not None:
            socket.send(effect.data)

    def _send_limited(self, effect: SendFrame) -> None:
        if len(self._queue) >= self.settings.queue_frames:
            _log.error("send_queue_full", account=self.adapter.account.name)
            return
        self._queue.append(effect)
        if self._pump is None:
            self._pump_queue()

    def _pump_queue(self) -> None:
        self._pump = None
        bucket = self._bucket
        assert bucket is not None
        now = time.monotonic()
        if now < self._quiet_until:
            self._pump = self._loop.call_later(self._quiet_until - now, self._pump_queue)
            return
        while self._queue:
            if not bucket.take(now):
                self._pump = self._loop.call_later(bucket.wait(), self._pump_queue)
                return
            self._send(self._queue.popleft())

    def _on_throttled(self, event: Throttled) -> None:
        """Say nothing for a while; lobbies without a declared limit are kept to a modest one from now on."""
        now = time.monotonic()
        self._quiet_until = now + min(max(event.retry_after_s, 0.0), 60.0)
        if self._bucket is None:
            self._bucket = TokenBucket(50.0, 10.0, now)
            self._effects[SendFrame] = self._send_limited

    # ---------------------------------------------------------------------------------------------- timers and HTTP

    def _set_timer(self, effect: SetTimer) -> None:
        self._cancel_timer(CancelTimer(effect.name))
        self._timers[effect.name] = self._loop.call_later(max(0.0, effect.after_s), self._fire, effect.name)

    def _cancel_timer(self, effect: CancelTimer) -> None:
        handle = self._timers.pop(effect.name, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, name: str) -> None:
        self._timers.pop(name, None)
        self.feed(TimerFired(name))

    def _request(self, effect: HttpRequest) -> None:
        self._spawn(self._requesting(effect))

    async def _requesting(self, effect: HttpRequest) -> None:
        """Errors never quote the URL: at some lobbies it is the secret."""
        import httpx  # only some lobbies need it, and a host that was killed must be back soon

        if self._http is None:
            self._http = httpx.AsyncClient(follow_redirects=False, limits=httpx.Limits(max_connections=10))
        body = bytearray()
        try:
            async with self._http.stream(
                effect.method, effect.url, headers=list(effect.headers), content=effect.body, timeout=effect.timeout_s
            ) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > HTTP_BYTES:
                        raise httpx.DecodingError(f"the answer is longer than {HTTP_BYTES} bytes")
                headers = tuple(response.headers.multi_items())
                result = HttpResult(effect.request, response.status_code, headers, bytes(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            result = HttpResult(effect.request, 0, (), type(error).__name__.encode())
        self._heard = self._heard or result.status != 0
        self.feed(result)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
