"""Received data is processed in turns, so that a flood of frames holds up no other connection of the process."""

from __future__ import annotations

import asyncio
import time

LONG_BYTES = 32 * 1024
"""A read of more bytes is processed in turns. It holds some 16,000 of the smallest frames."""
PART_BYTES = 4 * 1024
"""The time is checked after this many bytes."""
TURN_S = 0.02
"""How long one connection's data is processed in one turn of the event loop."""


class TurnTaking(asyncio.Protocol):
    """Base of a protocol whose peer may send more than we can process at once. Override ``process``.

    One read of uvloop brings up to 256 KiB, and there are up to 32 reads in one turn. That many of the smallest frames
    take 10 s.
    """

    transport: asyncio.Transport
    _unread = b""
    """What was received and not yet processed. Nothing is read meanwhile."""

    def process(self, data: bytes) -> None:
        """Process the next bytes."""
        raise NotImplementedError

    def may_read(self) -> bool:
        """Whether to read more, once everything is processed."""
        return True

    def data_received(self, data: bytes) -> None:
        if self._unread:
            self._unread += data
            self.transport.pause_reading()
        elif len(data) <= LONG_BYTES:
            self.process(data)
        else:
            self._unread = data
            self._take_turn()

    def _take_turn(self) -> None:
        transport = self.transport
        if transport.is_closing():
            self._unread = b""
        elif self._unread:
            transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._take_turn)
            self._process_parts()
        elif self.may_read():
            transport.resume_reading()

    def _process_parts(self) -> None:
        stop = time.monotonic() + TURN_S
        try:
            while self._unread:
                part, self._unread = self._unread[:PART_BYTES], self._unread[PART_BYTES:]
                self.process(part)
                if time.monotonic() >= stop:
                    break
        except BaseException:
            self.transport.abort()  # as the event loop does if ``data_received`` raises
            raise
