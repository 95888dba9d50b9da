"""The first stage of training: the networks learn a teacher's values of candidate moves.

The teacher is a strategy that can value actions. It plays hands against itself. Some moves are random, and the rule
player plays some seats, so that the networks see more than good play. In each position they learn the values of the
teacher's best moves and of some random ones. No position is used twice.

Chunk i depends on (seed, i) and the teacher only. Other processes make the chunks.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
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
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.devices import Device, check_device
from bothost.training.loop import (
    Count,
    NotNegative,
    Positive,
    Share,
    begun_or_resumed,
    check_finite,
    set_learning_rate,
)
from bothost.training.metrics import FILE, Metrics, plot, read
from bothost.training.pool import WorkerPool
from bothost_doudizhu_mcts.ahead import in_order
from bothost_doudizhu_mcts.encode import PLANES, ROLES, SIDE, VERSION, encode, roles
from bothost_doudizhu_mcts.evaluated import address_of
from bothost_doudizhu_mcts.model import Networks, RoleNet, publish

AHEAD = 3
"""Number of chunks that each worker prepares in advance."""
HELD_OUT_SEED = 2**32
"""Seed of chunks of held-out deals. No training uses it."""
PLOTTED = ("l1", "l1_train", "regret", "best_move")


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


def chunks(teacher: Evaluator, options: Options, seed: int, first: int) -> Iterator[Chunk]:
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


class Part(NamedTuple):
    """The positions of one role in a batch, on the device that learns."""

    planes: Tensor
    moves: Tensor
    owner: Tensor
    """The inputs of ``RoleNet``."""
    values: Tensor
    best: Tensor


def parts(chunk: Chunk, rows: npt.NDArray[np.int64], *, shared: bool, device: str) -> dict[str, Part]:
    """Some positions of a chunk by role. ``shared``: all under the first role."""
    ends = np.cumsum(chunk.counts)
    found = {}
    for number, role in enumerate(ROLES[:1] if shared else ROLES):
        own = rows if shared else rows[chunk.roles[rows] == number]
        if not len(own):
            continue
        moves = np.concatenate([np.arange(ends[i] - chunk.counts[i], ends[i]) for i in own])
        owner = np.repeat(np.arange(len(own)), chunk.counts[own])
        packed = chunk.planes[own], chunk.moves[moves], owner, chunk.values[moves], chunk.best[own]
        planes, plane, *others = (torch.from_numpy(field).to(device) for field in packed)
        found[role] = Part(bits(planes, PLANES, SIDE, SIDE), bits(plane, 1, SIDE, SIDE), *others)
    return found


def bits(packed: Tensor, *shape: int) -> Tensor:
    """The bits (n, …) of bytes (n, k), highest first, as float32 (n, *shape)."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device)
    flat = ((packed[:, :, None] >> shifts) & 1).flatten(1)[:, : math.prod(shape)]
    return flat.float().view(-1, *shape)


def loss(net: RoleNet, part: Part, options: Options) -> tuple[Tensor, Tensor]:
    """The loss of a part, and the L1 of its values."""
    values, states = net(part.planes, part.moves, part.owner)
    error = values - part.values
    counts = torch.bincount(part.owner).float()
    centred = error - (torch.zeros_like(counts).index_add(0, part.owner, error) / counts)[part.owner]
    l1 = error.abs().mean()
    return l1 + options.differences * centred.abs().mean() + options.states * (states - part.best).abs().mean(), l1


class Distiller(Trainer):
    """``bothost train doudizhu-mcts distil``."""

    name = "doudizhu-mcts"
    Options: ClassVar[type[msgspec.Struct]] = Options
    evaluators: ClassVar[tuple[str, ...]] = ("teacher",)
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        options: Options = self.options
        if run.minutes is None and options.positions is None:
            raise UsageError("this training has no stopping condition", advice="give --minutes M or --positions N")
        check_device(options.device)
        teacher = run.evaluators["teacher"]
        torch.set_num_threads(1)
        torch.manual_seed(run.seed)
        nets = Networks().to(options.device)
        nets.start_with(run.start)
        optimizer = torch.optim.Adam(nets.parameters(), lr=options.learning_rate, fused=True)
        progress = begun_or_resumed(run, VERSION, nets, optimizer)
        progress.options = msgspec.to_builtins(options)
        if self._part_done(run, progress) < 1.0:  # else what resumes was stopped after its last checkpoint
            held_out = Source(teacher, options, HELD_OUT_SEED + run.seed).chunk(0, options.measured, every_move=True)
            self._fit(run, teacher, nets, optimizer, progress, held_out, report)
        plot(read(run.out / FILE), PLOTTED, run.out / "training.png")
        return _publish(run, nets, progress, teacher)

    def _fit(
        self,
        run: TrainingRun,
        teacher: Evaluator,
        nets: Networks,
        optimizer: torch.optim.Optimizer,
        progress: Progress,
        held_out: Chunk,
        report: ReportProgress,
    ) -> None:
        options: Options = self.options
        per_chunk = options.chunk // options.batch
        every = max(per_chunk, options.checkpoint_every // per_chunk * per_chunk)
        before, started = progress.seconds, time.monotonic()
        losses: list[float] = []
        with Metrics(run.out, after=progress.iteration, tensorboard=False) as metrics:
            for chunk in chunks(teacher, options, run.seed, progress.iteration // per_chunk):
                order = np.random.default_rng([run.seed, 1, progress.iteration]).permutation(len(chunk.counts))
                for rows in np.split(order, per_chunk):
                    part_done = self._part_done(run, progress)
                    set_learning_rate(optimizer, options.learning_rate * (1.0 - part_done))
                    shared = not options.start and part_done < options.shared
                    batch = parts(chunk, rows, shared=shared, device=options.device)
                    losses.append(_step(nets, optimizer, batch, options))
                    progress.iteration += 1
                    progress.samples += len(rows)
                    progress.seconds = before + time.monotonic() - started
                if shared:
                    nets.share()
                over = self._part_done(run, progress) >= 1.0
                if progress.iteration % every and not over:
                    continue
                check_finite(nets, progress.iteration)
                figures = measure(nets, held_out) | {"l1_train": float(np.mean(losses))}
                losses.clear()
                metrics.write(progress.iteration, {"samples": progress.samples, **figures})
                checkpoint.save(run.out, progress, nets, optimizer)
                note = f"{progress.samples:,} positions, L1 {figures['l1']:.4f}, regret {figures['regret']:.4f}"
                report(int(100 * self._part_done(run, progress)), note, 100)
                if over:
                    break

    def _part_done(self, run: TrainingRun, progress: Progress) -> float:
        """The completed part of the training, by time or positions, at most 1."""
        by_time = progress.seconds / (60 * run.minutes) if run.minutes else 0.0
        by_positions = progress.samples / self.options.positions if self.options.positions else 0.0
        return min(1.0, max(by_time, by_positions))


def _step(nets: Networks, optimizer: torch.optim.Optimizer, found: dict[str, Part], options: Options) -> float:
    """Make one gradient step. Returns the L1 of the values."""
    total = sum(len(part.best) for part in found.values())
    optimizer.zero_grad(set_to_none=True)
    l1 = 0.0
    for role, part in found.items():
        net = nets.of[role]
        assert isinstance(net, RoleNet)
        of_part, distance = loss(net, part, options)
        (of_part * (len(part.best) / total)).backward()  # type: ignore[no-untyped-call]
        l1 += float(distance.detach()) * len(part.best) / total
    torch.nn.utils.clip_grad_norm_(nets.parameters(), 1.0)
    optimizer.step()
    return l1


def measure(nets: Networks, chunk: Chunk, batch: int = 512) -> dict[str, float]:
    """Figures over held-out positions with all their moves.

    ``l1``; ``regret``, the loss in the teacher's values if the networks' best move is played; ``best_move``, the share
    of positions where that is the teacher's best move.
    """
    error = regret = 0.0
    agreed = moves = 0
    device = str(next(nets.parameters()).device)
    with torch.no_grad():
        for rows in np.array_split(np.arange(len(chunk.counts)), -(-len(chunk.counts) // batch)):
            for role, part in parts(chunk, rows, shared=False, device=device).items():
                found = nets.of[role](part.planes, part.moves, part.owner)[0]
                values, taught_values = found.cpu().numpy(), part.values.cpu().numpy()
                error += float(np.abs(values - taught_values).sum())
                moves += len(values)
                ends = np.cumsum(part.owner.bincount().cpu().numpy())[:-1]
                pairs = zip(np.split(values, ends), np.split(taught_values, ends), strict=True)
                for own, taught in pairs:
                    lost = float(taught.max() - taught[own.argmax()])
                    regret += lost
                    agreed += lost == 0.0
    positions = len(chunk.counts)
    return {"l1": error / moves, "regret": regret / positions, "best_move": agreed / positions}


def _publish(run: TrainingRun, nets: Networks, progress: Progress, teacher: Evaluator) -> dict[str, Any]:
    """Write the version and its lineage to ``out/weights``, and return the figures."""
    final = read(run.out / FILE)[-1]
    figures = {
        "steps": progress.iteration,
        "positions": progress.samples,
        "minutes": round(progress.seconds / 60, 2),
        **{name: round(float(final[name]), 4) for name in ("l1", "regret", "best_move")},
    }
    told = {**figures, "teacher": address_of(teacher), "value": "2 P(win) - 1 of the side that moves"}
    publish(run, progress, nets, told)
    return {"out": str(run.out), **figures}
