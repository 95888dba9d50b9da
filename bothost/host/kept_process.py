"""Child processes that are restarted when they end: the workers of a host, and the browser's pages beside it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import structlog

from bothost.host.backoff import Backoff

STEADY_S = 60.0
"""A process that ran this long is restarted with the shortest delay."""
END_S = 10.0
"""How long a process may take to end after SIGTERM, where ``beside`` ends it."""


class KeptProcess:
    """A child process that is restarted when it ends, after a growing pause."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        final: Callable[[int, int], bool] = lambda code, starts: False,
        **fields: Any,
    ) -> None:
        """``final(code, starts)``: whether it is not restarted after this exit code of its start with this number.

        Its log events begin with ``name`` and have these ``fields``.
        """
        self.starts = 0
        self.code: int | None = None
        """Its last exit code; negative: the signal that ended it."""
        self._name = name
        self._command = command
        self._final = final
        self._log = structlog.get_logger("bothost.host").bind(**fields)
        self._backoff = Backoff(0.5, 30.0)
        self._process: asyncio.subprocess.Process | None = None
        self._ending = asyncio.Event()
        """Set with SIGTERM: from then on it is not restarted."""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def keep(self) -> None:
        """Run it until it ends for good."""
        while not self._ending.is_set():
            code, wait_s = await self._run_once()
            if self._ending.is_set() and code == -signal.SIGTERM:
                code = 0  # it had not installed its signal handler yet
            self.code = code
            if self._ending.is_set() or self._final(code, self.starts):
                if code:
                    self._log.error(f"{self._name}_ended", code=code)
                return
            self._log.error(f"{self._name}_crashed", code=code, restart_s=round(wait_s, 2))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._ending.wait()

    async def _run_once(self) -> tuple[int, float]:
        """Start it and wait for its end. Returns its exit code and the seconds to wait before the next start."""
        self.starts += 1
        began = time.monotonic()
        # It has its own process group, so that only the parent gets Ctrl-C, and forwards it once.
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:  # out of memory or processes, which may be temporary
            self._log.error(f"{self._name}_not_started", error=str(error))
            return os.EX_OSERR, self._backoff.next(0.5)
        if self._ending.is_set():  # the signal came while the process was made
            self.signal(signal.SIGTERM)
        code = await self._process.wait()
        if time.monotonic() - began >= STEADY_S:
            self._backoff.reset()
        return code, self._backoff.next()

    def signal(self, number: int) -> None:
        """Send it a signal. After SIGTERM it is not restarted."""
        if number == signal.SIGTERM:
            self._ending.set()
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    @contextlib.asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Keep it while the block runs, then end it."""
        keeping = asyncio.create_task(self.keep(), name=self._name)
        try:
            yield
        finally:
            self.signal(signal.SIGTERM)
            await asyncio.wait([keeping], timeout=END_S)
            self.signal(signal.SIGKILL)
            await keeping
