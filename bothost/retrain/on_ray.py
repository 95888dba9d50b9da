"""Run trainings on a Ray cluster. Each training is one actor, on any node with room for it.

If the actor's process dies, the training starts again from its last checkpoint.

The local process holds the lease, writes the dataset and registers the model. Only the training runs on the cluster.
All nodes need the job's folder and the configuration under the same paths. They need the database only for trainers
that read the log themselves. No secret is sent: each node uses the environment that it was started with.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bothost.config import load
from bothost.errors import UsageError
from bothost.plugins import Plugins
from bothost.retrain.task import DATASET, TRAINING, Learnt, RetrainTask, last_checkpoint, learn
from bothost.store.store import Store
from bothost.strategy import ReportProgress
from bothost.training.processes import ATTEMPTS, WorkerDied
from bothost.training.ray_cluster import connect, value_of

HERE = "local"
"""Used instead of an address: start Ray on this machine and stop it at the end."""
LOOK_S = 1.0
"""Seconds between two checks of a training."""


class Trainee:
    """The actor in Ray's worker process."""

    def __init__(self) -> None:
        self._progress: tuple[int, str, int | None] = (0, "", None)

    def learn(self, config: Path, task: RetrainTask) -> Learnt:
        """Run the task."""
        for path in (config, task.folder / DATASET):
            if not path.exists():
                advice = "keep config.toml and data_dir on storage that all nodes have under the same path"
                raise UsageError(f"{node_name()} does not see {path}", advice=advice)
        settings = load(config)
        plugins = Plugins.load(settings.host.plugins_dir)
        return learn(plugins, partial(Store.open, settings.store), task, self._report)

    def progress(self) -> tuple[int, str, int | None]:
        """The last progress report of the trainer. Called while ``learn`` runs."""
        return self._progress

    def _report(self, done: int, note: str = "", total: int | None = None) -> None:
        self._progress = done, note, total


class RayRunning:
    """A running task."""

    def __init__(self, config: Path, task: RetrainTask, cores: int) -> None:
        import ray

        # Ray must not restart the actor or repeat the task: ``until_learnt`` does, after the process has ended.
        options = {"num_cpus": cores, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": 2}
        trainee: Any = ray.remote(Trainee)
        self._actor = trainee.options(**options).remote()
        self._learnt = self._actor.learn.remote(config, task)
        self._asked = self._actor.progress.remote()
        self._name = f"the training of {task.request.strategy}"
        self.progress: tuple[int, str, int | None] = (0, "waiting for a free node of the cluster", None)
        """The last progress report of the trainer: done, note and total."""

    def look(self, seconds: float) -> Learnt | None:
        """Wait up to ``seconds`` for the result; None if it is not finished. Raises WorkerDied or the task's error."""
        import ray

        if ray.wait([self._learnt], timeout=seconds)[0]:
            learnt: Learnt = self._value(self._learnt)
            return learnt
        if ray.wait([self._asked], timeout=0)[0]:
            self.progress = self._value(self._asked)
            self._asked = self._actor.progress.remote()
        return None

    def stop(self) -> None:
        """End the process if it is alive."""
        import ray

        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(self._actor, no_restart=True)

    def _value(self, reference: Any) -> Any:
        return value_of(reference, self._name, None)


def until_learnt(start: Callable[[], RayRunning], task: RetrainTask, report: ReportProgress) -> Learnt:
    """Start a task with ``start`` and watch it until it finishes. Start it again whenever its process dies.

    Raises WorkerDied if it died ``ATTEMPTS`` times without a new checkpoint, or any error of the task or of ``report``.
    The task is stopped in that case.
    """
    losses, reached = 0, last_checkpoint(task.folder / TRAINING)
    while True:
        running = start()
        try:
            while (learnt := running.look(LOOK_S)) is None:
                report(*running.progress)
            return learnt
        except WorkerDied:
            now = last_checkpoint(task.folder / TRAINING)
            losses = losses + 1 if now == reached else 1
            reached = now
            if losses == ATTEMPTS:
                raise
        finally:
            running.stop()


def learn_on_ray(address: str, config: Path, cores: int, task: RetrainTask, report: ReportProgress) -> Learnt:
    """Run a task on the cluster at ``address``: ``auto``, ``HOST:PORT`` or ``HERE``. ``config``: path of config.toml.

    Raises UsageError if Ray is not installed, or if the cluster cannot be reached or has too few cores.
    """
    ours = connect(None if address == HERE else address, cores=max(cores, os.cpu_count() or 1), device="cpu")
    import ray

    try:
        nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        most = max((node["Resources"].get("CPU", 0) for node in nodes), default=0)
        if most < cores:
            message = f"no node of the Ray cluster has {cores} cores: the largest has {most:g}"
            raise UsageError(message, advice="ask for fewer with --ray-cores, or add nodes")
        return until_learnt(lambda: RayRunning(config, task, cores), task, report)
    finally:
        if ours:
            ray.shutdown()


def node_name() -> str:
    """This machine, as errors name it."""
    import ray

    return f"node {ray.util.get_node_ip_address()}"  # type: ignore[no-untyped-call]
