"""The first stage of training: the networks learn a teacher's values of candidate moves.

The teacher is a strategy that can value actions. In each position of its hands the networks learn its values of its
best moves and of some random ones. No position is used twice. Other processes make chunks of positions (``source``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bothost import Evaluator, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.training.devices import check_device
from bothost.training.metrics import FILE, read
from bothost_doudizhu_mcts.encode import PLANES, SIDE
from bothost_doudizhu_mcts.evaluated import address_of
from bothost_doudizhu_mcts.learn import StepLearner
from bothost_doudizhu_mcts.model import Candidates, Networks, publish
from bothost_doudizhu_mcts.source import Chunk, Options, Source, chunks

STEPS = 32
"""Steps that share a chunk beside a fit."""
HELD_OUT_SEED = 2**32
"""Seed of chunks of held-out deals. No training uses it."""


class Taught(NamedTuple):
    """Some positions of a chunk, on the device that learns."""

    candidates: Candidates
    values: Tensor
    """(m,)"""
    best: Tensor
    """(n,)"""


def taught(chunk: Chunk, rows: npt.NDArray[np.int64], device: str, *, shared: bool = False) -> Taught:
    """These positions of a chunk. ``shared``: all as positions of the first role."""
    ends, counts = np.cumsum(chunk.counts)[rows], chunk.counts[rows]
    moves = np.concatenate([np.arange(end - count, end) for end, count in zip(ends, counts, strict=True)])
    roles = np.zeros_like(chunk.roles[rows]) if shared else chunk.roles[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    fields = chunk.planes[rows], chunk.moves[moves], owner, roles, chunk.values[moves], chunk.best[rows]
    planes, plane, owners, of, values, best = (torch.from_numpy(field).to(device) for field in fields)
    return Taught(Candidates(bits(planes, PLANES, SIDE, SIDE), bits(plane, 1, SIDE, SIDE), owners, of), values, best)


def bits(packed: Tensor, *shape: int) -> Tensor:
    """The bits (n, …) of bytes (n, k), highest first, as float32 (n, *shape)."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device)
    flat = ((packed[:, :, None] >> shifts) & 1).flatten(1)[:, : math.prod(shape)]
    return flat.float().view(-1, *shape)


class TeacherPositions:
    """Positions for each step. The steps share chunks, and no position is used twice."""

    def __init__(self, make: Callable[[int], Chunk], options: Options) -> None:
        """``make`` makes the chunk of a number. It is asked for one after another."""
        self.make, self.options = make, options
        self._made: tuple[int, Chunk] | None = None

    @classmethod
    def of(cls, teacher: Evaluator, positions: int, seed: int) -> TeacherPositions:
        """So many positions of a teacher for each step. They depend on the seed and the step's number only."""
        options = Options(batch=positions, chunk=STEPS * positions)
        return cls(Source(teacher, options, seed).chunk, options)

    def batch(self, step: int, *, shared: bool = False) -> Taught:
        """The positions of step number ``step``. ``shared``: see ``taught``."""
        options = self.options
        number, place = divmod(step, options.chunk // options.batch)
        if self._made is None or self._made[0] != number:
            self._made = number, self.make(number)
        rows = np.arange(place * options.batch, (place + 1) * options.batch)
        return taught(self._made[1], rows, options.device, shared=shared)


def loss(nets: Networks, batch: Taught, options: Options) -> tuple[Tensor, Tensor]:
    """The loss of a batch, and the L1 of its values."""
    values, states = nets(batch.candidates)
    error, owner = values - batch.values, batch.candidates.owner
    counts = torch.bincount(owner).float()
    centred = error - (torch.zeros_like(counts).index_add(0, owner, error) / counts)[owner]
    l1 = error.abs().mean()
    return l1 + options.differences * centred.abs().mean() + options.states * (states - batch.best).abs().mean(), l1


class Distiller(Trainer):
    """Teach the networks another strategy's values of moves."""

    name = "doudizhu-mcts"
    Options: ClassVar[type[msgspec.Struct]] = Options
    evaluators: ClassVar[tuple[str, ...]] = ("teacher",)
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        options: Options = self.options
        if run.minutes is None and options.positions is None:
            raise UsageError("this training has no stopping condition", advice="give --minutes M or --positions N")
        check_device(options.device)
        learner = Distillation(options, run)
        loop = learner.loop(options, report)
        teacher = run.evaluators["teacher"]
        with closing(chunks(teacher, options, run.seed, learner.done // (options.chunk // options.batch))) as made:
            learner.positions = TeacherPositions(lambda _: next(made), options)
            progress = loop.train()
        final = read(run.out / FILE)[-1]
        figures = {
            "steps": learner.done,
            "positions": progress.samples,
            "minutes": round(progress.seconds / 60, 2),
            **{name: round(float(final[name]), 4) for name in ("l1", "regret", "best_move")},
        }
        told = {**figures, "teacher": address_of(teacher), "value": "2 P(win) - 1 of the side that moves"}
        publish(run, progress, learner.model, told)
        return {"out": str(run.out), **figures}


class Distillation(StepLearner):
    """Networks that learn from a teacher."""

    plotted = ("l1", "l1_train", "regret", "best_move")
    positions: TeacherPositions

    def __init__(self, options: Options, run: TrainingRun) -> None:
        steps = None if options.positions is None else -(-options.positions // options.batch)
        make = partial(torch.optim.Adam, lr=options.learning_rate, fused=True)
        super().__init__(run, make, steps, options.checkpoint_every, options.device)
        self.options = options
        source = Source(run.evaluators["teacher"], options, HELD_OUT_SEED + run.seed)
        self.held_out = source.chunk(0, options.measured, every_move=True)

    def _shared(self, part_done: float) -> bool:
        """Whether the roles share one network then."""
        return not self.options.start and part_done < self.options.shared

    def loss(self, part_done: float) -> tuple[Tensor, Tensor, int]:
        batch = self.positions.batch(self.done, shared=self._shared(part_done))
        return *loss(self.model, batch, self.options), self.options.batch

    def step(self, part_done: float) -> tuple[float, int]:
        made = super().step(part_done)
        if self._shared(part_done):
            self.model.share()
        return made

    def measure(self) -> dict[str, float]:
        return measure(self.model, self.held_out)


def measure(nets: Networks, chunk: Chunk, batch: int = 512) -> dict[str, float]:
    """Figures over held-out positions with all their moves.

    ``l1``; ``regret``, the loss in the teacher's values if the networks' best move is played; ``best_move``, the share
    of positions where that is the teacher's best move.
    """
    positions, device = len(chunk.counts), str(next(nets.parameters()).device)
    found = []
    with torch.no_grad():
        for rows in np.array_split(np.arange(positions), -(-positions // batch)):
            found.append(nets(taught(chunk, rows, device).candidates)[0].cpu().numpy())
    values, ends = np.concatenate(found), np.cumsum(chunk.counts)[:-1]
    pairs = zip(np.split(values, ends), np.split(chunk.values, ends), strict=True)
    lost = np.array([wanted.max() - wanted[own.argmax()] for own, wanted in pairs])
    l1 = np.abs(values - chunk.values).mean()
    return {"l1": float(l1), "regret": float(lost.mean()), "best_move": float((lost == 0.0).mean())}
