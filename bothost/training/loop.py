"""The training loop that all strategies share.

A strategy provides a ``Learner``, which collects samples and updates the model. ``TrainerLoop`` does the rest: it
resumes, limits iterations and time, and writes metrics, the model pool and checkpoints.

All randomness of iteration i depends on (seed, i) alone, and checkpoints are written between iterations. So a training
that was interrupted and resumed gives the same model, bit for bit, as one that was not.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
import torch

from bothost.errors import ModelError, UsageError
from bothost.plugins import check_options as check_options
from bothost.strategy import ReportProgress, TrainingRun
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.limits import Count, Levels
from bothost.training.metrics import FILE, Metrics, plot, read, read_until
from bothost.training.model_pool import ModelPool

HUGE_PARAMETER = 1e6
"""A few layers with parameters of this size overflow float32, and their outputs are no numbers."""
Clock = Callable[[], float]
"""Returns seconds: ``time.monotonic``, or ``time.process_time`` to ignore other work on the machine."""


class LoopOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every training."""

    iterations: int | None = None
    """Total number of iterations. None: until the time is over."""
    pool_every: Count = 5
    """Iterations between two versions of the model pool."""
    checkpoint_every: Count = 20
    """Iterations between two checkpoints."""
    least_iterations: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.iterations is not None and self.iterations < self.least_iterations:
            raise ValueError(f"iterations must be at least {self.least_iterations}")


class Iteration(NamedTuple):
    """The inputs of one iteration."""

    number: int
    """From 1 on."""
    part_done: float
    """Completed fraction of the training before this iteration, from 0 to 1."""
    rng: np.random.Generator
    """Seeded with (seed of the run, number)."""
    pool: ModelPool


class Outcome(NamedTuple):
    """The result of one iteration."""

    figures: dict[str, float]
    samples: int
    """Decisions that the model learned from."""


class Learner(ABC):
    """The part of a training that belongs to a strategy."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    plotted: ClassVar[Sequence[str]]
    """Metrics that ``training.png`` shows."""

    def load_start(self, file: Path) -> None:
        """Begin with the parameters in a safetensors file."""
        checkpoint.load_model(file, self.model)

    def warm_start(self, report: ReportProgress) -> Mapping[str, Any]:
        """Prepare a fresh model before the first iteration. Returns facts for the lineage."""
        return {}

    def resume(self, records: Sequence[Mapping[str, float]]) -> None:  # noqa: B027 - most learners keep nothing
        """Restore state that depends on earlier iterations, from their metrics."""

    def iterate(self, iteration: Iteration) -> Outcome:
        """Collect samples and update the model."""
        return self.update(iteration, self.collect(iteration))

    @abstractmethod
    def collect(self, iteration: Iteration) -> Any:
        """Collect samples with the present model."""

    @abstractmethod
    def update(self, iteration: Iteration, collected: Any) -> Outcome:
        """Update the model from what ``collect`` returned."""

    def evaluate(self, iteration: Iteration, *, last: bool) -> dict[str, float]:
        """Measure the model. Called after each iteration; its time does not count as training time."""
        return {}

    @abstractmethod
    def note(self, figures: Mapping[str, float]) -> str:
        """One line about the latest figures for the progress report."""


class TrainerLoop:
    """Runs a learner until the iterations or the minutes are over.

    It writes to ``run.out``: checkpoints, ``pool/``, ``metrics.jsonl``, ``tensorboard/`` and, at the end of a training
    that learned, ``training.png``.
    """

    def __init__(
        self,
        options: LoopOptions,
        run: TrainingRun,
        encoder_version: int,
        learner: Learner,
        report: ReportProgress,
        *,
        start: Path | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Begin a training, or restore the learner from the last checkpoint in ``run.out``.

        ``start``: a safetensors file with parameters to begin with. Raises UsageError if nothing limits the training,
        if ``run.out`` is not empty, or if there is nothing to resume.
        """
        check_end(options, run)
        self._options, self._run, self._learner, self._report, self._clock = options, run, learner, report, clock
        began = clock()
        self.progress = begun_or_resumed(run, encoder_version, learner.model, learner.optimizer)
        self.progress.options |= msgspec.to_builtins(options)
        self.pool = ModelPool(run.out / "pool")
        self.pool.forget_after(self.progress.iteration)
        if run.resume and not self.pool.versions:
            raise ModelError(f"{self.pool.folder} has no version", advice="train again into another folder")
        self._began = began - self.progress.seconds
        if not run.resume:
            if start is not None:
                learner.load_start(start)
            self.progress.options |= learner.warm_start(report)
            check_finite(learner.model, 0)
            self.progress.seconds = clock() - began
            self.pool.add(0, learner.model)
            checkpoint.save(run.out, self.progress, learner.model, learner.optimizer)
        elif self.progress.iteration:
            learner.resume(read_until(run.out / FILE, self.progress.iteration))

    @property
    def part_done(self) -> float:
        """Completed fraction of the training, from 0 to 1."""
        progress, iterations, minutes = self.progress, self._options.iterations, self._run.minutes
        if iterations == 0:
            return 1.0
        by_iterations = progress.iteration / iterations if iterations else 0.0
        return max(by_iterations, progress.seconds / (60 * minutes) if minutes else 0.0)

    def train(self) -> Progress:
        """Train to the end. Returns the progress. Raises ModelError if the training diverges."""
        out = self._run.out
        with Metrics(out, after=self.progress.iteration) as metrics:
            while (part_done := self.part_done) < 1.0:
                self._iterate(part_done, metrics)
        if self.progress.samples and (records := read(metrics.path)):
            plot(records, self._learner.plotted, out / "training.png")
        return self.progress

    def _iterate(self, part_done: float, metrics: Metrics) -> None:
        options, progress, learner = self._options, self.progress, self._learner
        progress.iteration += 1
        rng = np.random.default_rng([self._run.seed, progress.iteration])
        iteration = Iteration(progress.iteration, part_done, rng, self.pool)
        figures, samples = learner.iterate(iteration)
        check_finite(learner.model, iteration.number, figures.values())
        progress.samples += samples
        paused = self._clock()
        progress.seconds = paused - self._began
        last = self.part_done >= 1.0
        figures |= learner.evaluate(iteration, last=last)
        self._began += self._clock() - paused
        figures |= {"samples": progress.samples, "seconds": round(progress.seconds, 2)}
        metrics.write(progress.iteration, figures)
        if last or progress.iteration % options.pool_every == 0:
            self.pool.add(progress.iteration, learner.model)
        if last or progress.iteration % options.checkpoint_every == 0:
            checkpoint.save(self._run.out, progress, learner.model, learner.optimizer)
        self._report_progress(f"{progress.samples:,} samples, {learner.note(figures)}")

    def _report_progress(self, note: str) -> None:
        if self._options.iterations is not None:
            self._report(self.progress.iteration, note, self._options.iterations)
        elif self._run.minutes is not None:
            self._report(int(self.progress.seconds), note, int(60 * self._run.minutes))


def check_end(options: LoopOptions, run: TrainingRun) -> None:
    """Raise UsageError if neither iterations nor minutes limit the training."""
    if options.iterations is None and run.minutes is None:
        raise UsageError("nothing limits this training", advice="give --minutes, or --option iterations=N")


def check_levels(levels: Levels) -> None:
    """Raise ValueError if a level would be stronger than a later one."""
    if list(levels) != sorted(levels):
        raise ValueError("levels must ascend: the weakest is taken first")


def check_finite(model: torch.nn.Module, iteration: int, figures: Iterable[float] = ()) -> None:
    """Raise ModelError if a parameter or a figure is not a finite number, or a parameter is huge.

    What is on disk is still sound.
    """
    parameters = all(bool((parameter.abs() < HUGE_PARAMETER).all()) for parameter in model.parameters())
    if not (parameters and all(map(math.isfinite, figures))):
        what = "figures are no longer finite numbers" if parameters else "parameters are no longer sound numbers"
        raise ModelError(
            f"the training diverged in iteration {iteration}: its {what}",
            advice="lower the learning rate, and begin anew or --resume from the last checkpoint",
        )


def limited(run: TrainingRun, options: LoopOptions, minutes: float) -> TrainingRun:
    """The run, limited to ``minutes`` if nothing else limits it."""
    if run.minutes is None and options.iterations is None:
        return msgspec.structs.replace(run, minutes=minutes)
    return run


def begun_or_resumed(
    run: TrainingRun, encoder_version: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Progress:
    """Begin in an empty folder, or restore model and optimizer from the last checkpoint if ``run.resume``.

    Raises UsageError if the folder is not empty, has no checkpoint, or was started with another seed, or with a version
    where the run has none, or the other way round. Raises ModelError if the checkpoint has another encoder version or
    does not fit the model.
    """
    start = "" if run.start is None else run.start.label
    if not run.resume:
        checkpoint.check_empty(run.out)
        return Progress(seed=run.seed, encoder_version=encoder_version, start=start)
    last = checkpoint.last(run.out)
    began = checkpoint.read(last, seed=run.seed, encoder_version=encoder_version).start
    if began is not None and bool(began) != bool(start):  # learning rate and network may depend on it
        name = began.partition(" ")[0]
        advice = f"resume it with the option start={name.partition(':')[2]}" if began else "leave out the option start"
        raise UsageError(f"{last} started with {name or 'fresh parameters'}", advice=advice)
    return checkpoint.load(last, model, optimizer)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def version_at(out: Path, amount: float, of: Literal["samples", "seconds"] = "samples") -> tuple[int, Progress]:
    """Return the newest version of the pool after at most ``amount`` samples or seconds, and its progress."""
    versions = ModelPool(out / "pool").versions
    records = {int(record["iteration"]): record for record in read(out / FILE)}
    reached = [version for version in versions if version in records and records[version][of] <= amount]
    version = reached[-1] if reached else versions[0]
    record = records.get(version, {"samples": 0, "seconds": 0.0})
    return version, Progress(iteration=version, samples=int(record["samples"]), seconds=record["seconds"])
