"""The processes of a training as Ray actors, on this machine or on a cluster.

The coordinator replaces an actor that died by a new one, on another node if necessary. Ray must not do it
(``max_restarts=0``): it would restart the same actor, and a late kill of the old process could hit the new one.
Ray does not repeat the failed call either, because only the coordinator knows what else depends on it.
Payloads stay in the object store. Rollouts go from workers to trainers and models from the pool to workers, once per
node, without passing the coordinator.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from bothost.training.devices import Device
from bothost.training.processes import PendingCall, Process, Processes, Role, Setup, join
from bothost.training.ray_cluster import connect, value_of
from bothost.training.roles import Pool, Trainer


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


class RayAnswer(PendingCall):
    """An answer whose payload stays in the object store."""

    def __init__(self, process: RayProcess, receipt: Any, payload: Any) -> None:
        self._process = process
        self._receipt = receipt
        self.payload = payload
        """An ``ObjectRef``. Ray replaces it by its value when it is an argument of another actor's call."""

    def receive(self) -> Any:
        return self._process.get(self._receipt)

    def fetch(self) -> Any:
        return self._process.get(self.payload)


class RayProcess(Process):
    """One actor at a time."""

    def __init__(self, role: Role, setup: Setup) -> None:
        self._role, self._setup = role, setup
        self.begin()

    def begin(self) -> None:
        """See ``Process``. The next call shows whether the cluster has room for it."""
        import ray

        cpus = 0 if self._role is Pool else 1
        gpus = 1 if self._role is Trainer and self._setup.device == "cuda" else 0
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        self._actor: Any = ray.remote(Actor).options(**options).remote(self._role, self._setup)

    @property
    def id(self) -> int:
        return int(self.get(self._actor.where.remote())[0])

    @property
    def address(self) -> str:
        """The address of the machine that it runs on."""
        return str(self.get(self._actor.where.remote())[1])

    def ask(self, method: str, *arguments: Any) -> RayAnswer:
        receipt, payload = self._actor.call.options(num_returns=2).remote(method, *arguments)
        return RayAnswer(self, receipt, payload)

    def get(self, reference: Any) -> Any:
        """See ``value_of``."""
        return value_of(reference, self._role.__name__, self._setup.timeout_s)

    def close(self) -> None:
        import ray

        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(self._actor, no_restart=True)


class RayProcesses(Processes):
    """Actors in a Ray cluster."""

    def __init__(self, address: str | None, *, cores: int, device: Device) -> None:
        """Raises UsageError as ``connect`` does."""
        self._started: list[RayProcess] = []
        self._ours = connect(address, cores=cores, device=device)

    def start(self, role: Role, setup: Setup) -> RayProcess:
        self._started.append(RayProcess(role, setup))
        return self._started[-1]

    def meet(self, trainers: list[Process]) -> None:
        if len(trainers) == 1:
            return
        first = trainers[0]
        assert isinstance(first, RayProcess)
        join(trainers, first.ask("host", first.address).receive())

    def __exit__(self, *error: object) -> None:
        import ray

        for process in self._started:
            process.close()
        if self._ours:
            ray.shutdown()
