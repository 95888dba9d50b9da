"""One account's connection: performs its adapter's effects, and reconnects when the connection is lost.

The adapter decides what is sent; this module knows no protocol. ``transport`` performs the effects, and ``reconnect``
decides when to try again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import structlog

from bothost import messages as m
from bothost.errors import ANY_FAILURE, described
from bothost.host.reconnect import ConnectionSettings, Reconnect, Watchdog
from bothost.host.transport import Effects, Sender
from bothost.lobbies.base import LobbyAdapter, checked

_log = structlog.get_logger("bothost.host")


class Owner(Protocol):
    """Receives the events: the account."""

    def event(self, event: m.Event, now: float) -> None: ...
    def known_tables(self) -> tuple[str, ...]: ...
    def memo(self) -> m.Json: ...
    def remember(self, memo: m.Json) -> None: ...


class Connection:
    """Runs one adapter. ``start`` connects; then it reconnects automatically until ``close``."""

    def __init__(self, adapter: LobbyAdapter, owner: Owner, settings: ConnectionSettings) -> None:
        self.adapter = adapter
        self.connected = False
        """Whether the lobby has logged us in."""
        self.ended = False
        """Whether there are no further attempts: the connection was closed, refused or superseded."""
        self.reconnects = 0
        self._settings = settings
        self._connected_at = 0.0
        self._good = False
        """Whether the lobby has accepted our credentials before."""
        self._owner = owner
        capabilities = adapter.capabilities
        transport = self._transport = Effects(self.feed, settings.frame_bytes)
        sockets = self.sockets = transport.sockets
        rate = capabilities.messages_per_second
        self._sender = Sender(sockets.send, rate, settings.queue_frames, adapter.account.name)
        self._reconnect = Reconnect(settings, self._resume)
        by_app = capabilities.heartbeat == "app"
        self._watchdog = Watchdog(
            settings,
            lambda: sockets.life()[: 1 if by_app else 2],
            (lambda: self.feed(m.Ping())) if by_app else sockets.ping,
            self._cut,
        )
        self._effects: dict[type, Callable[[Any], object]] = {
            **transport.performers,
            m.SendFrame: sockets.send if rate is None else self._sender.send,
            m.Remember: lambda effect: owner.remember(effect.memo),
        }
        self._session_events: dict[type, Callable[[Any], None]] = {
            m.Connected: self._on_connected,
            m.Disconnected: self._on_disconnected,
            m.AuthFailed: self._on_refused,
            m.Superseded: self._on_refused,
            m.Throttled: self._on_throttled,
        }

    # ------------------------------------------------------------------------------------------------- the adapter

    def start(self) -> None:
        """Connect and log in."""
        self._watchdog.expect_login()
        self.feed(m.Authenticate(self._owner.memo()))

    def feed(self, item: m.Input) -> None:
        """Give the adapter an input, and perform the outputs."""
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

    def act(self, command: m.Act, sent: Callable[[], None]) -> None:
        """Give the adapter a move. ``sent`` is called when it is sent, which a limit of the lobby may delay."""
        self._sender.dropped = False
        self.feed(command)
        if self.connected:  # else the adapter failed
            self._sender.after(sent)

    def _adapter_failed(self, item: m.Input, error: BaseException) -> None:
        """Drop the connection because of a bug in the adapter. After several failures there is a longer pause."""
        name, cause = self.adapter.name, described(error, 500)
        _log.exception("adapter_failed", adapter=name, input=type(item).__name__, cause=cause)
        self.sockets.drop()
        if self.ended or self._reconnect.pending:
            return
        if pause := self._reconnect.quarantine_s():
            _log.error("adapter_quarantined", adapter=name, account=self.adapter.account.name, for_s=pause)
        self._lose(m.Disconnected("the adapter failed", pause or None))

    # ------------------------------------------------------------------------------------------------------ session

    def progress(self) -> None:
        """Record that the session works, because a hand ended. The next reconnect is quick again."""
        self._reconnect.succeeded()

    def hurry(self) -> None:
        """Reconnect soon, because another account connected to the same lobby."""
        self._reconnect.hurry()

    def _on_connected(self, event: m.Connected) -> None:
        self.connected = self._good = True
        self._connected_at = time.monotonic()
        self._reconnect.cancel()  # a login that took too long got through after all
        self._reconnect.allow_hurry(False)
        self._watchdog.stop()
        if self.adapter.capabilities.transport == "websocket":
            self._watchdog.expect_life()

    def _on_disconnected(self, event: m.Disconnected) -> None:
        self._lost()
        if self.ended or self._reconnect.pending:
            return
        wait = self._reconnect.schedule(max(0.0, event.retry_after_s or 0.0))
        self._reconnect.allow_hurry(not event.retry_after_s)
        _log.warning("disconnected", account=self.adapter.account.name, reason=event.reason, retry_s=round(wait, 2))

    def _on_refused(self, event: m.AuthFailed | m.Superseded) -> None:
        """Stop, or try again later if the lobby accepted our credentials before, because then it may be at fault."""
        self._lost()
        if isinstance(event, m.AuthFailed) and self._good and not self.ended:
            if not self._reconnect.pending:
                self._reconnect.schedule(self._settings.refused_s)
                self._reconnect.allow_hurry(False)
        else:
            self.ended = True

    def _on_throttled(self, event: m.Throttled) -> None:
        """Send nothing for a while. From now on limit the rate, even if the lobby declares no limit."""
        self._sender.throttle(event.retry_after_s)
        self._effects[m.SendFrame] = self._sender.send

    def _lost(self) -> None:
        if self.connected and time.monotonic() - self._connected_at >= self._settings.steady_s:
            self.progress()
        self.connected = False
        self._sender.clear()
        self._watchdog.stop()
        self.sockets.drop()

    def _lose(self, event: m.Disconnected) -> None:
        """Report a lost connection that the adapter did not report."""
        self._on_disconnected(event)
        self._owner.event(event, time.monotonic())

    def _resume(self) -> None:
        if not self.ended:
            self.reconnects += 1
            self._watchdog.expect_login()
            self.feed(m.Resume(self._owner.known_tables(), self._owner.memo()))

    def _cut(self, reason: str) -> None:
        """Drop a connection that does not work. If the adapter does not report the loss, report it here, so that there
        is a reconnect."""
        self.sockets.drop(report=reason)
        if not self.ended and not self._reconnect.pending and self.adapter.capabilities.transport == "websocket":
            self._lose(m.Disconnected(reason))

    def close(self) -> None:
        """Disconnect, without further attempts."""
        self._reconnect.cancel()
        if not self.ended:
            self.ended = True
            self.feed(m.Close())
        self._watchdog.stop()

    async def aclose(self) -> None:
        """Close everything immediately."""
        self.ended = True
        self.connected = False
        self._watchdog.stop()
        self._reconnect.cancel()
        self._sender.close()
        await self._transport.aclose()
