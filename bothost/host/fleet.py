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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import structlog

from bothost.config import Settings
from bothost.errors import StoreUnavailable, UsageError
from bothost.host import signals
from bothost.host.control import Control, NoHost, ask, socket_path
from bothost.host.kept_process import KeptProcess
from bothost.host.leases import release_dead
from bothost.host.recovery import recover
from bothost.messages import Json
from bothost.store import Store

_log = structlog.get_logger("bothost.host")

FINAL = frozenset({0, 2, 77, 78})
"""Exit codes after which a restart does not help: done, wrong usage, credentials refused, wrong configuration."""
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


class Fleet:
    """The parent. ``command(number)`` is the command line of a worker.

    ``fail_fast``: end if a worker's first start finds its lobby or the database unreachable.
    """

    def __init__(
        self, settings: Settings, workers: int, command: Callable[[int], Sequence[str]], *, fail_fast: bool = False
    ) -> None:
        self.settings = settings
        self._fail_fast = fail_fast
        self.workers = {
            number: KeptProcess("worker", command(number), final=self._is_final, worker=number)
            for number in range(1, workers + 1)
        }
        """By number."""
        self.draining = False
        self._interrupted = False
        """Whether a second Ctrl-C ends it."""

    async def run(self) -> int:
        """Run until all workers have ended for good. Returns the first exit code that is not 0.

        Raises HostRunning if another host uses this ``data_dir``, and SchemaOutdated.
        """
        data_dir = self.settings.host.data_dir
        forwarded = {name: functools.partial(self.forward, name) for name in ("pause", "resume", "release")}
        control = Control(
            socket_path(data_dir), {"status": self.status, "tables": self.tables, "drain": self._drain, **forwarded}
        )
        await control.start()
        try:
            await recover(self.settings)
            with contextlib.suppress(StoreUnavailable):  # then the leases expire
                await asyncio.to_thread(self._release_dead)
            await self._keep_workers()
        finally:
            await control.aclose()
        default = exit_code(-signal.SIGINT) if self._interrupted else 0
        return next((code for worker in self.workers.values() if (code := exit_code(worker.code))), default)

    def _release_dead(self) -> None:
        with Store.open(self.settings.store) as store:
            release_dead(store, self.settings.host.data_dir)

    async def _keep_workers(self) -> None:
        """Start the workers, handle signals, and return when all have ended for good."""
        with signals.handling(self.interrupt, self.reload):
            await asyncio.gather(*(self._keep(worker) for worker in self.workers.values()))

    async def _keep(self, worker: KeptProcess) -> None:
        """Keep a worker. If it ends because its lobby is unreachable at the start, the others end, too."""
        await worker.keep()
        if worker.code == os.EX_TEMPFAIL and not self.draining:
            self.interrupt()

    def _is_final(self, code: int, starts: int) -> bool:
        return code in FINAL or (self._fail_fast and starts == 1 and code == os.EX_TEMPFAIL)

    def interrupt(self, number: int = signal.SIGTERM) -> None:
        """Forward a signal. A worker drains on the first and quits on the second."""
        self._interrupted = self.draining and number == signal.SIGINT
        self.draining = True
        for worker in self.workers.values():
            worker.signal(signal.SIGTERM)

    def reload(self) -> None:
        """Forward SIGHUP to the workers."""
        for worker in self.workers.values():
            worker.signal(signal.SIGHUP)

    def _drain(self) -> Json:
        if not self.draining:
            self.interrupt()
        return {"draining": True, "at_most_s": self.settings.host.drain_timeout_s}

    async def forward(self, command: str, **arguments: str) -> Json:
        """The answer of the worker with the account or strategy. Raises UsageError if there is none."""
        answers = await self._answers(command, **arguments)
        for answer in answers.values():
            if not isinstance(answer, UsageError):
                return answer
        silent = [str(number) for number, answer in answers.items() if isinstance(answer, NoHost)]
        if silent:
            advice = "bothost status shows whether it is restarted; then repeat the command"
            raise UsageError(f"worker {', '.join(silent)} does not answer, and no other can do this", advice=advice)
        raise next(answer for answer in answers.values() if isinstance(answer, UsageError))

    async def tables(self) -> Json:
        """The tables of all workers that answer."""
        answers = (await self._answers("tables")).values()
        return {"tables": [one for answer in answers if not isinstance(answer, UsageError) for one in answer["tables"]]}

    async def status(self) -> Json:
        """The status of every worker."""
        answers = await self._answers("status")
        return {
            "host": self.settings.host.name,
            "draining": self.draining,
            "workers": [_status_of(number, self.workers[number], answer) for number, answer in answers.items()],
        }

    async def _answers(self, command: str, **arguments: str) -> dict[int, Json | UsageError]:
        """Every worker's answer to a command, or why it refuses or does not answer. All are asked at once."""

        def asked(number: int) -> Json | UsageError:
            try:
                return ask(folder(self.settings.host.data_dir, number), command, ASK_S, **arguments)
            except UsageError as error:
                return error

        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(len(self.workers)) as threads:
            answers = await asyncio.gather(*(loop.run_in_executor(threads, asked, number) for number in self.workers))
        return dict(zip(self.workers, answers, strict=True))


def _status_of(number: int, worker: KeptProcess, answer: Json | UsageError) -> Json:
    known: Json = {"worker": number, "pid": worker.pid, "restarts": max(0, worker.starts - 1)}
    if isinstance(answer, UsageError):
        return {**known, "status": None, "code": worker.code}
    return {**known, "status": answer}


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
