"""The processes of a training, as its coordinator uses them, and the child processes of this machine.

Each process has one role. A call returns an :class:`PendingCall`. If the process died, the answer raises
:class:`WorkerDied`, and the coordinator restarts the process. :mod:`bothost.training.ray_processes` implements the same
protocols with Ray actors.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from bothost.errors import BothostError

ATTEMPTS = 5
"""A training fails when the same step failed this often."""
Result = TypeVar("Result")
Role = type[Any]
"""A class built from a ``Setup``. Its methods return a receipt and a payload (:mod:`bothost.training.roles`)."""


class Setup(Protocol):
    """The data that a role is built from. It can be sent to another process."""

    @property
    def timeout_s(self) -> float:
        """Seconds that an answer may take."""
        ...

    @property
    def device(self) -> str:
        """``cuda`` gives each trainer a GPU."""
        ...


class WorkerDied(BothostError):
    """A process of a training died or does not answer in time."""


class PendingCall(ABC):
    """The result of a call to a process."""

    payload: Any
    """The payload or a reference to it, to pass to other processes. Valid after ``receive``."""

    @abstractmethod
    def receive(self) -> Any:
        """Wait for the receipt. Raises WorkerDied, or the error that the role raised."""

    @abstractmethod
    def fetch(self) -> Any:
        """Return the payload itself. Raises WorkerDied."""


class Process(ABC):
    """A process with one role."""

    @property
    @abstractmethod
    def id(self) -> int:
        """The process id on its own machine."""

    @abstractmethod
    def ask(self, method: str, *arguments: Any) -> PendingCall:
        """Call a method of the role. An earlier answer that was not received is dropped."""

    @abstractmethod
    def close(self) -> None:
        """End the process."""

    @abstractmethod
    def begin(self) -> None:
        """Start the process, without waiting until it runs."""

    def restart(self) -> None:
        """Start the process again; end it first if it is alive."""
        self.close()
        self.begin()


class Processes(ABC):
    """Starts processes, on this machine or on a cluster."""

    @abstractmethod
    def start(self, role: Role, setup: Setup) -> Process:
        """Start a process with this role, without waiting until it runs."""

    @abstractmethod
    def meet(self, trainers: list[Process]) -> None:
        """Make the trainers one group; the first gets rank 0."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None:
        """End all processes."""


def retry_on_death(
    process: Process, answer: PendingCall, ask: Callable[[], PendingCall], take: Callable[[PendingCall], Result]
) -> Result:
    """Return ``take(answer)``. If the process died, restart it and call ``ask`` for a new answer.

    Raises WorkerDied when the process died ``ATTEMPTS`` times.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return take(answer)
        except WorkerDied:
            process.restart()
            answer = ask()
    return take(answer)


def join(trainers: list[Process], meeting: Path | tuple[str, int]) -> None:
    """Connect the trainers to each other, all at once: see ``roles.Trainer.join``."""
    answers = [trainer.ask("join", rank, len(trainers), meeting) for rank, trainer in enumerate(trainers)]
    for answer in answers:
        answer.receive()


class LocalAnswer(PendingCall):
    """An answer through a pipe."""

    def __init__(self, process: LocalProcess) -> None:
        self._process = process

    def receive(self) -> Any:
        kind, receipt, self.payload = self._process.read()
        if kind == "error":
            raise receipt
        return receipt

    def fetch(self) -> Any:
        return self.payload


class LocalProcess(Process):
    """A child process. It ends with its parent."""

    def __init__(self, role: Role, setup: Setup) -> None:
        self._role, self._setup = role, setup
        self.begin()

    def begin(self) -> None:
        # Importing torch takes seconds: the server that all children are forked from does it once.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["bothost.training.uninterrupted", "bothost.training.roles", "torch._dynamo"])
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs, self._role, self._setup), daemon=True)
        self._child.start()
        theirs.close()
        self._asked = False  # whether an answer is due

    @property
    def id(self) -> int:
        return self._child.pid or 0

    def ask(self, method: str, *arguments: Any) -> LocalAnswer:
        if self._asked:  # no caller waited for that answer, because another process failed
            with contextlib.suppress(WorkerDied):
                self.read()
        self._asked = True
        with contextlib.suppress(OSError):  # reading the answer reports that it died
            self._pipe.send((method, arguments))
        return LocalAnswer(self)

    def read(self) -> tuple[str, Any, Any]:
        """Read the next answer. Raises WorkerDied if there will be none."""
        name = f"process {self.id} ({self._role.__name__})"
        self._asked = False
        try:
            if not self._pipe.poll(self._setup.timeout_s):
                raise WorkerDied(f"{name} does not answer")
            answer: tuple[str, Any, Any] = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied(f"{name} ended unexpectedly") from error
        return answer

    def close(self) -> None:
        self._pipe.close()
        self._child.kill()
        self._child.join()
        self._child.close()


class LocalProcesses(Processes):
    """Child processes of this machine. They use pipes; trainers reach each other over the loopback interface."""

    def __init__(self) -> None:
        self._started: list[LocalProcess] = []
        self._folder = tempfile.TemporaryDirectory(prefix="bothost-trainers-")
        self._meetings = 0

    def start(self, role: Role, setup: Setup) -> LocalProcess:
        self._started.append(LocalProcess(role, setup))
        return self._started[-1]

    def meet(self, trainers: list[Process]) -> None:
        self._meetings += 1
        join(trainers, Path(self._folder.name) / str(self._meetings))

    def __exit__(self, *error: object) -> None:
        for process in self._started:
            process.close()
        self._folder.cleanup()


def _serve(pipe: Connection, role: Role, setup: Setup) -> None:
    """Run the calls that arrive on the pipe until it is closed."""
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
