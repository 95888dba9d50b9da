"""A TCP proxy that behaves like a bad network: it delays, splits, holds back and breaks what it forwards."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Iterator
from typing import Self

CHUNK_BYTES = 65_536
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of a connection that ends with a reset."""


class FaultyNetwork:
    """Forwards connections from a port of loopback to ``target``, a port of loopback or the path of a socket."""

    def __init__(self, target: int | str, rng: random.Random) -> None:
        self.target = target
        self.port = 0
        self.delay_s = 0.0
        """What is read at once waits for up to so long. The order stays: TCP hides every other."""
        self.piece_bytes = CHUNK_BYTES
        """Largest piece that is written at once."""
        self.rng = rng
        self.passes = asyncio.Event()
        self.passes.set()
        self._server: asyncio.Server
        self._connections: dict[_Connection, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        tasks = list(self._connections.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(self, reader, writer)
        self._connections[connection] = task
        try:
            await connection.run()
        except OSError:
            _reset(writer)
        finally:
            del self._connections[connection]
            writer.transport.abort()

    @contextlib.contextmanager
    def slow(self) -> Iterator[None]:
        """Delays of up to 0.4 s, in pieces of some bytes, while the block lasts."""
        self.delay_s, self.piece_bytes = 0.4, self.rng.choice((7, 60, 600))
        try:
            yield
        finally:
            self.delay_s, self.piece_bytes = 0.0, CHUNK_BYTES

    @contextlib.contextmanager
    def partition(self) -> Iterator[None]:
        """Nothing passes while the block lasts. Connections stay open; new ones are accepted and get no answer."""
        self.passes.clear()
        try:
            yield
        finally:
            self.passes.set()

    def reset(self) -> None:
        """Both sides of every connection see a reset."""
        for connection in self._connections:
            connection.reset()

    def half_open(self) -> None:
        """The server sees a reset. The client's connection stays open, but no answer comes."""
        for connection in self._connections:
            connection.half_open()


class _Connection:
    """Both directions of one connection."""

    def __init__(self, network: FaultyNetwork, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._network = network
        self._reader, self._writer = reader, writer
        self._server: asyncio.StreamWriter | None = None
        self._half_open = False

    async def run(self) -> None:
        """Forward until one side closes."""
        target = self._network.target
        await self._network.passes.wait()
        if isinstance(target, str):
            answers, self._server = await asyncio.open_unix_connection(target)
        else:
            answers, self._server = await asyncio.open_connection("127.0.0.1", target)
        try:
            ways = {
                asyncio.create_task(self._forward(self._reader, self._server)),
                asyncio.create_task(self._forward(answers, self._writer)),
            }
            _, pending = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if self._half_open and pending:
                await asyncio.wait(pending)  # until the client closes
            for way in pending:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self._server.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        network = self._network
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if self._half_open:
                    continue
                if network.delay_s:
                    await asyncio.sleep(network.rng.uniform(0.0, network.delay_s))
                size = network.piece_bytes
                for begin in range(0, len(data), size):
                    await network.passes.wait()
                    writer.write(data[begin : begin + size])
                    await asyncio.sleep(0)
                await writer.drain()

    def reset(self) -> None:
        _reset(self._writer)
        if self._server is not None:
            _reset(self._server)

    def half_open(self) -> None:
        if self._server is not None:
            self._half_open = True
            _reset(self._server)


def _reset(writer: asyncio.StreamWriter) -> None:
    connected = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if connected is not None and connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
