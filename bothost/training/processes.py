"""Processes that each have a role, as the coordinator of a training sees them, and those of this machine.

What is asked of a process comes as an :class:`Answer`; a process that is gone raises :class:`Lost` there and is started
again on demand. Ray's actors have the same face (:mod:`bothost.training.ray_processes`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

from bothost.errors import BothostError

ATTEMPTS = 5
"""How often the same step may fail before a training gives up."""
Runner = Literal["local", "ray"]
"""Where processes run: on this machine, or where Ray puts them."""
Taken = TypeVar("Taken")
Role = type[Any]
"""Made from a ``Setup``; its methods return a receipt and a payload, as those of :mod:`bothost.training.roles` do."""


class Setup(Protocol):
    """What a role is made from: data that can be sent to another process."""

    @property
    def timeout_s(self) -> float:
        """How long an answer may take."""
        ...

    @property
    def device(self) -> str:
        """``cuda`` gives trainers a GPU each."""
        ...


class Lost(BothostError):
    """A process of a training died or does not answer."""


class Answer(Protocol):
    """What a process will answer."""

    @property
    def payload(self) -> Any:
        """The payload, or what stands for it: an argument for other processes. After ``receive`` alone."""
        ...

    def receive(self) -> Any:
        """Wait for the receipt. Raises Lost, or what the role raised."""
        ...

    def fetch(self) -> Any:
        """The payload itself. Raises Lost."""
        ...


class Process(Protocol):
    """A process with one role."""

    @property
    def id(self) -> int:
        """Its process id, on its own machine; for those who watch."""
        ...

    def ask(self, method: str, *arguments: Any) -> Answer:
        """Call a method of the role. An earlier answer that nobody received is dropped."""
        ...

    def restart(self) -> None:
        """End the process if it lives, and start it anew."""
        ...


class Processes(Protocol):
    """Where processes come from: this machine, or a cluster."""

    def start(self, role: Role, setup: Setup) -> Process:
        """Start a process with this role; it need not be up when this returns."""
        ...

    def meet(self, trainers: list[Process]) -> None:
        """Make the trainers one group, the first of them first."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all processes."""
        ...


def processes_of(runner: Runner, ray_address: str | None, *, cores: int, device: Literal["cpu", "cuda"]) -> Processes:
    """Where the processes of a training come from. Raises UsageError as ``RayProcesses`` does.

    ``ray_address``: of the cluster; None: Ray is started on this machine, with so many ``cores``.
    """
    if runner == "local":
        return LocalProcesses()
    from bothost.training.ray_processes import RayProcesses

    return RayProcesses(ray_address, cores=cores, device=device)


def taken(process: Process, answer: Answer, ask: Callable[[], Answer], take: Callable[[Answer], Taken]) -> Taken:
    """What ``take`` takes of an answer. A process that is lost is started again, and told anew by ``ask``.

    Raises Lost where it is lost every time.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return take(answer)
        except Lost:
            process.restart()
            answer = ask()
    return take(answer)


def join(trainers: list[Process], meeting: Path | tuple[str, int]) -> None:
    """Let the trainers meet, all at once: see ``roles.Trainer.join``."""
    answers = [trainer.ask("join", rank, len(trainers), meeting) for rank, trainer in enumerate(trainers)]
    for answer in answers:
        answer.receive()


class LocalAnswer:
    """An answer through a pipe."""

    def __init__(self, process: LocalProcess) -> None:
        self._process = process
        self.payload: Any = None

    def receive(self) -> Any:
        """See ``Answer``."""
        kind, receipt, self.payload = self._process.read()
        if kind == "error":
            raise receipt
        return receipt

    def fetch(self) -> Any:
        """See ``Answer``."""
        return self.payload


class LocalProcess:
    """A child process that dies with its parent."""

    def __init__(self, role: Role, setup: Setup) -> None:
        self._role, self._setup = role, setup
        self._start()

    def _start(self) -> None:
        # Torch is imported once, by the server that all children are forked from: that takes seconds.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["bothost.training.roles", "torch._dynamo"])
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs, self._role, self._setup), daemon=True)
        self._child.start()
        theirs.close()
        self._asked = False  # whether an answer is on its way

    @property
    def id(self) -> int:
        """See ``Process``."""
        return self._child.pid or 0

    def ask(self, method: str, *arguments: Any) -> LocalAnswer:
        """See ``Process``."""
        if self._asked:  # and nobody waited for the answer: a failure elsewhere came between
            with contextlib.suppress(Lost):
                self.read()
        self._asked = True
        with contextlib.suppress(OSError):  # the answer will tell that it is gone
            self._pipe.send((method, arguments))
        return LocalAnswer(self)

    def read(self) -> tuple[str, Any, Any]:
        """The next answer. Raises Lost where there will be none."""
        name = f"process {self.id} ({self._role.__name__})"
        self._asked = False
        try:
            if not self._pipe.poll(self._setup.timeout_s):
                raise Lost(f"{name} does not answer")
            answer: tuple[str, Any, Any] = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise Lost(f"{name} ended unexpectedly") from error
        return answer

    def restart(self) -> None:
        """See ``Process``."""
        self.close()
        self._start()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._child.kill()
        self._child.join()
        self._child.close()


class LocalProcesses:
    """Processes of this machine, which talk through pipes and, trainers among themselves, through the loopback."""

    def __init__(self) -> None:
        self._started: list[LocalProcess] = []
        self._folder = tempfile.TemporaryDirectory(prefix="bothost-trainers-")
        self._meetings = 0

    def start(self, role: Role, setup: Setup) -> LocalProcess:
        """See ``Processes``."""
        self._started.append(LocalProcess(role, setup))
        return self._started[-1]

    def meet(self, trainers: list[Process]) -> None:
        """See ``Processes``."""
        self._meetings += 1
        join(trainers, Path(self._folder.name) / str(self._meetings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started:
            process.close()
        self._folder.cleanup()


def _serve(pipe: Connection, role: Role, setup: Setup) -> None:
    """Answer what comes through the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    acting: Any = None
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            method, arguments = pipe.recv()
            try:
                acting = acting if acting is not None else role(setup)
                answer = ("answer", *getattr(acting, method)(*arguments))
            except Exception as error:
                answer = ("error", error, None)
            pipe.send(answer)
