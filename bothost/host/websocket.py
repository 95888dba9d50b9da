"""A client websocket: the sans-IO protocol of ``websockets`` on an asyncio transport.

Frames are processed in the transport's callback as soon as they arrive. So pings are always answered, and the receive
buffer never fills. All writes of one turn of the event loop are sent with one system call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Self, cast

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import CONNECTING, OPEN
from websockets.uri import parse_uri

from bothost.host.certificates import trusted
from bothost.receiving import TurnTaking

OPEN_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
WRITE_LIMIT = 4 * 1024 * 1024
"""Maximum size of the write buffer in bytes. If the peer does not read and it fills up, the connection is dropped."""


class OpenFailed(Exception):
    """The socket did not open. ``status``: the HTTP status of the refusal; 0 if there was no answer."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class WebSocket(TurnTaking):
    """A websocket. ``on_message(data)`` and ``on_close(code, reason)`` are called from the event loop."""

    def __init__(
        self,
        url: str,
        headers: tuple[tuple[str, str], ...],
        max_bytes: int,
        on_message: Callable[[str | bytes], None],
        on_close: Callable[[int, str], None],
    ) -> None:
        """Raises OpenFailed for an invalid URL."""
        try:
            self._uri = parse_uri(url)
        except Exception as error:
            raise OpenFailed(str(error)) from error
        self._protocol = ClientProtocol(self._uri, max_size=max_bytes)
        self._headers = headers
        self._on_message = on_message
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # until the connection is made
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self.fragments = bytearray()
        """What was received of an incomplete message."""
        self._text = True
        self._flushing = False
        self._failed = False
        """Whether the peer violated the protocol. Later messages are ignored."""
        self._closed = False
        self.closed: tuple[int, str] | None = None
        """Code and reason, once it is closed."""
        self.messages = self.pongs = 0
        """Messages received, and answers to our protocol pings."""

    async def open(self, timeout_s: float = OPEN_TIMEOUT_S) -> Self:
        """Connect and perform the handshake. Raises OpenFailed."""
        uri = self._uri
        context = trusted() if uri.secure else None
        try:
            async with asyncio.timeout(timeout_s):
                await self._loop.create_connection(lambda: self, uri.host, uri.port, ssl=context)
                await self._opened
        except TimeoutError:
            self.abort()
            raise OpenFailed(f"no answer within {timeout_s:g} s") from None
        except (OSError, UnicodeError) as error:  # UnicodeError: the URL's host is no host name
            self.abort()
            # uvloop gives no reason if the lobby ends the connection during the handshake of TLS
            raise OpenFailed(str(error) or "the connection was closed; does the lobby speak TLS?") from error
        except BaseException:
            self.abort()
            raise
        return self

    # --------------------------------------------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_LIMIT)
        request = self._protocol.connect()
        for name, value in self._headers:
            request.headers[name] = value
        self._protocol.send_request(request)
        self._flush()

    def process(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if type(event) is Frame:
                self._frame(event)
            elif isinstance(event, Response):
                self._answered()
        self._after_input()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._after_input()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closed:
            self._protocol.receive_eof()
        self._gone()

    def pause_writing(self) -> None:
        """Drop the connection, because the peer does not read."""
        self.abort()

    # ------------------------------------------------------------------------------------------------------ reading

    def _answered(self) -> None:
        if self._opened.done():
            return
        if self._protocol.handshake_exc is None:
            self._opened.set_result(None)
        else:
            self._refused()

    def _refused(self) -> None:
        error = self._protocol.handshake_exc or "the connection was closed during the handshake"
        status = error.response.status_code if isinstance(error, InvalidStatus) else 0
        self._opened.set_exception(OpenFailed(str(error), status))

    def _frame(self, frame: Frame) -> None:
        opcode = frame.opcode
        if opcode is Opcode.TEXT or opcode is Opcode.BINARY:
            if frame.fin:
                self._message(frame.data, opcode is Opcode.TEXT)
            else:
                self.fragments, self._text = bytearray(frame.data), opcode is Opcode.TEXT
        elif opcode is Opcode.CONT:
            self.fragments += frame.data  # the protocol limits the size of all fragments, but not their number
            if frame.fin:
                whole, self.fragments = self.fragments, bytearray()
                self._message(whole, self._text)
        elif opcode is Opcode.PONG:
            self.pongs += 1
        # The protocol itself answers pings and close frames.

    def _message(self, data: Any, text: bool) -> None:
        if self._closed or self._failed:
            return
        self.messages += 1
        if text:
            try:
                self._on_message(str(data, "utf-8"))
            except UnicodeDecodeError:
                self._protocol.fail(1007, "not UTF-8")
                self._failed = True
        else:
            self._on_message(bytes(data))

    def _after_input(self) -> None:
        self._flush()
        if self._protocol.close_expected() and self.transport is not None and not self._closed:
            self._loop.call_later(CLOSE_TIMEOUT_S, self.abort)
            if self._protocol.state is not OPEN:
                self._notify()

    # ------------------------------------------------------------------------------------------------------ writing

    def send(self, data: str | bytes) -> None:
        """Send a message at the end of this turn of the event loop. Does nothing if the socket is closed."""
        if self._closed or self._protocol.state is not OPEN:
            return
        if isinstance(data, str):
            self._protocol.send_text(data.encode())
        else:
            self._protocol.send_binary(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def ping(self) -> None:
        """Send a protocol ping. ``pongs`` counts the answer."""
        if not self._closed and self._protocol.state is OPEN:
            self._protocol.send_ping(b"")
            self._flush()

    def _flush(self) -> None:
        self._flushing = False
        chunks = self._protocol.data_to_send()
        transport = self.transport
        if not chunks or transport is None or transport.is_closing():
            return
        end = chunks[-1] == b""  # an empty chunk asks for a half-close
        if data := b"".join(chunks):
            transport.write(data)
        if end and transport.can_write_eof():
            with contextlib.suppress(OSError, RuntimeError):
                transport.write_eof()

    # ------------------------------------------------------------------------------------------------------ closing

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Start the closing handshake. The connection is dropped after ``CLOSE_TIMEOUT_S``."""
        if self._closed:
            return
        if self._protocol.state is OPEN:
            self._protocol.send_close(code, reason)
            self._flush()
            self._loop.call_later(CLOSE_TIMEOUT_S, self.abort)
        elif self._protocol.state is CONNECTING:
            self.abort()

    def abort(self) -> None:
        """Drop the connection now."""
        if self.transport is not None:
            self.transport.abort()

    def _gone(self) -> None:
        if not self._opened.done():
            self._refused()
            self._opened.exception()  # mark it as retrieved, because no one may await the future
            self._closed = True
            return
        self._notify()

    def _notify(self) -> None:
        if self._closed:
            return
        self._closed = True
        said = self._protocol.close_rcvd or self._protocol.close_sent  # the peer's close frame, or ours
        self.closed = (said.code, said.reason) if said is not None else (1006, "")
        self._on_close(*self.closed)
