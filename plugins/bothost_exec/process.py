"""One process of a program: what is written to it and read from it, until its end. Used on the I/O thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import time
from collections.abc import Coroutine
from typing import Any

import msgspec

from bothost import PluginError, ProtocolError, children
from bothost import exec_protocol as protocol
from bothost.errors import printable
from bothost_exec.options import Options
from bothost_exec.sandbox import sandboxed

_log = logging.getLogger("bothost.exec")

_STRAY_LIMIT = 1000
"""More answers in a row than this without a request, and the program counts as flooding."""
_STDERR_LINES = 20
"""Most lines in a window of time."""
_LAST_WORDS, _LAST_WORDS_S = 200, 0.5
"""Length of the last line on stderr in an error, and how long to wait for it after the end of the program."""
_LOOK_S = 0.5
"""Interval of the memory checks of a program with a limit, in seconds."""


class StderrLog:
    """Logs lines that programs write to stderr, up to a rate for all of them together."""

    def __init__(self, window_s: float = 10.0) -> None:
        self._window_s = window_s
        self._since = time.monotonic()
        self._lines = self._dropped = 0
        self._reported_later = False

    def log(self, name: str, lines: list[bytes]) -> None:
        """Log lines, or count them: their number is logged when the window ends. Call it in the event loop."""
        now = time.monotonic()
        if now - self._since > self._window_s:
            self.report(name)
            self._since, self._lines = now, 0
        shown = lines[: max(0, _STDERR_LINES - self._lines)]
        for line in shown:
            _log.info("%s: %s", name, line[:500].decode(errors="replace").rstrip())
        self._lines += len(lines)
        self._dropped += len(lines) - len(shown)
        if self._dropped and not self._reported_later:
            self._reported_later = True
            asyncio.get_running_loop().call_later(self._since + self._window_s - now, self._window_ended, name)

    def report(self, name: str) -> None:
        """Log how many lines were left out, if any were."""
        if self._dropped:
            _log.info("%s: %d more lines", name, self._dropped)
            self._dropped = 0

    def _window_ended(self, name: str) -> None:
        self._reported_later = False
        self.report(name)


class Background:
    """Tasks that are not awaited before the program stops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def run(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)


class Process:
    """A process, what it was asked and what it knows. If it violates the protocol, it is ended."""

    def __init__(
        self, options: Options, child: asyncio.subprocess.Process, name: str, stderr: StderrLog, background: Background
    ) -> None:
        """``stderr``: logs what it writes there."""
        self.options = options
        self.name = name
        """The name of its hello, before that the name of its command."""
        self.over = False
        """Whether it was ended. What its pipes still hold does not count."""
        self.hello: asyncio.Future[protocol.ProgramHello] = asyncio.get_running_loop().create_future()
        self.tables: set[str] = set()
        """Tables that it knows."""
        self.last_words = ""
        """Its last line on stderr that is not empty."""
        self._child = child
        self._stderr = stderr
        self._background = background
        self._asked: dict[int, asyncio.Future[protocol.Action]] = {}
        self._overdue: float | None = None
        """Since when an answer is overdue and it has written nothing."""
        self._stray = 0
        self._reason = ""
        """Why it was ended."""
        self._stopping = False
        self._read_of_stderr = background.run(self._read_stderr())
        background.run(self._read())
        if options.memory_mb:
            background.run(self._watch_memory())

    @classmethod
    async def start(cls, options: Options, name: str, stderr: StderrLog, background: Background) -> Process:
        """Start the program. Raises PluginError if it cannot be run."""
        pipe = asyncio.subprocess.PIPE
        try:
            child = await asyncio.create_subprocess_exec(
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
        return cls(options, child, name, stderr, background)

    def send(self, line: protocol.Line) -> None:
        pipe = self._child.stdin
        if self.over or pipe is None or pipe.is_closing():
            return
        pipe.write(protocol.encode(line))
        if pipe.transport.get_write_buffer_size() > self.options.max_line_bytes:
            self.end("it does not read its stdin")

    async def ask(self, question: protocol.Decide) -> protocol.Action:
        """Send a request and wait for the answer. Raises PluginError or ProtocolError."""
        if self.over:
            raise self._failed()
        answer: asyncio.Future[protocol.Action] = asyncio.get_running_loop().create_future()
        self._asked[question.id] = answer
        self.send(question)
        try:
            return await answer
        except asyncio.CancelledError:
            self._overdue = self._overdue or time.monotonic()
            raise
        finally:
            self._asked.pop(question.id, None)

    def end_if_it_hangs(self) -> None:
        if self._overdue is not None and time.monotonic() - self._overdue > self.options.hang_ms / 1000.0:
            self.end(f"it wrote nothing for {self.options.hang_ms:.0f} ms")

    def end(self, reason: str, *, quiet: bool = False) -> None:
        """Kill it and its descendants. Every open request fails with ``reason``."""
        if self.over:
            return
        self.over, self._reason = True, reason
        children.end(self._child.pid)
        if self._child.stdin is not None:
            self._child.stdin.close()
        self._background.run(self._child.wait())
        asked: list[asyncio.Future[Any]] = [*self._asked.values(), self.hello]
        waiting = [one for one in asked if not one.done()]
        self._asked = {}
        if not quiet and not waiting:  # else the host logs the reason with the decision that failed
            _log.warning("program %s was ended: %s", self.name, reason)
        for answer in waiting:
            answer.set_exception(self._failed(by_hand(self.options) if answer is self.hello else ""))
            answer.exception()  # mark it as retrieved, because no one may await it

    def _failed(self, advice: str = "") -> PluginError:
        """The error of a request to a process that was ended."""
        return PluginError("exec", f"{self.name}: {self._reason or 'it was closed'}", advice=advice)

    async def stop(self) -> None:
        """Close its stdin, wait for its exit, then kill it and its descendants."""
        self._stopping = True
        if not self.over and self._child.stdin is not None:
            self._child.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.options.stop_ms / 1000.0):
                    await self._child.wait()
        self.end("", quiet=True)

    # --------------------------------------------------------------------------------------------- what it writes

    async def _read(self) -> None:
        stdout = self._child.stdout
        assert stdout is not None
        reason = ""
        try:
            while (line := await stdout.readline()).endswith(b"\n") and not self.over:  # half a line ends it
                self._overdue = None
                self._take(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = f"it wrote an invalid line ({error}): {line[:80]!r}; write debug output to stderr"
        except ValueError:
            reason = f"it wrote a line of more than {self.options.max_line_bytes} bytes"
        except (ProtocolError, OSError) as error:
            reason = str(error)
        await self._ended(reason)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):  # a descendant may keep the pipe open
                while await stdout.read(65536):  # asyncio says that a process ended once its pipes have
                    pass

    async def _ended(self, reason: str) -> None:
        """Give up a process that wrote nonsense (``reason``) or has closed its stdout."""
        if not reason and not (self.over or self._stopping):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._child.wait()
            await asyncio.wait({self._read_of_stderr}, timeout=_LAST_WORDS_S)  # a descendant may keep it open
            reason = f"it ended with exit code {self._child.returncode}{self.quoted()}"
        if not self._stopping:  # else its end is handled already
            self.end(reason)

    def quoted(self) -> str:
        """Its last words, for an error; empty if there are none."""
        return f"; last on stderr: {self.last_words}" if self.last_words else ""

    def _take(self, line: bytes) -> None:
        message = protocol.decode_for_host(line)
        if isinstance(message, protocol.ProgramHello):
            if self.hello.done():
                raise ProtocolError("it sent a second hello")
            self.name = printable(message.name[:64]) or self.name
            self.hello.set_result(message)
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

    async def _read_stderr(self) -> None:
        """Log what it writes to stderr, and keep the last line that is not empty."""
        stderr = self._child.stderr
        assert stderr is not None
        rest = b""
        with contextlib.suppress(OSError):
            while chunk := await stderr.read(65536):
                *whole, rest = (rest + chunk).split(b"\n")
                rest = rest[-4096:]
                self._hear(whole)
                self._stderr.log(self.name, whole)
        self._hear([rest])
        self._stderr.report(self.name)

    def _hear(self, lines: list[bytes]) -> None:
        last = next((line for line in reversed(lines) if line.strip()), b"")
        if last:
            self.last_words = printable(last.decode(errors="replace").strip()[:_LAST_WORDS])

    async def _watch_memory(self) -> None:
        pid = self._child.pid
        while not self.over:
            used = sum(map(children.resident_bytes, (pid, *children.descendants(pid))))
            if used > self.options.memory_mb << 20:
                self.end(f"it used {used >> 20} MiB, more than {self.options.memory_mb}")
            await asyncio.sleep(_LOOK_S)


def by_hand(options: Options) -> str:
    return f"run it by hand to see all that it writes: {shlex.join(options.command)}"


def contained(options: Options) -> list[str]:
    """The command that runs the program with its limits. Raises PluginError if the program cannot be run."""
    program, *arguments = options.command
    place = os.path.join(options.cwd or "", program) if os.sep in program else program
    if shutil.which(place) is None:
        raise PluginError("exec", f"{program}: no such program", advice="install it, or write its whole path")
    command = [program, *arguments]
    if options.sandbox == "bwrap":
        command = sandboxed(command, options.cwd, options.memory_mb)
    return children.contained(command)
