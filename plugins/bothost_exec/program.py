"""Runs one program: starts it, exchanges messages, watches, kills and restarts it. Used on the I/O thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

import msgspec

from bothost import PluginError, ProtocolError, __version__, children
from bothost import exec_protocol as protocol
from bothost.errors import GameNotPlayed, printable
from bothost.strategy import plays
from bothost_exec.options import Options

_log = logging.getLogger("bothost.exec")

_STRAY_LIMIT = 1000
"""More answers in a row than this without a request, and the program counts as flooding."""
_STDERR_LINES, _STDERR_WINDOW_S = 20, 10.0
_LAST_WORDS, _LAST_WORDS_S = 200, 0.5
"""Length of the last line on stderr in an error, and how long to wait for it after the end of the program."""
_LOOK_S = 0.5
"""Interval of the memory checks of a program with a limit, in seconds."""
_HIDDEN = ("/etc/bothost", "/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/var")
"""Folders that a program in a sandbox does not see, nor the home of the user."""


class StderrLog:
    """Logs lines that programs write to stderr, up to a rate for all of them together."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._lines = self._dropped = 0
        self._reported_later = False

    def log(self, name: str, lines: list[bytes]) -> None:
        """Log lines, or count them: their number is logged when the window ends. Call it in the event loop."""
        now = time.monotonic()
        if now - self._since > _STDERR_WINDOW_S:
            self.report(name)
            self._since, self._lines = now, 0
        shown = lines[: max(0, _STDERR_LINES - self._lines)]
        for line in shown:
            _log.info("%s: %s", name, line[:500].decode(errors="replace").rstrip())
        self._lines += len(lines)
        self._dropped += len(lines) - len(shown)
        if self._dropped and not self._reported_later:
            self._reported_later = True
            asyncio.get_running_loop().call_later(self._since + _STDERR_WINDOW_S - now, self._window_ended, name)

    def report(self, name: str) -> None:
        """Log how many lines were left out, if any were."""
        if self._dropped:
            _log.info("%s: %d more lines", name, self._dropped)
            self._dropped = 0

    def _window_ended(self, name: str) -> None:
        self._reported_later = False
        self.report(name)


class Program:
    """A process and the tables that it plays. If it violates the protocol, it is killed and restarted."""

    def __init__(self, options: Options, stderr: StderrLog | None = None) -> None:
        """``stderr``: logs what the programs of a strategy write there."""
        self.options = options
        self._stderr = stderr or StderrLog()
        self.name = os.path.basename(options.command[0])
        self.players = 0
        """Number of players that use it. Only the strategy changes it, in its own thread."""
        self.tables: dict[str, protocol.Open] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._hello: asyncio.Future[protocol.ProgramHello] | None = None
        self._asked: dict[int, asyncio.Future[protocol.Action]] = {}
        self.starts: deque[float] = deque()
        """When the process was started recently, monotonic seconds."""
        self._overdue: float | None = None
        """Since when an answer is overdue and the program has written nothing."""
        self._stray = 0
        self._games: tuple[str, ...] = ("*",)
        self._interrupted: set[str] = set()
        """Tables that the process knew when it died."""
        self._told: set[str] = set()
        """Tables that the process knows."""
        self.last_words = ""
        """The last line of the process on stderr, if it is not empty."""
        self._early: dict[str, list[protocol.Event]] = {}
        """Events of tables that the process does not know yet."""
        self._stopping = False

    # ---------------------------------------------------------------------------------------------------- for players

    async def open(self, table: protocol.Open) -> None:
        """Open a hand, and start the program if needed. Raises PluginError if it does not start or play the game."""
        self.tables[table.table] = table
        await self._running()
        if table.table not in self._told and table.table in self.tables:
            self._require(table)
            self._send_open(table)

    def tell(self, events: list[protocol.Event]) -> None:
        """Send events of one table, now or as soon as the program knows the table."""
        for event in events:
            if event.table in self._told:
                self._send(event)
            else:
                self._early.setdefault(event.table, []).append(event)

    async def ask(self, question: protocol.Decide) -> protocol.Action:
        """Send a request and wait for the answer. Raises PluginError or ProtocolError. Cancel it at the deadline."""
        if self._overdue is not None and time.monotonic() - self._overdue > self.options.hang_ms / 1000.0:
            self._die(f"it wrote nothing for {self.options.hang_ms:.0f} ms")
        await self._running()
        self._require(self.tables[question.table])
        answer: asyncio.Future[protocol.Action] = asyncio.get_running_loop().create_future()
        self._asked[question.id] = answer
        self._send(question)
        try:
            return await answer
        except asyncio.CancelledError:
            self._overdue = self._overdue or time.monotonic()
            raise
        finally:
            self._asked.pop(question.id, None)

    def close(self, table: str) -> None:
        """Close a hand that is over."""
        self._early.pop(table, None)
        self._interrupted.discard(table)
        if self.tables.pop(table, None) is not None and table in self._told:
            self._told.discard(table)
            self._send(protocol.Close(table=table))

    async def stop(self) -> None:
        """Close its stdin, wait for its exit, then kill it and its descendants."""
        self._stopping = True
        if self._starting is not None:
            self._starting.cancel()
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.options.stop_ms / 1000.0):
                    await process.wait()
        self._die("", quiet=True)
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------------- the life

    async def _running(self) -> None:
        """Start the process if it does not run, and wait for its hello."""
        if self._process is not None and self._starting is None:
            return
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
            self._starting.add_done_callback(self._started)
        await asyncio.shield(self._starting)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # mark it as retrieved, because no one may await the task

    async def _start(self) -> None:
        self._admit()
        options = self.options
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *contained(options),
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=options.cwd,
                env=children.environment(options.environment),
                limit=options.max_line_bytes,
                start_new_session=True,  # Ctrl-C in the host's terminal must only reach the host, which drains first
            )
        except OSError as error:
            advice = "install it, or write its whole path"
            raise PluginError("exec", f"{options.command[0]}: {error.strerror}", advice=advice) from error
        self._process, self._overdue, self._stray, self.last_words = process, None, 0, ""
        hello = self._hello = asyncio.get_running_loop().create_future()
        stderr = self._keep(self._read_stderr(process))
        self._keep(self._read(process, stderr))
        if options.memory_mb:
            self._keep(self._watch_memory(process))
        self._send(protocol.HostHello(version=protocol.VERSION, host=f"bothost {__version__}"))
        try:
            async with asyncio.timeout(options.start_ms / 1000.0):
                said = await hello
            self._greet(said)
        except TimeoutError:
            reason = f"it sent no hello within {options.start_ms:.0f} ms"
            self._die(reason)
            raise PluginError("exec", f"{self.name}: {reason}", advice="see docs/reference/exec-protocol.md") from None
        except BaseException:
            self._die("", quiet=True)
            raise
        for table in filter(self._plays, list(self.tables.values())):
            self._send_open(table)

    def _keep(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _admit(self) -> None:
        """Count a start. Raises PluginError after too many starts."""
        now = time.monotonic()
        while self.starts and now - self.starts[0] > self.options.restart_window_s:
            self.starts.popleft()
        if len(self.starts) > self.options.max_restarts:
            message = f"{self.name} died {len(self.starts)} times in {self.options.restart_window_s:.0f} s"
            raise PluginError("exec", message + self._quoted(), advice=self._by_hand())
        self.starts.append(now)

    def _greet(self, said: protocol.ProgramHello) -> None:
        self.name = printable(said.name[:64]) or self.name
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

    def _die(self, reason: str, *, quiet: bool = False) -> None:
        """Kill the process. Every open request fails with ``reason``."""
        process, self._process, self._overdue = self._process, None, None
        if process is not None:
            children.end(process.pid)
            if process.stdin is not None:
                process.stdin.close()
            self._keep(process.wait())
        self._interrupted |= self._told
        self._told.clear()
        waiting = [one for one in (*self._asked.values(), self._hello) if one is not None and not one.done()]
        self._asked = {}
        if not quiet and not waiting:  # else the host logs the reason with the decision that failed
            _log.warning("program %s was ended: %s", self.name, reason)
        for answer in waiting:
            advice = self._by_hand() if answer is self._hello else ""
            answer.set_exception(PluginError("exec", f"{self.name}: {reason or 'it was closed'}", advice=advice))
            answer.exception()  # mark it as retrieved, because no one may await it

    # -------------------------------------------------------------------------------------------------- what is said

    def _send(self, line: protocol.Line) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        process.stdin.write(protocol.encode(line))
        if process.stdin.transport.get_write_buffer_size() > self.options.max_line_bytes:
            self._die("it does not read its stdin")

    def _send_open(self, table: protocol.Open) -> None:
        missed = table.table in self._interrupted
        self._send(msgspec.structs.replace(table, resumed=True) if missed else table)
        self._told.add(table.table)
        self.tell(self._early.pop(table.table, []))

    async def _read(self, process: asyncio.subprocess.Process, stderr: asyncio.Task[Any]) -> None:
        assert process.stdout is not None
        reason = ""
        try:
            while (line := await process.stdout.readline()).endswith(b"\n"):  # half a line comes at the end alone
                if process is not self._process:  # it was ended, and its pipe still holds lines
                    break
                self._overdue = None
                self._take(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = f"it wrote an invalid line ({error}): {line[:80]!r}; write debug output to stderr"
        except ValueError:
            reason = f"it wrote a line of more than {self.options.max_line_bytes} bytes"
        except ProtocolError as error:
            reason = str(error)
        except OSError as error:
            reason = str(error)
        await self._ended(process, reason, stderr)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):  # a descendant may keep the pipe open
                while await process.stdout.read(65536):  # asyncio says that a process ended once its pipes have
                    pass

    async def _ended(self, process: asyncio.subprocess.Process, reason: str, stderr: asyncio.Task[Any]) -> None:
        """Give up a process that wrote nonsense (``reason``) or has closed its stdout."""
        if process is not self._process or self._stopping:
            return  # its end was handled already
        if not reason:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await process.wait()
            await asyncio.wait({stderr}, timeout=_LAST_WORDS_S)  # a descendant may keep it open
            if process is not self._process or self._stopping:
                return
            reason = f"it ended with exit code {process.returncode}{self._quoted()}"
        self._die(reason)

    def _quoted(self) -> str:
        return f"; last on stderr: {self.last_words}" if self.last_words else ""

    def _by_hand(self) -> str:
        return f"run it by hand to see all that it writes: {shlex.join(self.options.command)}"

    def _take(self, line: bytes) -> None:
        message = protocol.decode_for_host(line)
        if isinstance(message, protocol.ProgramHello):
            if self._hello is None or self._hello.done():
                raise ProtocolError("it sent a second hello")
            self._hello.set_result(message)
            return
        answer = self._asked.get(message.id)
        if answer is None or answer.done():  # the answer came too late
            self._stray += 1
            if self._stray > _STRAY_LIMIT:
                raise ProtocolError(f"it sent {self._stray} answers without a request")
            return
        self._stray = 0
        if isinstance(message, protocol.Error):
            answer.set_exception(PluginError("exec", f"{self.name}: {message.message[:200]}"))
        else:
            answer.set_result(message)

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        """Log what the process writes to stderr, and keep the last line that is not empty."""
        assert process.stderr is not None
        rest = b""
        with contextlib.suppress(OSError):
            while chunk := await process.stderr.read(65536):
                *whole, rest = (rest + chunk).split(b"\n")
                rest = rest[-4096:]
                self._hear(process, whole)
                self._stderr.log(self.name, whole)
        self._hear(process, [rest])
        self._stderr.report(self.name)

    def _hear(self, process: asyncio.subprocess.Process, lines: list[bytes]) -> None:
        last = next((line for line in reversed(lines) if line.strip()), b"")
        if last and process is self._process:
            self.last_words = printable(last.decode(errors="replace").strip()[:_LAST_WORDS])

    async def _watch_memory(self, process: asyncio.subprocess.Process) -> None:
        while process is self._process:
            used = sum(map(children.resident_bytes, (process.pid, *children.descendants(process.pid))))
            if used > self.options.memory_mb << 20:
                self._die(f"it used {used >> 20} MiB, more than {self.options.memory_mb}")
            await asyncio.sleep(_LOOK_S)


def contained(options: Options) -> list[str]:
    """The command that runs the program with its limits. Raises PluginError if the program cannot be run."""
    program, *arguments = options.command
    place = os.path.join(options.cwd or "", program) if os.sep in program else program
    if shutil.which(place) is None:
        raise PluginError("exec", f"{program}: no such program", advice="install it, or write its whole path")
    command = [program, *arguments]
    if options.sandbox == "bwrap":
        command = [*_sandbox(options), *command]
    return children.contained(command)


def _sandbox(options: Options) -> list[str]:
    if shutil.which("bwrap") is None:
        advice = 'install bubblewrap, or set sandbox = "none"'
        raise PluginError("exec", "the sandbox needs the program bwrap", advice=advice)
    home = os.path.realpath(os.path.expanduser("~"))
    folders = [place for place in (*_HIDDEN, home) if os.path.isdir(place) and place != os.sep]
    hidden = [word for place in folders for word in ("--tmpfs", place)]
    folder = os.path.abspath(options.cwd or os.curdir)
    return [
        *("bwrap", "--die-with-parent", "--unshare-all", "--cap-drop", "ALL"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *hidden),
        *("--ro-bind", folder, folder, "--chdir", folder, "--"),
    ]
