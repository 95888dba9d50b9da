"""Fits the networks to records by weighted L1, on deals that are not held out, for some epochs or minutes.

All randomness of step i depends on (seed, i), and the order of an epoch on (seed, epoch). Checkpoints are between two
steps. So a fit by epochs gives the same network if it is interrupted and resumed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import torch
from torch import Tensor

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.loop import begun_or_resumed, set_learning_rate
from bothost.training.metrics import Metrics, plot, read
from bothost.training.publish import lineage_of, write_manifest, write_version
from bothost_doudizhu_mcts import logged, records
from bothost_doudizhu_mcts.encode import VERSION
from bothost_doudizhu_mcts.measure import HeldOut
from bothost_doudizhu_mcts.model import Networks, graphs
from bothost_doudizhu_mcts.samples import Batch, Samples

FRESH_RATE, CONTINUED_RATE = 2e-3, 2e-4
"""Initial learning rates."""
PLOTTED = ("l1", "l1_train", "l1_well_visited", "best_move")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the fit."""

    records: str | None = None
    """Folder of the records, which may be in subfolders."""
    start: str = ""
    """Address of the version whose parameters the fit starts with, such as "doudizhu-mcts". Empty: random ones."""
    epochs: float | None = None
    """Number of epochs. None: until the time is over."""
    positions: int = 64
    """Positions of a gradient step."""
    candidates: int = 12
    """Most candidate moves of a position in a step, drawn uniformly, so that leads with many moves do not dominate."""
    half_visits: float = 10.0
    """A record with n visits has the weight n / (n + half_visits) in the loss."""
    differences: float = 2.0
    """Weight of the L1 of the differences between a position's moves, relative to that of the values. The differences
    decide the play. Without this term, the error of the position's value would dominate them."""
    learning_rate: float | None = None
    """Initial learning rate. It falls linearly to 0 at the end. None: 0.002 from random parameters, and 0.0002 from a
    version's, so that it forgets little."""
    weight_decay: float = 0.01
    held_out: float = 0.05
    """Share of the deals that are held out for measurements."""
    measured: int = 3000
    """Most held-out positions for measurements."""
    checkpoint_every: int = 500
    """Steps between two checkpoints, each with a measurement."""
    bf16: bool = False
    """Compute layers in bfloat16, and parameters, loss and steps in float32. Faster if the CPU supports it."""

    def __post_init__(self) -> None:
        if min(self.positions, self.candidates, self.checkpoint_every, self.measured) < 1:
            raise ValueError("positions, candidates, measured and checkpoint_every must be positive")
        if not 0.0 < self.held_out < 1.0 or self.half_visits < 0 or (self.epochs is not None and self.epochs <= 0):
            raise ValueError("held_out must be within 0 and 1, half_visits and epochs not negative")


class Fitter(Trainer):
    """``bothost train doudizhu-mcts fit``."""

    name = "doudizhu-mcts"
    Options: ClassVar[type[msgspec.Struct]] = Options
    evaluators: ClassVar[tuple[str, ...]] = ("start",)

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        options: Options = self.options
        if options.records is None:
            raise UsageError("a fit needs records", advice="give --records FOLDER")
        if options.epochs is None and run.minutes is None:
            raise UsageError("this fit has no stopping condition", advice="give --minutes M or --epochs N")
        start = run.evaluators.get("start")
        return _train(options, Path(options.records), run, start.model if start else None, report)

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Continue the fit from the champion with records of logged hands. Default: one epoch."""
        options: Options = self.options
        if options.records is not None:
            raise UsageError("retraining makes its own records", advice="leave out --option records")
        if options.epochs is None and run.minutes is None:
            options = msgspec.structs.replace(options, epochs=1.0)
        found = logged.write(games, run.out.parent / "records")
        return _train(options, found, run, start, report)


def _train(
    options: Options, folder: Path, run: TrainingRun, start: Model | None, report: ReportProgress
) -> dict[str, Any]:
    """``start``: the model whose parameters the fit starts with."""
    torch.set_num_threads(1)
    torch.manual_seed(run.seed)
    net = Networks()
    net.start_with(start)
    rate = options.learning_rate or (FRESH_RATE if start is None else CONTINUED_RATE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=options.weight_decay, fused=True)
    progress = begun_or_resumed(run, VERSION, net, optimizer)
    progress.options = msgspec.to_builtins(msgspec.structs.replace(options, learning_rate=rate))
    found = records.load(folder)
    samples = Samples(found, options.positions, options.candidates, options.half_visits, options.held_out, run.seed)
    held_out = HeldOut(found, samples, options.measured)
    _fit(options, run, net, optimizer, progress, samples, held_out, report)
    return publish(run, net, progress, held_out, found)


def _fit(
    options: Options,
    run: TrainingRun,
    net: Networks,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    samples: Samples,
    held_out: HeldOut,
    report: ReportProgress,
) -> None:
    before, started = progress.seconds, time.monotonic()
    losses: list[float] = []
    with Metrics(run.out, after=progress.iteration, tensorboard=False) as metrics:
        while (part := _part_done(progress, options, run, samples)) < 1.0:
            set_learning_rate(optimizer, optimizer.defaults["lr"] * (1.0 - part))
            batch = samples.batch(progress.iteration)
            losses.append(_step(net, optimizer, batch, options))
            progress.iteration += 1
            progress.samples += len(batch.values)
            progress.seconds = before + time.monotonic() - started
            over = _part_done(progress, options, run, samples) >= 1.0
            if over or progress.iteration % options.checkpoint_every == 0:
                figures = held_out.measure(net) | {"l1_train": float(np.mean(losses))}
                epoch = progress.iteration / samples.steps
                metrics.write(progress.iteration, {"epoch": epoch, "samples": progress.samples, **figures})
                losses.clear()
                checkpoint.save(run.out, progress, net, optimizer)
                _tell(report, progress, run, f"epoch {epoch:.2f}, L1 {figures['l1']:.4f}", samples, options)
    plot(read(metrics.path), PLOTTED, run.out / "training.png", x="epoch")


def _step(
    net: Networks,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    options: Options,
) -> float:
    """Make one gradient step. Returns the L1 of the values."""
    with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        out = net(batch.inputs, batch.roles)
    error, weight = out.float() - torch.from_numpy(batch.values), torch.from_numpy(batch.weights)
    owner, outcomes = torch.from_numpy(batch.inputs.owner), torch.from_numpy(batch.outcomes)
    l1 = weighted_mean(error.abs(), weight)
    # For results of hands use the square, which is minimal at their mean. L1 is minimal at their median, 1 or -1.
    distance = torch.where(outcomes, error.square(), error.abs())
    centred = (error - mean_of_position(error, weight, owner)).abs()
    loss = weighted_mean(distance, weight) + options.differences * weighted_mean(centred, weight)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return float(l1.detach())


def weighted_mean(distance: Tensor, weight: Tensor) -> Tensor:
    """The weighted mean over all records."""
    return (weight * distance).sum() / weight.sum()


def mean_of_position(error: Tensor, weight: Tensor, owner: Tensor) -> Tensor:
    """Shape of ``error``: for each record, the weighted mean error of its position's records."""
    positions = int(owner[-1]) + 1
    total = torch.zeros(positions).index_add(0, owner, weight * error)
    return (total / torch.zeros(positions).index_add(0, owner, weight))[owner]


def _part_done(progress: Progress, options: Options, run: TrainingRun, samples: Samples) -> float:
    by_epochs = progress.iteration / (options.epochs * samples.steps) if options.epochs else 0.0
    return max(by_epochs, progress.seconds / (60 * run.minutes) if run.minutes else 0.0)


def _tell(
    report: ReportProgress, progress: Progress, run: TrainingRun, note: str, samples: Samples, options: Options
) -> None:
    if options.epochs is not None:
        report(progress.iteration, note, int(np.ceil(options.epochs * samples.steps)))
    elif run.minutes is not None:
        report(int(progress.seconds), note, int(60 * run.minutes))


def publish(
    run: TrainingRun, net: Networks, progress: Progress, held_out: HeldOut, found: records.Records
) -> dict[str, Any]:
    """Write the version and its lineage to ``out/weights``, and return the figures."""
    curve = read(run.out / "metrics.jsonl")
    final: Mapping[str, float] = curve[-1]
    versions = {"v1": write_version(run.out / "weights" / "v1", net.in_16_bits(), graphs(), VERSION)}
    rounded = {name: round(value, 4) for name, value in final.items() if name not in ("iteration", "samples")}
    figures = {"steps": progress.iteration, "samples": progress.samples, "minutes": round(progress.seconds / 60, 2)}
    figures |= {"records": len(found.actions), "positions": len(found), "deals": len(set(found.deals)), **rounded}
    told = {
        **figures,
        "value": "2 P(win) - 1 of the side that moves; L1 on this scale, halve it for win probabilities",
        "constant": {name: round(value, 4) for name, value in held_out.constant.items()},
        "records_made_by": held_out.made_by,
        "l1_curve": [[round(point["epoch"], 2), round(point["l1"], 4)] for point in curve],
    }
    write_manifest(run.out / "weights", versions, {"champion": "v1"}, lineage_of(run, progress, VERSION, told))
    return {"out": str(run.out), **figures}
