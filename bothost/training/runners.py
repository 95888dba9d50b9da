"""Choose where the processes of a training run: on this machine or on a Ray cluster."""

from __future__ import annotations

from typing import Literal

from bothost.training.devices import Device
from bothost.training.processes import LocalProcesses, Processes

Runner = Literal["local", "ray"]
"""``local``: child processes of this one. ``ray``: actors of a Ray cluster."""


def processes_of(runner: Runner, ray_address: str | None, *, cores: int, device: Device) -> Processes:
    """The processes of a training.

    ``ray_address`` is the cluster's; None starts Ray on this machine with ``cores`` cores. Raises UsageError as
    ``RayProcesses`` does.
    """
    if runner == "local":
        return LocalProcesses()
    from bothost.training.ray_processes import RayProcesses

    return RayProcesses(ray_address, cores=cores, device=device)
