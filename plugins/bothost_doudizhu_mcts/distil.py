"""The first stage of training: the networks learn a teacher's values of candidate moves.

The teacher is a strategy that can value actions. It plays hands against itself. Some moves are random, and the rule
player plays some seats, so that the networks see more than good play. In each position they learn the values of the
teacher's best moves and of some random ones. No position is used twice.

Chunk i depends on (seed, i) and the teacher only. Other processes make the chunks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from msgspec import Meta
from torch import Tensor

from bothost import Evaluator, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.rules import ActionArray, FloatArray, State, View, doudizhu, game
from bothost.training.devices import Device, check_device
from bothost.training.loop import Count, NotNegative, Positive, Share
from bothost.training.pool import WorkerPool
from bothost_doudizhu_mcts.ahead import in_order
from bothost_doudizhu_mcts.encode import PLANES, SIDE, encode, roles
from bothost_doudizhu_mcts.evaluated import address_of
from bothost_doudizhu_mcts.learn import SteppedTraining
from bothost_doudizhu_mcts.model import Candidates, Networks, publish

AHEAD = 3
"""Number of chunks that each worker prepares in advance."""
STEPS = 32
"""Steps that share a chunk beside a fit."""
HELD_OUT_SEED = 2**32
"""Seed of chunks of held-out deals. No training uses it."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the distillation."""

    teacher: Annotated[str, Meta(min_length=1)] = "deep-mc"
    """Address of the strategy whose values the networks learn."""
    start: str = ""
    """Version whose parameters the training starts with, such as "doudizhu-mcts". Empty: random ones."""
    positions: Count | None = None
    """Total number of positions. None: until the time is over."""
    workers: Count = 1
    """Processes that make chunks."""
    device: Device = "cpu"
    """Where the networks learn. cuda gives equal results only within rounding."""
    hands: Count = 256
    """Hands played at the same time for a chunk."""
    chunk: Count = 8192
    """Positions of a chunk."""
    batch: Count = 256
    """Positions of a gradient step."""
    best: Count = 4
    """Number of candidates of a position with the teacher's highest values."""
    others: Annotated[int, Meta(ge=0)] = 4
    """Number of other candidates of a position, drawn uniformly."""
    random_moves: Share = 0.07
    """Share of the moves that are drawn from all legal ones."""
    rule_seats: Share = 0.15
    """Share of the seats that the rule player plays."""
    shared: Share = 0.25
    """Part of the training in which all roles share one network, which then has three times as many positions. None is
    shared if ``start`` is given."""
    differences: NotNegative = 2.0
    """Weight of the L1 of the differences between a position's candidates, which decide the play."""
    states: NotNegative = 0.25
    """Weight of the L1 of the positions' own values. The target is the value of the teacher's best move."""
    learning_rate: Positive = 1e-3
    """Initial learning rate. It falls linearly to 0 at the end."""
    measured: Count = 8192
    """Number of held-out positions for measurements."""
    checkpoint_every: Count = 1000
    """Steps between two checkpoints, each with a measurement."""

    def __post_init__(self) -> None:
        if self.chunk % self.batch:
            raise ValueError("chunk must be a multiple of batch")


class Chunk(NamedTuple):
    """Positions with some of their moves and the teacher's values."""

    planes: npt.NDArray[np.uint8]
    """(n, …): bits of ``Inputs.planes``."""
    moves: npt.NDArray[np.uint8]
    """(m, 29): bits of ``Inputs.moves``."""
    counts: npt.NDArray[np.int64]
    """(n,): moves of each position."""
    values: FloatArray
    """(m,)"""
    best: FloatArray
    """(n,): the highest value of all legal moves."""
    roles: npt.NDArray[np.int64]
    """(n,)"""


class Source:
    """Plays hands with the teacher, and gathers positions."""

    def __init__(self, teacher: Evaluator, options: Options, seed: int) -> None:
        self.teacher, self.options, self.seed = teacher, options, seed
        self.game = game("doudizhu", preset="rlcard")

    def chunk(self, number: int, positions: int | None = None, *, every_move: bool = False) -> Chunk:
        """Make chunk ``number``. ``positions``: by default ``options.chunk``. ``every_move``: with all legal moves."""
        rng = np.random.default_rng([self.seed, number])
        return self._packed(self.positions(rng, positions or self.options.chunk), rng, every_move)

    def positions(self, rng: np.random.Generator, count: int) -> list[tuple[View, ActionArray, FloatArray]]:
        """Play until there are so many positions with several legal moves: their views, moves and teacher's values."""
        hands = [self._deal(rng) for _ in range(self.options.hands)]
        views: list[View] = []
        legal: list[ActionArray] = []
        values: list[FloatArray] = []
        while len(views) < count:
            asked = [hand.state.view(hand.state.to_act[0]) for hand in hands]
            moves = [view.legal() for view in asked]
            choices = [i for i, actions in enumerate(moves) if len(actions) > 1]
            found = self.teacher.action_values([asked[i] for i in choices], [moves[i] for i in choices])
            valued = dict(zip(choices, found, strict=True))
            for i in choices:
                views.append(asked[i])
                legal.append(moves[i])
                values.append(np.asarray(valued[i], np.float32))
            for i, hand in enumerate(hands):
                hand.state.apply(asked[i].seat, self._move(hand, asked[i], moves[i], valued.get(i), rng))
                if hand.state.terminal:
                    hands[i] = self._deal(rng)
        return [(views[i], legal[i], values[i]) for i in rng.permutation(len(views))[:count]]

    def _deal(self, rng: np.random.Generator) -> _Hand:
        seats = rng.random(self.game.num_seats) < self.options.rule_seats
        return _Hand(self.game.new_state(int(rng.integers(2**63))), seats)

    def _move(
        self, hand: _Hand, view: View, legal: ActionArray, values: FloatArray | None, rng: np.random.Generator
    ) -> int:
        if values is None:
            return int(legal[0])
        if rng.random() < self.options.random_moves:
            return int(rng.choice(legal))
        return doudizhu.rule_choice(view)[0] if hand.rule[view.seat] else int(legal[values.argmax()])

    def _packed(
        self, positions: list[tuple[View, ActionArray, FloatArray]], rng: np.random.Generator, every_move: bool
    ) -> Chunk:
        views, legal, values = zip(*positions, strict=True)
        rows = [np.arange(len(v)) if every_move else self._some(v, rng) for v in values]
        inputs = encode(views, [actions[part] for actions, part in zip(legal, rows, strict=True)])
        return Chunk(
            np.packbits(inputs.planes.astype(np.bool_).reshape(len(views), -1), axis=1),
            np.packbits(inputs.moves.astype(np.bool_).reshape(len(inputs.moves), -1), axis=1),
            np.array([len(part) for part in rows]),
            np.concatenate([v[part] for v, part in zip(values, rows, strict=True)]),
            np.array([v.max() for v in values], np.float32),
            roles(views),
        )

    def _some(self, values: FloatArray, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Indices of the best moves and some others."""
        order = np.argsort(-values, kind="stable")
        best, rest = order[: self.options.best], order[self.options.best :]
        return np.concatenate([best, rng.permutation(rest)[: self.options.others]])


class _Hand(NamedTuple):
    state: State
    rule: npt.NDArray[np.bool_]
    """Seats that the rule player plays."""


def chunks(teacher: Evaluator, options: Options, seed: int, first: int) -> Generator[Chunk, None, None]:
    """Yield chunks from number ``first`` on, in order, made by ``options.workers`` processes."""
    ahead = AHEAD * options.workers
    build = partial(_source, type(teacher), teacher.options, teacher.model, options, seed)
    with (
        WorkerPool(options.workers, build, advice="continue the training: --resume") as pool,
        closing(in_order(lambda n: pool.submit(Source.chunk, n), itertools.count(first), ahead)) as made,
    ):
        yield from made


def _source(kind: type[Evaluator], settings: Any, model: Any, options: Options, seed: int) -> Source:
    return Source(kind(settings, model), options, seed)


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


class Lessons:
    """Positions for each step. The steps share chunks, and no position is used twice."""

    def __init__(self, make: Callable[[int], Chunk], options: Options) -> None:
        """``make`` makes the chunk of a number. It is asked for one after another."""
        self.make, self.options = make, options
        self._made: tuple[int, Chunk] | None = None

    @classmethod
    def of(cls, teacher: Evaluator, positions: int, seed: int) -> Lessons:
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
        return Distillation(options, run).train(report)


class Distillation(SteppedTraining):
    """Networks that learn from a teacher."""

    plotted = ("l1", "l1_train", "regret", "best_move")

    def __init__(self, options: Options, run: TrainingRun) -> None:
        super().__init__(run, options, partial(torch.optim.Adam, lr=options.learning_rate, fused=True), options.device)
        self.options = options
        self.teacher = run.evaluators["teacher"]
        source = Source(self.teacher, options, HELD_OUT_SEED + run.seed)
        self.held_out = source.chunk(0, options.measured, every_move=True)
        self.lessons: Lessons

    def part_of_work(self) -> float:
        return self.progress.samples / self.options.positions if self.options.positions else 0.0

    @property
    def shared(self) -> bool:
        """Whether the roles share one network now."""
        return not self.options.start and self.part_done() < self.options.shared

    def loss(self) -> tuple[Tensor, Tensor, int]:
        batch = self.lessons.batch(self.progress.iteration, shared=self.shared)
        return *loss(self.net, batch, self.options), self.options.batch

    def step(self, part_done: float) -> float:
        shared, l1 = self.shared, super().step(part_done)
        if shared:
            self.net.share()
        return l1

    def measure(self) -> dict[str, float]:
        return measure(self.net, self.held_out)

    def train(self, report: ReportProgress) -> dict[str, Any]:
        """Make the steps. Write the version and its lineage to ``out/weights``, and return the figures."""
        options, progress = self.options, self.progress
        first = progress.iteration // (options.chunk // options.batch)
        with closing(chunks(self.teacher, options, self.run.seed, first)) as made:
            self.lessons = Lessons(lambda _: next(made), options)
            final = self.make_steps(options.checkpoint_every, report)[-1]
        figures = {
            "steps": progress.iteration,
            "positions": progress.samples,
            "minutes": round(progress.seconds / 60, 2),
            **{name: round(float(final[name]), 4) for name in ("l1", "regret", "best_move")},
        }
        told = {**figures, "teacher": address_of(self.teacher), "value": "2 P(win) - 1 of the side that moves"}
        publish(self.run, progress, self.net, told)
        return {"out": str(self.run.out), **figures}


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
