"""Training by self-play with PPO: the loop that the trainers of two-seat games share.

All randomness of update i is a function of (seed, i), and a checkpoint lies between two updates; so a training that was
interrupted and resumes gives the same models as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from bothost.errors import ModelError, UsageError
from bothost.strategy import ReportProgress, TrainingRun
from bothost.training import checkpoint, ppo
from bothost.training.checkpoint import Progress
from bothost.training.metrics import Metrics, plot, read
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import Float
from bothost.training.rollout import SelfPlay, Task

Build = Callable[[], torch.nn.Module]
"""Makes a model with fresh parameters, drawn from torch's global generator."""

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
) -> Progress:
    """Train until ``options.iterations`` or ``run.minutes`` are over, whichever comes first; returns how far it came.

    ``start``: parameters to begin with, a safetensors file; None: fresh ones. ``more``: what each update learns from
    beside self-play.

    Writes to ``run.out``: checkpoints, ``pool/``, ``metrics.jsonl``, ``tensorboard/`` and ``training.png``.

    Raises UsageError where there is a training in ``run.out`` and it is not to be resumed, or none and it is.
    """
    if options.iterations is None and run.minutes is None:
        raise UsageError("this training has no end", advice="give --minutes, or --option iterations=N")
    torch.set_num_threads(1)
    torch.manual_seed(run.seed)
    model, opponent = build(), build()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate, eps=1e-5, fused=True)
    progress = begin(options, run, encoder_version, model, optimizer)
    pool = ModelPool(run.out / "pool")
    pool.forget_after(progress.iteration)
    if progress.iteration == 0:
        if start is not None:
            checkpoint.load_model(start, model)
        pool.add(0, model)
    play = SelfPlay(task, options.environments, options.horizon)
    before, started = progress.seconds, time.monotonic()

    with Metrics(run.out, after=progress.iteration) as metrics:
        while (done := part_done(progress, options, run)) < 1.0:
            progress.iteration += 1
            rng = np.random.default_rng([run.seed, progress.iteration])
            version = pool.draw(rng, options.newest_share)
            pool.load(version, opponent)
            anneal(optimizer, options.learning_rate, done)

            clock = time.monotonic()
            with ppo.precision(options.ppo.bf16):
                rollout = play.collect(model, opponent, seed=int(rng.integers(2**63)))
            played = time.monotonic() - clock
            generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
            batch = rollout.batch(options.ppo)
            if more is not None:
                batch = ppo.joined(batch, more(model, rng))
            figures = ppo.update(model, optimizer, batch, options.ppo, generator)

            progress.samples += rollout.actions.size
            progress.seconds = before + time.monotonic() - started
            figures |= rollout_figures(rollout.final_leads, rollout.steps / played)
            figures |= {"samples": progress.samples, "seconds": round(progress.seconds, 2), "opponent": version}
            metrics.write(progress.iteration, figures)
            over = part_done(progress, options, run) >= 1.0
            if over or progress.iteration % options.pool_every == 0:
                pool.add(progress.iteration, model)
            if over or progress.iteration % options.checkpoint_every == 0:
                checkpoint.save(run.out, progress, model, optimizer)
            tell(report, progress, options, run, figures)

    records = read(metrics.path)
    if records:
        plot(records, PLOTTED, run.out / "training.png")
    return progress


def begin(
    options: SelfPlayOptions,
    run: TrainingRun,
    encoder_version: int,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> Progress:
    """Progress, model and optimizer at the beginning of a training, or where the one in ``run.out`` was left."""
    last = checkpoint.latest(run.out)
    settled: dict[str, Any] = msgspec.to_builtins(options)
    if not run.resume:
        if run.out.is_dir() and any(run.out.iterdir()):
            raise UsageError(f"{run.out} is not empty", advice="go on with --resume, or name another folder")
        return Progress(seed=run.seed, encoder_version=encoder_version, options=settled)
    if last is None:
        raise UsageError(f"there is no checkpoint in {run.out}", advice="leave --resume out to begin")
    progress = checkpoint.load(last, model, optimizer)
    if progress.encoder_version != encoder_version:
        raise ModelError(
            f"{last} was trained with encoder version {progress.encoder_version}, this is {encoder_version}",
            advice="train anew into another folder",
        )
    if progress.seed != run.seed:
        raise UsageError(f"{last} was begun with seed {progress.seed}", advice=f"resume it with --seed {progress.seed}")
    progress.options = settled
    return progress


def part_done(progress: Progress, options: SelfPlayOptions, run: TrainingRun) -> float:
    """How much of the training is over, of 1."""
    updates = progress.iteration / options.iterations if options.iterations else 0.0
    return max(updates, progress.seconds / (60 * run.minutes) if run.minutes else 0.0)


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


def tell(
    report: ReportProgress, progress: Progress, options: SelfPlayOptions, run: TrainingRun, figures: dict[str, float]
) -> None:
    """Report what came of an update."""
    note = f"{progress.samples:,} samples, lead {figures['mean_lead']:+.1f} over version {figures['opponent']:.0f}"
    if options.iterations is not None:
        report(progress.iteration, note, options.iterations)
    elif run.minutes is not None:
        report(int(progress.seconds), note, int(60 * run.minutes))


def version_at(out: Path, samples: float) -> tuple[int, Progress]:
    """The pool's version that was the newest after so many samples, and how far training had come then."""
    versions = ModelPool(out / "pool").versions
    records = {int(record["iteration"]): record for record in read(out / "metrics.jsonl")}
    reached = [v for v in versions if v in records and records[v]["samples"] <= samples]
    version = reached[-1] if reached else versions[0]
    record = records.get(version, {"samples": 0, "seconds": 0.0})
    return version, Progress(iteration=version, samples=int(record["samples"]), seconds=record["seconds"])
