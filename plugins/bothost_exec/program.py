"""Plays tables with one program: starts its process, and restarts it after failures. Used on the I/O thread."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque

import msgspec

from bothost import PluginError, __version__
from bothost import exec_protocol as protocol
from bothost.errors import GameNotPlayed
from bothost.strategy import plays
from bothost_exec.options import Options
from bothost_exec.process import Background, Process, StderrLog, by_hand


class Program:
    """A program and the tables that it plays, in one process after another."""

    def __init__(self, options: Options, stderr: StderrLog | None = None) -> None:
        """``stderr``: logs what the programs of a strategy write there."""
        self.options = options
        self.name = os.path.basename(options.command[0])
        self.players = 0
        """Number of players that use it. Only the strategy changes it, in its own thread."""
        self.tables: dict[str, protocol.Open] = {}
        self.starts: deque[float] = deque()
        """When the process was started recently, monotonic seconds."""
        self._stderr = stderr or StderrLog()
        self._background = Background()
        self._process: Process | None = None
        """The last one that was started. It may be over."""
        self._starting: asyncio.Task[None] | None = None
        self._games: tuple[str, ...] = ("*",)
        self._interrupted: set[str] = set()
        """Tables that earlier processes knew when they died."""
        self._early: dict[str, list[protocol.Event]] = {}
        """Events of tables that the process does not know yet."""

    # ---------------------------------------------------------------------------------------------------- for players

    async def open(self, table: protocol.Open) -> None:
        """Open a hand, and start the program if needed. Raises PluginError if it does not start or play the game."""
        self.tables[table.table] = table
        process = await self._running()
        if table.table not in process.tables and table.table in self.tables:
            self._require(table)
            self._send_open(process, table)

    def tell(self, events: list[protocol.Event]) -> None:
        """Send events of one table, now or as soon as the program knows the table."""
        for event in events:
            if (process := self._knowing(event.table)) is not None:
                process.send(event)
            else:
                self._early.setdefault(event.table, []).append(event)

    async def ask(self, question: protocol.Decide) -> protocol.Action:
        """Send a request and wait for the answer. Raises PluginError or ProtocolError. Cancel it at the deadline."""
        if self._process is not None:
            self._process.end_if_it_hangs()
        process = await self._running()
        self._require(self.tables[question.table])
        return await process.ask(question)

    def close(self, table: str) -> None:
        """Close a hand that is over."""
        self._early.pop(table, None)
        self._interrupted.discard(table)
        process = self._knowing(table)
        if self.tables.pop(table, None) is not None and process is not None:
            process.tables.discard(table)
            process.send(protocol.Close(table=table))

    async def stop(self) -> None:
        """Stop the process, and wait for its end."""
        if self._starting is not None:
            self._starting.cancel()
        if self._process is not None:
            await self._process.stop()
        await self._background.finish()

    # ------------------------------------------------------------------------------------------------------- the life

    def _knowing(self, table: str) -> Process | None:
        """The process, if it runs and knows the table."""
        process = self._process
        return process if process is not None and not process.over and table in process.tables else None

    async def _running(self) -> Process:
        """The process. It is started if it does not run."""
        if self._starting is None and self._process is not None and not self._process.over:
            return self._process
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
            self._starting.add_done_callback(self._started)
        await asyncio.shield(self._starting)
        assert self._process is not None
        return self._process

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # mark it as retrieved, because no one may await the task

    async def _start(self) -> None:
        self._admit()
        if self._process is not None:
            self._interrupted |= self._process.tables & self.tables.keys()
        process = self._process = await Process.start(self.options, self.name, self._stderr, self._background)
        process.send(protocol.HostHello(version=protocol.VERSION, host=f"bothost {__version__}"))
        try:
            async with asyncio.timeout(self.options.start_ms / 1000.0):
                said = await process.hello
            self._greet(process, said)
        except TimeoutError:
            reason = f"it sent no hello within {self.options.start_ms:.0f} ms"
            process.end(reason)
            advice = "flush stdout after every line; see docs/reference/exec-protocol.md"
            raise PluginError("exec", f"{self.name}: {reason}", advice=advice) from None
        except BaseException:
            process.end("", quiet=True)
            raise
        for table in filter(self._plays, list(self.tables.values())):
            self._send_open(process, table)

    def _admit(self) -> None:
        """Count a start. Raises PluginError after too many starts."""
        now = time.monotonic()
        while self.starts and now - self.starts[0] > self.options.restart_window_s:
            self.starts.popleft()
        if len(self.starts) > self.options.max_restarts:
            message = f"{self.name} died {len(self.starts)} times in {self.options.restart_window_s:.0f} s"
            quoted = self._process.quoted() if self._process is not None else ""
            raise PluginError("exec", message + quoted, advice=by_hand(self.options))
        self.starts.append(now)

    def _greet(self, process: Process, said: protocol.ProgramHello) -> None:
        self.name = process.name
        if said.version != protocol.VERSION:
            message = f"{self.name} speaks version {said.version}, bothost {protocol.VERSION}"
            raise PluginError("exec", message, advice="see docs/reference/exec-protocol.md")
        self._games = said.games

    def _plays(self, table: protocol.Open) -> bool:
        return plays(self._games, table.game)

    def _require(self, table: protocol.Open) -> None:
        if not self._plays(table):
            game = table.game
            message = f"{self.name} does not play {game}; it plays {', '.join(self._games) or 'nothing'}"
            raise GameNotPlayed("exec", message, advice="route the game to another strategy")

    def _send_open(self, process: Process, table: protocol.Open) -> None:
        missed = table.table in self._interrupted
        process.send(msgspec.structs.replace(table, resumed=True) if missed else table)
        process.tables.add(table.table)
        self.tell(self._early.pop(table.table, []))
