"""Fits the networks to records by weighted L1, on deals that are not held out, for some epochs or minutes.

With a teacher, each step also learns the teacher's values of other positions.

All randomness of step i depends on (seed, i), and the order of an epoch on (seed, epoch). Checkpoints are between two
steps. So a fit by epochs gives the same network if it is interrupted and resumed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.training import checkpoint
from bothost.training.loop import Count, NotNegative, Positive, begun_or_resumed, check_finite, set_learning_rate
from bothost.training.metrics import Metrics, plot, read
from bothost_doudizhu_mcts import logged, records
from bothost_doudizhu_mcts.encode import VERSION
from bothost_doudizhu_mcts.evaluated import address_of
from bothost_doudizhu_mcts.measure import HeldOut
from bothost_doudizhu_mcts.model import Networks, publish
from bothost_doudizhu_mcts.rehearsal import Rehearsal
from bothost_doudizhu_mcts.samples import Batch, Samples

FRESH_RATE, CONTINUED_RATE = 2e-3, 2e-4
"""Initial learning rates."""
PLOTTED = ("l1", "l1_train", "l1_well_visited", "best_move", "regret")


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the fit."""

    records: str | None = None
    """Folder of the records, which may be in subfolders."""
    start: str = ""
    """Version whose parameters the fit starts with, such as "doudizhu-mcts". Empty: random ones."""
    teacher: str = ""
    """Address of the strategy whose values of other positions each step learns too, such as "deep-mc". Empty: none."""
    rehearsed: Count = 128
    """The teacher's positions of a gradient step."""
    epochs: Positive | None = None
    """Number of epochs. None: until the time is over."""
    positions: Count = 64
    """Positions of a gradient step."""
    candidates: Count = 12
    """Most candidate moves of a position in a step, drawn uniformly, so that leads with many moves do not dominate."""
    half_visits: NotNegative = 10.0
    """A record with n visits has the weight n / (n + half_visits) in the loss."""
    values: NotNegative = 1.0
    """Weight of the L1 of the values. Searches model the others as weaker than they may be, so their values can be too
    high. 0: learn differences alone."""
    differences: NotNegative = 2.0
    """Weight of the L1 of the differences between a position's moves. They decide the play. Without this term, the
    error of the position's value would dominate them."""
    learning_rate: Positive | None = None
    """Initial learning rate. It falls linearly to 0 at the end. None: 0.002 from random parameters, and 0.0002 from a
    version's, so that it forgets little."""
    weight_decay: NotNegative = 0.01
    held_out: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """Share of the deals that are held out for measurements."""
    measured: Count = 3000
    """Most held-out positions for measurements."""
    checkpoint_every: Count = 500
    """Steps between two checkpoints, each with a measurement."""
    bf16: bool = False
    """Compute layers in bfloat16, and parameters, loss and steps in float32. Faster if the CPU supports it."""

    def __post_init__(self) -> None:
        if self.values + self.differences == 0:
            raise ValueError("one of values and differences must be positive")


class Fitter(Trainer):
    """``bothost train doudizhu-mcts fit``."""

    name = "doudizhu-mcts"
    Options: ClassVar[type[msgspec.Struct]] = Options
    evaluators: ClassVar[tuple[str, ...]] = ("teacher",)
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        options: Options = self.options
        if options.records is None:
            raise UsageError("a fit needs records", advice="give --records FOLDER")
        if options.epochs is None and run.minutes is None:
            raise UsageError("this fit has no stopping condition", advice="give --minutes M or --epochs N")
        return Fit(options, Path(options.records), run).train(report)

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
        return Fit(options, found, msgspec.structs.replace(run, start=start)).train(report)


class Fit:
    """Networks, their optimizer and what they learn from."""

    def __init__(self, options: Options, folder: Path, run: TrainingRun) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(run.seed)
        self.options, self.run = options, run
        self.net = Networks()
        self.net.start_with(run.start)
        rate = options.learning_rate or (FRESH_RATE if run.start is None else CONTINUED_RATE)
        self.optimizer = torch.optim.AdamW(
            self.net.parameters(), lr=rate, weight_decay=options.weight_decay, fused=True
        )
        self.progress = begun_or_resumed(run, VERSION, self.net, self.optimizer)
        self.progress.options = msgspec.to_builtins(msgspec.structs.replace(options, learning_rate=rate))
        teacher = run.evaluators.get("teacher")
        self.teacher = address_of(teacher) if teacher else None
        self.found = records.load(folder)
        self.samples = Samples(
            self.found, options.positions, options.candidates, options.half_visits, options.held_out, run.seed
        )
        self.held_out = HeldOut(self.found, self.samples, options.measured)
        self.rehearsal = Rehearsal(teacher, options.rehearsed, run.seed) if teacher else None

    def train(self, report: ReportProgress) -> dict[str, Any]:
        """Make steps until the epochs or the time are over, and publish the version."""
        progress, optimizer = self.progress, self.optimizer
        before, started = progress.seconds, time.monotonic()
        losses: list[float] = []
        with Metrics(self.run.out, after=progress.iteration, tensorboard=False) as metrics:
            while (part := self._part_done()) < 1.0:
                set_learning_rate(optimizer, optimizer.defaults["lr"] * (1.0 - part))
                losses.append(self._step())
                progress.seconds = before + time.monotonic() - started
                if self._part_done() >= 1.0 or progress.iteration % self.options.checkpoint_every == 0:
                    check_finite(self.net, progress.iteration)
                    figures = self.held_out.measure(self.net) | {"l1_train": float(np.mean(losses))}
                    epoch = progress.iteration / self.samples.steps
                    metrics.write(progress.iteration, {"epoch": epoch, "samples": progress.samples, **figures})
                    losses.clear()
                    checkpoint.save(self.run.out, progress, self.net, optimizer)
                    self._tell(report, f"epoch {epoch:.2f}, L1 {figures['l1']:.4f}")
        plot(read(metrics.path), PLOTTED, self.run.out / "training.png", x="epoch")
        return self._publish()

    def _step(self) -> float:
        """Make one gradient step. Returns the L1 of the records' values."""
        batch = self.samples.batch(self.progress.iteration)
        loss, l1 = loss_of(self.net, batch, self.options)
        if self.rehearsal is not None:
            loss = loss + self.rehearsal.loss(self.net, self.progress.iteration)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.progress.iteration += 1
        self.progress.samples += len(batch.values)
        return float(l1.detach())

    def _part_done(self) -> float:
        progress, epochs, minutes = self.progress, self.options.epochs, self.run.minutes
        by_epochs = progress.iteration / (epochs * self.samples.steps) if epochs else 0.0
        return max(by_epochs, progress.seconds / (60 * minutes) if minutes else 0.0)

    def _tell(self, report: ReportProgress, note: str) -> None:
        if self.options.epochs is not None:
            report(self.progress.iteration, note, int(np.ceil(self.options.epochs * self.samples.steps)))
        elif self.run.minutes is not None:
            report(int(self.progress.seconds), note, int(60 * self.run.minutes))

    def _publish(self) -> dict[str, Any]:
        """Write the version and its lineage to ``out/weights``, and return the figures."""
        run, progress, found = self.run, self.progress, self.found
        curve = read(run.out / "metrics.jsonl")
        final: Mapping[str, float] = curve[-1]
        rounded = {name: round(value, 4) for name, value in final.items() if name not in ("iteration", "samples")}
        minutes, deals = round(progress.seconds / 60, 2), len(set(found.deals))
        figures: dict[str, Any] = {"steps": progress.iteration, "samples": progress.samples, "minutes": minutes}
        figures |= {"records": len(found.actions), "positions": len(found), "deals": deals, **rounded}
        if self.teacher is not None:
            figures["teacher"] = self.teacher
        told = {
            **figures,
            "value": "2 P(win) - 1 of the side that moves; L1 on this scale, halve it for win probabilities",
            "constant": {name: round(value, 4) for name, value in self.held_out.constant.items()},
            "records_made_by": found.made_by,
            "l1_curve": [[round(point["epoch"], 2), round(point["l1"], 4)] for point in curve],
        }
        publish(run, progress, self.net, told)
        return {"out": str(run.out), **figures}


def loss_of(net: Networks, batch: Batch, options: Options) -> tuple[Tensor, Tensor]:
    """The loss of a batch of records, and the L1 of its values."""
    with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        out = net(batch.inputs, batch.roles)
    error, weight = out.float() - torch.from_numpy(batch.values), torch.from_numpy(batch.weights)
    owner, outcomes = torch.from_numpy(batch.inputs.owner), torch.from_numpy(batch.outcomes)
    # For results of hands use the square, which is minimal at their mean. L1 is minimal at their median, 1 or -1.
    distance = torch.where(outcomes, error.square(), error.abs())
    centred = (error - mean_of_position(error, weight, owner)).abs()
    loss = options.values * weighted_mean(distance, weight) + options.differences * weighted_mean(centred, weight)
    return loss, weighted_mean(error.abs(), weight)


def weighted_mean(distance: Tensor, weight: Tensor) -> Tensor:
    """The weighted mean over all records."""
    return (weight * distance).sum() / weight.sum()


def mean_of_position(error: Tensor, weight: Tensor, owner: Tensor) -> Tensor:
    """Shape of ``error``: for each record, the weighted mean error of its position's records."""
    positions = int(owner[-1]) + 1
    total = torch.zeros(positions).index_add(0, owner, weight * error)
    return (total / torch.zeros(positions).index_add(0, owner, weight))[owner]
