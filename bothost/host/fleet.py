"""``bothost run --workers N``: distributes the accounts over N processes. Each is a host of its own.

The parent does not play. It starts the workers, forwards signals, restarts crashed workers, and answers on the control
socket for all of them. A worker that loses its parent drains.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import structlog

from bothost.config import Settings
from bothost.errors import UsageError
from bothost.host.backoff import Backoff
from bothost.host.control import Control, ask, socket_path
from bothost.messages import Json

_log = structlog.get_logger("bothost.host")

FINAL = frozenset({0, 2, 77, 78})
"""Exit codes after which a restart does not help: done, wrong usage, credentials refused, wrong configuration."""
STEADY_S = 60.0
"""A worker that ran this long is restarted with the shortest delay."""
ASK_S = 1.0
"""How long a worker may take to answer a command."""


def share(settings: Settings, number: int, workers: int) -> Settings:
    """The settings of worker ``number`` (from 1) of ``workers``: its accounts, and its own name and folder.

    ``limits.tables`` is divided by the number of workers. The first worker uses the configured metrics port, and the
    others the ports after it.
    """
    change = msgspec.structs.replace
    index, lobbies = 0, []
    for lobby in settings.lobbies:
        mine = tuple(account for i, account in enumerate(lobby.accounts, index) if i % workers == number - 1)
        index += len(lobby.accounts)
        if mine:
            others = tuple(account.name for account in lobby.accounts if account not in mine)
            lobbies.append(change(lobby, accounts=mine, own_accounts=(*lobby.own_accounts, *others)))
    host, log, metrics, limits = settings.host, settings.log, settings.metrics, settings.limits
    file = None if log.file is None else log.file.with_stem(f"{log.file.stem}-{number}")
    port = metrics.port + number - 1 if metrics.port else metrics.port
    return change(
        settings,
        host=change(host, name=f"{host.name}-{number}", data_dir=folder(host.data_dir, number)),
        log=change(log, file=file),
        metrics=change(metrics, port=port),
        limits=change(limits, tables=max(1, -(-limits.tables // workers))),
        lobbies=tuple(lobbies),
    )


def folder(data_dir: Path, number: int) -> Path:
    """The folder of a worker's spool and control socket."""
    return data_dir / f"worker-{number}"


class WorkerProcess:
    """One worker process, restarted when it crashes."""

    def __init__(self, number: int, command: Sequence[str]) -> None:
        self.number = number
        self.starts = 0
        self.code: int | None = None
        """Its last exit code; negative: the signal that ended it."""
        self._command = command
        self._backoff = Backoff(0.5, 30.0)
        self._process: asyncio.subprocess.Process | None = None
        self._ends = False
        """Whether it got SIGTERM, or gets it once it has started."""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def run_once(self) -> float:
        """Start it and wait for its end. Returns the seconds to wait before the next start."""
        self.starts += 1
        began = time.monotonic()
        # It has its own process group, so that only the parent gets Ctrl-C, and forwards it once.
        try:
            self._process = await asyncio.create_subprocess_exec(*self._command, start_new_session=True)
        except OSError as error:  # out of memory or processes, which may be temporary
            _log.error("worker_not_started", worker=self.number, error=str(error))
            self.code = os.EX_OSERR
            return self._backoff.next(0.5)
        if self._ends:  # the signal came while the process was made
            self.signal(signal.SIGTERM)
        self.code = await self._process.wait()
        if time.monotonic() - began >= STEADY_S:
            self._backoff.reset()
        return self._backoff.next()

    def signal(self, number: int) -> None:
        self._ends |= number == signal.SIGTERM
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)


class Fleet:
    """The parent. ``command(number)`` is the command line of a worker."""

    def __init__(self, settings: Settings, workers: int, command: Callable[[int], Sequence[str]]) -> None:
        self.settings = settings
        self.workers = [WorkerProcess(number, command(number)) for number in range(1, workers + 1)]
        self.draining = False
        self._interrupted = False
        """Whether a second Ctrl-C ends it."""
        self._quit = asyncio.Event()

    async def run(self) -> int:
        """Run until all workers have ended for good. Returns the first exit code that is not 0.

        Raises HostRunning if another host uses this ``data_dir``.
        """
        loop = asyncio.get_running_loop()
        data_dir = self.settings.host.data_dir
        forwarded = {name: functools.partial(self.forward, name) for name in ("pause", "resume", "release")}
        control = Control(
            socket_path(data_dir), {"status": self.status, "tables": self.tables, "drain": self._drain, **forwarded}
        )
        await control.start()
        interrupt = {number: functools.partial(self.interrupt, number) for number in (signal.SIGINT, signal.SIGTERM)}
        signals: dict[signal.Signals, Callable[[], None]] = {**interrupt, signal.SIGHUP: self.reload}
        for number, handler in signals.items():
            loop.add_signal_handler(number, handler)
        try:
            await asyncio.gather(*(self._keep(worker) for worker in self.workers))
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
            await control.aclose()
        default = exit_code(-signal.SIGINT) if self._interrupted else 0
        return next((code for worker in self.workers if (code := exit_code(worker.code))), default)

    async def _keep(self, worker: WorkerProcess) -> None:
        while not self.draining:
            wait_s = await worker.run_once()
            if self.draining and worker.code == -signal.SIGTERM:
                worker.code = 0  # it had not installed its signal handler yet
            if worker.code in FINAL or self.draining:
                if worker.code:
                    _log.error("worker_ended", worker=worker.number, code=worker.code)
                return
            _log.error("worker_crashed", worker=worker.number, code=worker.code, restart_s=round(wait_s, 2))
            try:
                async with asyncio.timeout(wait_s):
                    await self._quit.wait()
            except TimeoutError:
                continue

    def interrupt(self, number: int = signal.SIGTERM) -> None:
        """Forward a signal. A worker drains on the first and quits on the second."""
        self._interrupted = self.draining and number == signal.SIGINT
        self.draining = True
        self._quit.set()
        for worker in self.workers:
            worker.signal(signal.SIGTERM)

    def reload(self) -> None:
        """Forward SIGHUP to the workers."""
        for worker in self.workers:
            worker.signal(signal.SIGHUP)

    def _drain(self) -> Json:
        if not self.draining:
            self.interrupt()
        return {"draining": True}

    def forward(self, command: str, **arguments: str) -> Json:
        """The answer of the worker with the account or strategy. Raises UsageError if there is none."""
        answers, refusals = [], []
        for worker in self.workers:
            try:
                answers.append(ask(folder(self.settings.host.data_dir, worker.number), command, ASK_S, **arguments))
            except UsageError as error:
                refusals.append(error)
        if not answers:
            raise refusals[0]
        return answers[0]

    def tables(self) -> Json:
        """The tables of all workers that answer."""
        found: list[Json] = []
        for worker in self.workers:
            with contextlib.suppress(UsageError):
                found += ask(folder(self.settings.host.data_dir, worker.number), "tables", ASK_S)["tables"]
        return {"tables": found}

    def status(self) -> Json:
        """The status of every worker."""
        return {
            "host": self.settings.host.name,
            "draining": self.draining,
            "workers": [self._status_of(worker) for worker in self.workers],
        }

    def _status_of(self, worker: WorkerProcess) -> Json:
        known: Json = {"worker": worker.number, "pid": worker.pid, "restarts": max(0, worker.starts - 1)}
        try:
            return {**known, "status": ask(folder(self.settings.host.data_dir, worker.number), "status", ASK_S)}
        except UsageError:
            return {**known, "status": None, "code": worker.code}


def exit_code(code: int | None) -> int:
    """A process's exit code as a shell reports it: 128 plus the number of the signal that ended it."""
    if code is None:
        return 0
    return 128 - code if code < 0 else code


async def drain_without_parent(parent: int, drain: Callable[[], None]) -> None:
    """In a worker of the process ``parent``: drain when that has ended, because nothing forwards signals any more."""
    while os.getppid() == parent:  # noqa: ASYNC110 (no event reports it)
        await asyncio.sleep(1.0)
    _log.error("parent_gone")
    drain()
