"""The training of a job as plain data, to run in any process that sees the job's folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from bothost.errors import ANY_FAILURE, UsageError
from bothost.plugins import (
    Plugins,
    check_options,
    checked_figures,
    learners,
    require,
    trainer_evaluators,
    trainers_of,
)
from bothost.retrain.dataset import Dataset
from bothost.retrain.players import Players
from bothost.store.query import HandQuery
from bothost.store.store import Store
from bothost.strategy import Model, ReportProgress, Strategy, Trainer, TrainingRun

Json = dict[str, Any]
TRAINING, DATASET = "training", "dataset"
"""Folders in the job's folder."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a job."""

    strategy: str
    query: HandQuery
    seed: int = 0
    minutes: float | None = None
    options: Json = {}
    """Options of the trainer."""
    fresh: bool = False
    """Begin with fresh parameters, not with the champion."""
    command: str = ""


class RetrainTask(msgspec.Struct, frozen=True, kw_only=True):
    """A training whose dataset is complete."""

    request: Request
    folder: Path
    """The job's folder, an absolute path that is the same on all machines."""
    dataset_sha256: str
    start: Model | None
    """The model to begin with. Its files are in ``folder``."""


class Learnt(msgspec.Struct, frozen=True):
    """The result of a task, beside the model in ``folder``."""

    figures: Json
    log: Json | None
    """What the trainer read from the log itself, if it does."""


Learn = Callable[[RetrainTask, ReportProgress], Learnt]
"""Runs a task, in this process or another. Continues an interrupted one."""


def learn(
    plugins: Plugins,
    open_store: Callable[[], AbstractContextManager[Store]],
    task: RetrainTask,
    report: ReportProgress,
) -> Learnt:
    """Run the task in this process, from its last checkpoint if there is one.

    ``open_store`` opens the database. It is called only if the trainer reads the log itself.
    """
    request = task.request
    strategy: type[Strategy] = require(plugins, plugins.strategies, "strategy", request.strategy)
    trainer = trainer_of(plugins, request.strategy)
    settled = check_options(trainer, request.options)
    if trainer.starts_with_version and settled.start:
        advice = "leave out the option start, or begin anew with --fresh"
        raise UsageError("a retraining starts with the champion", advice=advice)
    dataset = Dataset(task.folder / DATASET, strategy.name)
    if dataset.sha256 != task.dataset_sha256:
        raise UsageError(f"{dataset.folder} is not the dataset that the job was started with")
    with open_store() if trainer.learns_from_log else nullcontext() as store:
        log = None if store is None else _players(store, request, dataset)
        run = TrainingRun(
            out=task.folder / TRAINING,
            seed=request.seed,
            minutes=request.minutes,
            resume=_begun(task.folder / TRAINING),
            command=request.command,
            log=log,
            players=request.query.players if log is not None else (),
            evaluators=trainer_evaluators(plugins, trainer, settled),
        )
        figures = checked_figures(trainer, trainer(settled).retrain(run, dataset, task.start, report))
        return Learnt(figures, None if log is None else log.lineage())


def trainer_of(plugins: Plugins, name: str) -> type[Trainer]:
    """The trainer of a strategy that learns from logged hands: of the last stage that has one.

    Raises StrategyNotFound, and UsageError if there is no such trainer.
    """
    found = _retrainer(require(plugins, plugins.strategies, "strategy", name))
    if found is None:
        able = ", ".join(each for each in learners(plugins.strategies) if _may_retrain(plugins.strategies[each]))
        raise UsageError(f"{name} does not learn from logged hands", advice=f"strategies that do: {able or 'none'}")
    return found


def _retrainer(strategy: type[Strategy]) -> type[Trainer] | None:
    found = trainers_of(strategy)
    stages = reversed(list(found.values())) if isinstance(found, Mapping) else filter(None, [found])
    return next((trainer for trainer in stages if trainer.retrain is not Trainer.retrain), None)


def _may_retrain(strategy: type[Strategy]) -> bool:
    try:
        return _retrainer(strategy) is not None
    except ANY_FAILURE:  # such as a package that is not installed: its retraining names it
        return True


def last_checkpoint(folder: Path) -> str | None:
    """The name of the newest checkpoint in the trainer's folder."""
    return max((path.parent.name for path in folder.glob("checkpoint-*/state.json")), default=None)


def _begun(folder: Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    if last_checkpoint(folder) is not None:
        return True
    if folder.exists():  # killed before the first checkpoint
        shutil.rmtree(folder)
    return False


def _players(store: Store, request: Request, dataset: Dataset) -> Players:
    """The moves of all players, for trainers that imitate. Excludes hands that started after the dataset was made."""
    made_us = int(dataset.manifest["created_us"])
    until_us = made_us if request.query.until_us is None else min(made_us, request.query.until_us)
    return Players(store, msgspec.structs.replace(request.query, until_us=until_us))
