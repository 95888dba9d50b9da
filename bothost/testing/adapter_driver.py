"""Drives one lobby adapter over real sockets, for adapter authors, ``bothost lobby check`` and tests.

::

    async with AdapterDriver(MyLobby(account, options)) as driver:
        driver.do(Authenticate())
        await driver.expect(Connected)
        driver.do(Seek("s", Wish("othello")))
        seated = await driver.expect(Seated)

It only performs the adapter's effects. The host's shell does much more: it reconnects, limits rates and records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self, TypeVar

from bothost import messages as m
from bothost.errors import ANY_FAILURE, AuthError, LobbyUnreachable, PluginError, described, raised_at
from bothost.host.certificates import advice_for
from bothost.host.transport import Effects
from bothost.lobbies.base import LobbyAdapter, checked

Wanted = TypeVar("Wanted")
Fed = Callable[[LobbyAdapter, m.Input], list[m.Output]]
"""Feeds an adapter, and returns what it returned."""
FRAME_BYTES = 2**24


def fed(adapter: LobbyAdapter, item: m.Input) -> list[m.Output]:
    """What an adapter makes of an input. Raises PluginError, which names the line, if it raises or returns nonsense."""
    try:
        return checked(adapter.feed(item))
    except ANY_FAILURE as error:
        at = raised_at(error, type(adapter).__module__)
        message = f"feed({type(item).__name__}) raised {described(error)}{f' ({at})' if at else ''}"
        raise PluginError(adapter.name, message) from error


class AdapterDriver:
    """Performs the effects of an adapter and queues its events."""

    def __init__(
        self,
        adapter: LobbyAdapter,
        *,
        open_timeout_s: float = 10.0,
        listener: Callable[[m.Event], None] = lambda event: None,
        fed: Fed = fed,
    ) -> None:
        """``listener`` is called with every event. ``fed`` feeds the adapter."""
        self.adapter = adapter
        self.listener = listener
        self.failure: Exception | None = None
        """The first failure of the adapter."""
        self.inputs: list[m.Input] = []
        """All inputs of the adapter, oldest first."""
        self.outputs: list[m.Output] = []
        """All outputs of the adapter, oldest first."""
        self.memo: dict[str, Any] = {}
        """What the adapter asked to remember."""
        self.events: list[m.Event] = []
        """Every event, oldest first."""
        self._fed = fed
        self._events: asyncio.Queue[m.Event | PluginError] = asyncio.Queue()
        self._effects = Effects(self.do, FRAME_BYTES, open_timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def do(self, item: m.Input) -> None:
        """Feed one input or command, and perform the outputs. Raises PluginError."""
        self.inputs.append(item)
        try:
            outputs = self._fed(self.adapter, item)
        except PluginError as error:
            self.failure = self.failure or error
            self._events.put_nowait(error)
            raise
        self.outputs += outputs
        for output in outputs:
            self._perform(output)

    async def expect(self, kind: type[Wanted], timeout_s: float = 10.0) -> Wanted:
        """Wait for the next event of this kind, and skip others.

        Raises AuthError or LobbyUnreachable if the adapter reports such an end instead, PluginError if it fails, and
        LobbyUnreachable if no event comes in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    event = await self._events.get()
                    if isinstance(event, PluginError):
                        raise event
                    if isinstance(event, kind):
                        return event
                    _raise_for_end(event)
        except TimeoutError:
            name = getattr(kind, "__name__", str(kind))
            raise LobbyUnreachable(f"the lobby sent no {name} within {timeout_s:g} s") from None

    async def aclose(self) -> None:
        """Close every socket, and stop."""
        await self._effects.aclose()

    def drop(self) -> None:
        """Break the sockets without a close frame."""
        self._effects.sockets.drop("dropped")

    def _perform(self, output: m.Output) -> None:
        if (perform := self._effects.performers.get(type(output))) is not None:
            perform(output)
        elif isinstance(output, m.Remember):
            self.memo = output.memo
        elif isinstance(output, m.Event):
            self.events.append(output)
            self._events.put_nowait(output)
            self.listener(output)


def _raise_for_end(event: m.Event) -> None:
    match event:
        case m.AuthFailed():
            advice = "check the account's token"
            raise AuthError(f"the lobby refuses the credentials: {event.reason}", advice=advice)
        case m.Disconnected():
            advice = advice_for(event.reason, "check the URL, and that the lobby is running")
            raise LobbyUnreachable(f"the lobby cannot be reached: {event.reason}", advice=advice)
        case m.Superseded():
            advice = "use another account, because an account has only one connection"
            raise LobbyUnreachable(f"another connection of this account took over: {event.reason}", advice=advice)
        case _:
            return
