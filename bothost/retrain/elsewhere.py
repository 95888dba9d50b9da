"""Trainings in another process, which may be lost with its machine: begun again, they go on from their checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bothost.retrain.task import TRAINING, Learnt, Task, last_checkpoint
from bothost.strategy import ReportProgress
from bothost.training.processes import ATTEMPTS, Lost

LOOK_S = 1.0
"""Seconds between two looks at a training."""


class Running(Protocol):
    """A task that another process does."""

    def look(self, seconds: float) -> Learnt | None:
        """Wait so long for the end; None: it is not over. Raises Lost, or what the task raised."""
        ...

    @property
    def told(self) -> tuple[int, str, int | None]:
        """What the trainer reported last: done, note and total."""
        ...

    def stop(self) -> None:
        """End the process, if it lives."""
        ...


def until_learnt(start: Callable[[], Running], task: Task, report: ReportProgress) -> Learnt:
    """Watch a task that ``start`` begins until it is over, and begin it again whenever it is lost.

    Raises Lost where that happens so often without another checkpoint in between, and whatever the task or ``report``
    raises; the task is stopped then.
    """
    losses, reached = 0, last_checkpoint(task.folder / TRAINING)
    while True:
        running = start()
        try:
            while (learnt := running.look(LOOK_S)) is None:
                report(*running.told)
            return learnt
        except Lost:
            now = last_checkpoint(task.folder / TRAINING)
            losses = losses + 1 if now == reached else 1
            reached = now
            if losses == ATTEMPTS:
                raise
        finally:
            running.stop()
