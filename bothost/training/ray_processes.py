"""Processes of a training as Ray actors: on this machine, or all over a cluster.

An actor that dies is replaced by a new one, on another node if its own is gone, and not by Ray (``max_restarts=0``):
Ray starts the same actor again, so that a late order to end the old process may hit the new one. Nor does Ray repeat
what the dead one was doing; the coordinator does, which knows what else that touches. Payloads stay in the object
store: rollouts go from workers to trainers, and models from the pool to workers, without passing the coordinator, and
once per node.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from types import TracebackType
from typing import Any, Self

from bothost.errors import UsageError
from bothost.training.processes import Lost, Process, Role, Setup, join
from bothost.training.roles import Device, Pool, Trainer

LOOPBACK = "127.0.0.1"
KNOCK_S = 10.0
"""How long a cluster may take to accept a connection."""


class Actor:
    """What runs in a Ray worker process: a role, and who it is."""

    def __init__(self, role: Role, setup: Setup) -> None:
        self._role = role(setup)

    def call(self, method: str, *arguments: Any) -> tuple[Any, Any]:
        """Call a method of the role."""
        receipt, payload = getattr(self._role, method)(*arguments)
        return receipt, payload

    def where(self) -> tuple[int, str]:
        """Process id, and address of the machine."""
        import ray

        return os.getpid(), str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


class RayAnswer:
    """An answer whose payload stays in the object store."""

    def __init__(self, process: RayProcess, receipt: Any, payload: Any) -> None:
        self._process = process
        self._receipt = receipt
        self.payload = payload
        """An ``ObjectRef``: as an argument of another actor's call Ray puts the value in its place."""

    def receive(self) -> Any:
        """See ``Answer``."""
        return self._process.get(self._receipt)

    def fetch(self) -> Any:
        """See ``Answer``."""
        return self._process.get(self.payload)


class RayProcess:
    """One actor at a time."""

    def __init__(self, role: Role, setup: Setup) -> None:
        self._role, self._setup = role, setup
        self._name = role.__name__
        self._timeout_s = setup.timeout_s
        self._actor = self._start()

    def _start(self) -> Any:
        import ray

        cpus = 0 if self._role is Pool else 1
        gpus = 1 if self._role is Trainer and self._setup.device == "cuda" else 0
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        return ray.remote(Actor).options(**options).remote(self._role, self._setup)

    @property
    def id(self) -> int:
        """See ``Process``."""
        return int(self.get(self._actor.where.remote())[0])

    @property
    def address(self) -> str:
        """Of the machine that it runs on."""
        return str(self.get(self._actor.where.remote())[1])

    def ask(self, method: str, *arguments: Any) -> RayAnswer:
        """See ``Process``."""
        receipt, payload = self._actor.call.options(num_returns=2).remote(method, *arguments)
        return RayAnswer(self, receipt, payload)

    def get(self, reference: Any) -> Any:
        """See ``value_of``."""
        return value_of(reference, self._name, self._timeout_s)

    def restart(self) -> None:
        """See ``Process``. Whether there is a place for it shows when it is asked."""
        self.close()
        self._actor = self._start()

    def close(self) -> None:
        """End the actor for good."""
        import ray

        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(self._actor, no_restart=True)


def connect(address: str | None, *, cores: int, device: Device) -> bool:
    """Connect to the cluster at ``address``; without one, start Ray on this machine, with so many ``cores``.

    False where this process is connected already: that connection is used then, and is not to be shut down. Raises
    UsageError where Ray is not installed or the cluster cannot be reached.
    """
    # Ray is told here what it would warn of later, and to keep to itself what it would report to its makers.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:  # a cluster of this machine alone listens on the loopback alone
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError("running on Ray needs ray", advice='pip install "bothost[ray]"') from error
    if ray.is_initialized():
        return False
    advice = "ray status tells whether there is a cluster; ray start --head begins one"
    try:
        _knock(address)
        if address is None:
            ray.init(
                address="local",  # and not one that happens to run here
                num_cpus=cores,
                num_gpus=None if device == "cuda" else 0,
                include_dashboard=False,
                _node_ip_address=LOOPBACK,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
        else:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"Ray cannot be reached at {address or LOOPBACK}: {error}", advice=advice) from error
    return True


def _knock(address: str | None) -> None:
    """Raises OSError where nobody listens at HOST:PORT: Ray itself would try for minutes, and end the process."""
    host, _, port = (address or "").rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


def value_of(reference: Any, name: str, timeout_s: float | None) -> Any:
    """What a reference stands for, that was asked of ``name``.

    Raises Lost where the actor or the object is gone, or does not come in time, else what the actor raised.
    """
    import ray

    try:
        return ray.get(reference, timeout=timeout_s)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ray.exceptions.RayError):  # what it was given is gone
            raise Lost(f"what {name} was given is lost: {cause}") from error
        raise cause if isinstance(cause, Exception) else error  # noqa: B904
    except ray.exceptions.RayError as error:
        raise Lost(f"{name} is lost: {error}") from error


class RayProcesses:
    """Actors in a Ray cluster."""

    def __init__(self, address: str | None, *, cores: int, device: Device) -> None:
        """Raises UsageError as ``connect`` does."""
        self._started: list[RayProcess] = []
        self._ours = connect(address, cores=cores, device=device)

    def start(self, role: Role, setup: Setup) -> RayProcess:
        """See ``Processes``."""
        self._started.append(RayProcess(role, setup))
        return self._started[-1]

    def meet(self, trainers: list[Process]) -> None:
        """See ``Processes``."""
        if len(trainers) == 1:
            return
        first = trainers[0]
        assert isinstance(first, RayProcess)
        join(trainers, first.ask("host", first.address).receive())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import ray

        for process in self._started:
            process.close()
        if self._ours:
            ray.shutdown()
