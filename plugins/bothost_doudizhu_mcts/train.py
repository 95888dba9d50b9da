"""Fits the networks to records by weighted L1, on deals that are not held out, for some epochs or minutes.

Records of searches are few, and often of contested positions alone. A network that learns from nothing else forgets
what it knows of others. So with a teacher each step also learns its values of other positions, as in the first stage.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import torch
from msgspec import Meta
from torch import Tensor

from bothost import LoggedGames, Model, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.training.limits import Count, NotNegative, Positive
from bothost.training.metrics import FILE, read
from bothost_doudizhu_mcts import distil, logged, records
from bothost_doudizhu_mcts.evaluated import address_of
from bothost_doudizhu_mcts.learn import StepLearner
from bothost_doudizhu_mcts.measure import HeldOut
from bothost_doudizhu_mcts.model import Networks, publish
from bothost_doudizhu_mcts.records import Records
from bothost_doudizhu_mcts.samples import Batch, Samples

FRESH_RATE, CONTINUED_RATE = 2e-3, 2e-4
"""Initial learning rates."""
NOT_ROUNDED = ("iteration", "samples", "steps", "seconds")
"""Metrics that are counts, or told otherwise."""


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
    """That of AdamW."""
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
    """Fit the networks to records."""

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
        return fit(options, Path(options.records), run, report)

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
        return fit(options, found, msgspec.structs.replace(run, start=start), report)


def fit(options: Options, folder: Path, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
    """Fit the networks. Write the version and its lineage to ``out/weights``, and return the figures."""
    found = records.load(folder)
    learner = Fit(options, found, run)
    progress = learner.loop(learner.options, report).train()
    curve = [record for record in read(run.out / FILE) if "l1" in record]
    rounded = {name: round(value, 4) for name, value in curve[-1].items() if name not in NOT_ROUNDED}
    minutes, deals = round(progress.seconds / 60, 2), len(set(found.deals))
    figures: dict[str, Any] = {"steps": learner.done, "samples": progress.samples, "minutes": minutes}
    figures |= {"records": len(found.actions), "positions": len(found), "deals": deals, **rounded}
    if "teacher" in run.evaluators:
        figures["teacher"] = address_of(run.evaluators["teacher"])
    told = {
        **figures,
        "value": "2 P(win) - 1 of the side that moves; L1 on this scale, halve it for win probabilities",
        "constant": {name: round(value, 4) for name, value in learner.held_out.constant.items()},
        "records_made_by": found.made_by,
        "l1_curve": [[round(point["epoch"], 2), round(point["l1"], 4)] for point in curve],
    }
    publish(run, progress, learner.model, told)
    return {"out": str(run.out), **figures}


class Fit(StepLearner):
    """Networks, their optimizer and what they learn from."""

    plotted = ("l1", "l1_train", "l1_well_visited", "best_move", "regret")

    def __init__(self, options: Options, found: Records, run: TrainingRun) -> None:
        self.samples = Samples(
            found, options.positions, options.candidates, options.half_visits, options.held_out, run.seed
        )
        steps = None if options.epochs is None else math.ceil(options.epochs * self.samples.steps)
        rate = options.learning_rate or (FRESH_RATE if run.start is None else CONTINUED_RATE)
        adam = partial(torch.optim.AdamW, lr=rate, weight_decay=options.weight_decay, fused=True)
        super().__init__(run, adam, steps, options.checkpoint_every)
        self.options = msgspec.structs.replace(options, learning_rate=rate)
        teacher = run.evaluators.get("teacher")
        self.held_out = HeldOut(found, self.samples, options.measured)
        self.rehearsed = distil.TeacherPositions.of(teacher, options.rehearsed, run.seed) if teacher else None

    def loss(self, part_done: float) -> tuple[Tensor, Tensor, int]:
        batch = self.samples.batch(self.done)
        loss, l1 = loss_of(self.model, batch, self.options)
        if self.rehearsed is not None:
            lesson = self.rehearsed.batch(self.done)
            loss = loss + distil.loss(self.model, lesson, self.rehearsed.options)[0]
        return loss, l1, len(batch.values)

    def measure(self) -> dict[str, float]:
        return {"epoch": self.done / self.samples.steps, **self.held_out.measure(self.model)}


def loss_of(net: Networks, batch: Batch, options: Options) -> tuple[Tensor, Tensor]:
    """The loss of a batch of records, and the L1 of its values."""
    with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
        error = net(batch.candidates)[0] - batch.values
    weight, owner = batch.weights, batch.candidates.owner
    # For results of hands use the square, which is minimal at their mean. L1 is minimal at their median, 1 or -1.
    distance = torch.where(batch.outcomes, error.square(), error.abs())
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
