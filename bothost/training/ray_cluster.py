"""Connecting to a Ray cluster, and taking values from it. It needs no torch."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

from bothost.errors import UsageError
from bothost.training.devices import Device
from bothost.training.processes import WorkerDied
from bothost.training.trackers import VARIABLE

LOOPBACK = "127.0.0.1"
KNOCK_S = 10.0
"""Seconds that a cluster may take to accept a connection."""


def connect(address: str | None, *, cores: int, device: Device) -> bool:
    """Connect to the cluster at ``address``. Without an address, start Ray on this machine with ``cores`` cores.

    Processes on all of its nodes report to the trackers of this one. Returns False if this process is connected
    already; do not shut that connection down. Raises UsageError if Ray is not installed or the cluster
    cannot be reached.
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
    environment = {"env_vars": {VARIABLE: os.environ[VARIABLE]}} if VARIABLE in os.environ else None
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
                runtime_env=environment,
            )
        else:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, runtime_env=environment)
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
