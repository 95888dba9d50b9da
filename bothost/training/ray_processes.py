"""The processes of a training as Ray actors, on this machine or on a cluster.

The coordinator replaces an actor that died by a new one, on another node if necessary. Ray must not do it
(``max_restarts=0``): it would restart the same actor, and a late kill of the old process could hit the new one.
Ray does not repeat the failed call either, because only the coordinator knows what else depends on it.
Payloads stay in the object store. Rollouts go from workers to trainers and models from the pool to workers, once per
node, without passing the coordinator.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from types import TracebackType
from typing import Any, Self

from bothost.errors import UsageError
from bothost.training.processes import Process, Role, Setup, WorkerDied, join
from bothost.training.roles import Device, Pool, Trainer

LOOPBACK = "127.0.0.1"
KNOCK_S = 10.0
"""Seconds that a cluster may take to accept a connection."""


class Actor:
    """The object in a Ray worker process: a role and its address."""

    def __init__(self, role: Role, setup: Setup) -> None:
        self._role = role(setup)

    def call(self, method: str, *arguments: Any) -> tuple[Any, Any]:
        """Call a method of the role."""
        receipt, payload = getattr(self._role, method)(*arguments)
        return receipt, payload

    def where(self) -> tuple[int, str]:
        """Return the process id and the address of the machine."""
        import ray

        return os.getpid(), str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


class RayAnswer:
    """An answer whose payload stays in the object store."""

    def __init__(self, process: RayProcess, receipt: Any, payload: Any) -> None:
        self._process = process
        self._receipt = receipt
        self.payload = payload
        """An ``ObjectRef``. Ray replaces it by its value when it is an argument of another actor's call."""

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
        """The address of the machine that it runs on."""
        return str(self.get(self._actor.where.remote())[1])

    def ask(self, method: str, *arguments: Any) -> RayAnswer:
        """See ``Process``."""
        receipt, payload = self._actor.call.options(num_returns=2).remote(method, *arguments)
        return RayAnswer(self, receipt, payload)

    def get(self, reference: Any) -> Any:
        """See ``value_of``."""
        return value_of(reference, self._name, self._timeout_s)

    def restart(self) -> None:
        """See ``Process``. The next call shows whether the cluster has room for it."""
        self.close()
        self._actor = self._start()

    def close(self) -> None:
        """End the actor."""
        import ray

        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(self._actor, no_restart=True)


def connect(address: str | None, *, cores: int, device: Device) -> bool:
    """Connect to the cluster at ``address``. Without an address, start Ray on this machine with ``cores`` cores.

    Returns False if this process is connected already; do not shut that connection down. Raises UsageError if Ray is
    not installed or the cluster cannot be reached.
    """
    # These settings avoid warnings of Ray and switch off its usage reports.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:  # then listen on the loopback interface only
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError("running on Ray needs ray", advice='pip install "bothost[ray]"') from error
    if ray.is_initialized():
        return False
    advice = "ray status shows whether a cluster runs; ray start --head starts one"
    try:
        _knock(address)
        if address is None:
            ray.init(
                address="local",  # ignore a cluster that already runs here
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
    """Raise OSError if nothing listens at HOST:PORT. Ray itself would retry for minutes and then exit the process."""
    host, _, port = (address or "").rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


def value_of(reference: Any, name: str, timeout_s: float | None) -> Any:
    """Return the value of a reference that the process ``name`` made.

    Raises WorkerDied if the actor or the object is lost or late, otherwise the error that the actor raised.
    """
    import ray

    try:
        return ray.get(reference, timeout=timeout_s)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ray.exceptions.RayError):  # an argument of the call is lost
            raise WorkerDied(f"an argument for {name} is lost: {cause}") from error
        raise cause if isinstance(cause, Exception) else error  # noqa: B904
    except ray.exceptions.RayError as error:
        raise WorkerDied(f"{name} is lost: {error}") from error


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
