"""Run a training in another process. If that process dies, start it again from its last checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bothost.retrain.task import TRAINING, Learnt, RetrainTask, last_checkpoint
from bothost.strategy import ReportProgress
from bothost.training.processes import ATTEMPTS, WorkerDied

LOOK_S = 1.0
"""Seconds between two checks of a training."""


class Running(Protocol):
    """A task that runs in another process."""

    def look(self, seconds: float) -> Learnt | None:
        """Wait up to ``seconds`` for the result; None if it is not finished. Raises WorkerDied or the task's error."""
        ...

    @property
    def progress(self) -> tuple[int, str, int | None]:
        """The last progress report of the trainer: done, note and total."""
        ...

    def stop(self) -> None:
        """End the process if it is alive."""
        ...


def until_learnt(start: Callable[[], Running], task: RetrainTask, report: ReportProgress) -> Learnt:
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
