"""Experiment trackers that a training reports to: TensorBoard, Weights & Biases and MLflow.

A tracker only reads figures: whatever goes wrong with it is logged once, and the training continues.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from bothost.errors import UsageError

VARIABLE = "BOTHOST_TRACKERS"
"""Names, separated by commas; the command line sets it from ``[training] trackers``."""
_log = structlog.get_logger("bothost.training")
_PACKAGES = {"tensorboard": "train", "wandb": "trackers", "mlflow": "trackers"}
"""Tracker, which is the name of its package → the extra that brings it."""


class TensorBoard:
    """Event files in ``FOLDER/tensorboard``."""

    def __init__(self, folder: Path, after: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=after + 1 if after else None)

    def log(self, iteration: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._board.add_scalar(name, value, iteration)

    def close(self) -> None:
        self._board.close()


class Wandb:
    """A run of Weights & Biases, named after the folder. ``WANDB_MODE=offline`` keeps it in ``FOLDER/wandb``."""

    def __init__(self, folder: Path, after: int) -> None:
        import wandb

        project = os.environ.get("WANDB_PROJECT", "bothost")
        name = folder.name
        self._run = wandb.init(project=project, name=name, id=_identity(folder), dir=str(folder), resume="allow")

    def log(self, iteration: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=iteration)

    def close(self) -> None:
        self._run.finish()


class Mlflow:
    """A run of MLflow, named after the folder. Without ``MLFLOW_TRACKING_URI`` it is kept in ``FOLDER/mlruns.db``."""

    def __init__(self, folder: Path, after: int) -> None:
        from mlflow.tracking import MlflowClient

        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(folder / 'mlruns.db').absolute()}"
        self._client = MlflowClient(tracking_uri=uri)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "bothost")
        experiment = self._client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment is not None else self._client.create_experiment(name)
        tag = {"bothost.folder": _identity(folder)}
        known = self._client.search_runs([number], f"tags.`bothost.folder` = '{_identity(folder)}'", max_results=1)
        run = known[0] if known else self._client.create_run(number, tags=tag, run_name=folder.name)
        self._id = run.info.run_id

    def log(self, iteration: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._client.log_metric(self._id, name, value, step=iteration)

    def close(self) -> None:
        self._client.set_terminated(self._id)


Tracker = TensorBoard | Wandb | Mlflow
_KINDS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": Wandb, "mlflow": Mlflow}


class Trackers:
    """The trackers of one training."""

    def __init__(self, folder: Path, *, after: int = 0, names: Sequence[str] | None = None) -> None:
        """``after``: the iteration that the training resumes from. ``names``: None: those of ``wanted()``."""
        self._open: dict[str, Tracker] = {}
        for name in wanted() if names is None else names:
            self._safely(name, lambda name=name: self._open.__setitem__(name, _KINDS[name](folder, after)))

    def log(self, iteration: int, figures: Mapping[str, float]) -> None:
        """Report the figures of one iteration."""
        for name, tracker in list(self._open.items()):
            self._safely(name, lambda tracker=tracker: tracker.log(iteration, figures))

    def close(self) -> None:
        for name, tracker in list(self._open.items()):
            self._safely(name, tracker.close)

    def _safely(self, name: str, do: Any) -> None:
        try:
            do()
        except Exception as error:
            self._open.pop(name, None)
            _log.warning("tracker_failed", tracker=name, error=f"{type(error).__name__}: {error}"[:500])


def wanted() -> list[str]:
    """The trackers of this process: ``$BOTHOST_TRACKERS``, else TensorBoard where it is installed."""
    text = os.environ.get(VARIABLE)
    if text is not None:
        return [name for name in text.split(",") if name in _KINDS]
    return ["tensorboard"] if importlib.util.find_spec("tensorboard") is not None else []


def choose(names: Sequence[str]) -> None:
    """Let the trainings of this process and of its children report to these. Raises UsageError for one that is not
    installed."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"the tracker {name} is not installed", advice=f'pip install "bothost[{_PACKAGES[name]}]"')
    os.environ[VARIABLE] = ",".join(names)


def _identity(folder: Path) -> str:
    """The same for every run in a folder, so that a resumed training continues its run."""
    return hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16]
