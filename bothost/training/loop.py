"""Training by self-play with PPO: the loop that the trainers of two-seat games share.

All randomness of update i is a function of (seed, i), and a checkpoint lies between two updates; so a training that was
interrupted and resumes gives the same models as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec
import numpy as np
import torch

from bothost.errors import UsageError
from bothost.strategy import ReportProgress, TrainingRun
from bothost.training import checkpoint, ppo
from bothost.training.checkpoint import Progress
from bothost.training.metrics import Metrics, plot, read
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import Float
from bothost.training.rollout import SelfPlay, Task

Build = Callable[[], torch.nn.Module]
"""Makes a model with fresh parameters, drawn from torch's global generator."""

Clock = Callable[[], float]
"""Tells seconds: ``time.monotonic``, or ``time.process_time`` where other work on the machine shall not count."""

PLOTTED = ("mean_lead", "value", "entropy", "approx_kl", "explained_variance")


class SelfPlayOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a training by self-play."""

    iterations: int | None = None
    """Updates to make in all; None: until the time is over."""
    environments: int = 256
    """Hands played at once."""
    horizon: int = 128
    """Decisions of the learner in each environment, per update."""
    learning_rate: float = 1e-3
    """At the beginning; it falls linearly to 0 at the end."""
    newest_share: float = 0.5
    """Share of the rollouts against the newest version of the pool; the others are against any, equally likely."""
    pool_every: int = 5
    """Updates between two versions of the model pool."""
    checkpoint_every: int = 20
    """Updates between two checkpoints."""
    ppo: ppo.PpoOptions = ppo.PpoOptions()

    def __post_init__(self) -> None:
        counts = ("environments", "horizon", "pool_every", "checkpoint_every")
        for name in counts if self.iterations is None else ("iterations", *counts):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if not self.learning_rate > 0.0 or not 0.0 <= self.newest_share <= 1.0:
            raise ValueError("learning_rate must be positive, and newest_share within 0 and 1")


More = Callable[[torch.nn.Module, np.random.Generator], ppo.Batch]
"""Makes samples beside those of self-play, for one update of the model."""


def train(
    options: SelfPlayOptions,
    task: Task,
    build: Build,
    run: TrainingRun,
    encoder_version: int,
    report: ReportProgress,
    *,
    start: Path | None = None,
    more: More | None = None,
    clock: Clock = time.monotonic,
) -> Progress:
    """Train until ``options.iterations`` or ``run.minutes`` are over, whichever comes first; returns how far it came.

    ``start``: parameters to begin with, a safetensors file; None: fresh ones. ``more``: what each update learns from
    beside self-play. ``clock`` counts the minutes. What it writes, and when it raises UsageError: see ``Course``.
    """
    check_end(options, run)
    model, optimizer = prepare(options, build, run)
    opponent = build()
    with Course(options, run, encoder_version, model, optimizer, report, start=start, clock=clock) as course:
        play = SelfPlay(task, options.environments, options.horizon)
        for part_done in course.updates():
            rng = np.random.default_rng([run.seed, course.progress.iteration])
            version = course.pool.draw(rng, options.newest_share)
            course.pool.load(version, opponent)
            anneal(optimizer, options.learning_rate, part_done)

            began = clock()
            with ppo.precision(options.ppo.bf16):
                rollout = play.collect(model, opponent, seed=int(rng.integers(2**63)))
            played = clock() - began
            generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
            batch = rollout.batch(options.ppo)
            if more is not None:
                batch = ppo.joined(batch, more(model, rng))
            figures = ppo.update(model, optimizer, batch, options.ppo, generator)

            figures |= rollout_figures(rollout.final_leads, rollout.steps / played) | {"opponent": version}
            course.record(figures, samples=rollout.actions.size)
    return course.progress


def check_end(options: SelfPlayOptions, run: TrainingRun) -> None:
    """Raises UsageError where nothing says when the training is over."""
    if options.iterations is None and run.minutes is None:
        raise UsageError("this training has no end", advice="give --minutes, or --option iterations=N")


def prepare(options: SelfPlayOptions, build: Build, run: TrainingRun) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A fresh model, by the seed of the run, and its optimizer."""
    torch.set_num_threads(1)
    torch.manual_seed(run.seed)
    model = build()
    return model, torch.optim.Adam(model.parameters(), lr=options.learning_rate, eps=1e-5, fused=True)


class Course:
    """A training under way: how far it is, when it is over, and what it leaves in its folder.

    To be entered. Writes to ``run.out``: checkpoints, ``pool/``, ``metrics.jsonl``, ``tensorboard/``, and in the end
    ``training.png``.
    """

    def __init__(
        self,
        options: SelfPlayOptions,
        run: TrainingRun,
        encoder_version: int,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        report: ReportProgress,
        *,
        start: Path | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Begin, with the parameters in the safetensors file ``start`` or those that ``model`` has, or bring model and
        optimizer to where the training in ``run.out`` was left.

        Raises UsageError where there is a training in ``run.out`` and it is not to be resumed, or none and it is.
        """
        self._options, self._run, self._report = options, run, report
        self._model, self._optimizer = model, optimizer
        self.progress = begun_or_resumed(run, encoder_version, model, optimizer)
        self.progress.options = msgspec.to_builtins(options)
        self.pool = ModelPool(run.out / "pool")
        self.pool.forget_after(self.progress.iteration)
        if self.progress.iteration == 0:
            if start is not None:
                checkpoint.load_model(start, model)
            self.pool.add(0, model)
        self._metrics = Metrics(run.out, after=self.progress.iteration)
        self._clock = clock
        self._began = clock() - self.progress.seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._metrics.close()
        if error is None and (records := read(self._metrics.path)):
            plot(records, PLOTTED, self._run.out / "training.png")

    @property
    def part_done(self) -> float:
        """How much of the training is over, of 1."""
        progress, options, run = self.progress, self._options, self._run
        updates = progress.iteration / options.iterations if options.iterations else 0.0
        return max(updates, progress.seconds / (60 * run.minutes) if run.minutes else 0.0)

    def updates(self) -> Iterator[float]:
        """Counts the updates in ``progress``, until the training is over; what part of it was over before each."""
        while (part_done := self.part_done) < 1.0:
            self.progress.iteration += 1
            yield part_done

    def record(self, figures: dict[str, float], samples: int) -> None:
        """An update from so many samples is made, and the model is what it left."""
        progress, options = self.progress, self._options
        progress.samples += samples
        progress.seconds = self._clock() - self._began
        figures = {**figures, "samples": progress.samples, "seconds": round(progress.seconds, 2)}
        self._metrics.write(progress.iteration, figures)
        over = self.part_done >= 1.0
        if over or progress.iteration % options.pool_every == 0:
            self.pool.add(progress.iteration, self._model)
        if over or progress.iteration % options.checkpoint_every == 0:
            checkpoint.save(self._run.out, progress, self._model, self._optimizer)
        self._tell(figures)

    def _tell(self, figures: dict[str, float]) -> None:
        progress, options = self.progress, self._options
        note = f"{progress.samples:,} samples, lead {figures['mean_lead']:+.1f} over version {figures['opponent']:.0f}"
        if options.iterations is not None:
            self._report(progress.iteration, note, options.iterations)
        elif self._run.minutes is not None:
            self._report(int(progress.seconds), note, int(60 * self._run.minutes))


def begun_or_resumed(
    run: TrainingRun, encoder_version: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Progress:
    """As the run asks: ``resumed`` or ``begun``."""
    return resumed(run, encoder_version, model, optimizer) if run.resume else begun(run, encoder_version)


def begun(run: TrainingRun, encoder_version: int) -> Progress:
    """The beginning of a training in an empty folder. Raises UsageError where it is not empty."""
    checkpoint.check_empty(run.out)
    return Progress(seed=run.seed, encoder_version=encoder_version)


def resumed(
    run: TrainingRun, encoder_version: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Progress:
    """How far the training in the folder is, and model and optimizer as they were then.

    Raises UsageError where there is none, or one of another seed; ModelError where it is of another encoder or model.
    """
    last = checkpoint.last(run.out)
    checkpoint.read(last, seed=run.seed, encoder_version=encoder_version)
    return checkpoint.load(last, model, optimizer)


def anneal(optimizer: torch.optim.Optimizer, rate: float, part_done: float) -> None:
    """Set the learning rate, which falls linearly from ``rate`` to 0."""
    for group in optimizer.param_groups:
        group["lr"] = rate * (1.0 - part_done)


def rollout_figures(leads: Float, steps_per_s: float) -> dict[str, float]:
    """What self-play was like: ``leads`` (hands,) of the learner at the end of each hand."""
    return {
        "mean_lead": float(leads.mean()) if len(leads) else 0.0,
        "win_rate": float((leads > 0).mean() + 0.5 * (leads == 0).mean()) if len(leads) else 0.5,
        "hands": len(leads),
        "rollout_steps_per_s": round(steps_per_s),
    }


def version_at(out: Path, amount: float, of: Literal["samples", "seconds"] = "samples") -> tuple[int, Progress]:
    """The pool's version that was the newest after so many samples or seconds, and how far training had come then."""
    versions = ModelPool(out / "pool").versions
    records = {int(record["iteration"]): record for record in read(out / "metrics.jsonl")}
    reached = [v for v in versions if v in records and records[v][of] <= amount]
    version = reached[-1] if reached else versions[0]
    record = records.get(version, {"samples": 0, "seconds": 0.0})
    return version, Progress(iteration=version, samples=int(record["samples"]), seconds=record["seconds"])
