"""Positions with a teacher's values of candidate moves.

The teacher plays hands against itself. Some moves are random, and the rule player plays some seats, so that the
networks see more than good play. Chunk i depends on (seed, i) and the teacher only.

Processes that make chunks import this module and the teacher's. Neither imports torch, which takes two seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from contextlib import closing
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bothost import Evaluator
from bothost.rules import ActionArray, FloatArray, State, View, doudizhu, game
from bothost.training.devices import Device
from bothost.training.limits import Count, NotNegative, Positive, Share
from bothost.training.pool import WorkerPool
from bothost_doudizhu_mcts.ahead import in_order
from bothost_doudizhu_mcts.encode import encode, roles

AHEAD = 3
"""Number of chunks that each worker prepares in advance."""


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

    def _deal(self, rng: np.random.Generator) -> _TaughtHand:
        seats = rng.random(self.game.num_seats) < self.options.rule_seats
        return _TaughtHand(self.game.new_state(int(rng.integers(2**63))), seats)

    def _move(
        self, hand: _TaughtHand, view: View, legal: ActionArray, values: FloatArray | None, rng: np.random.Generator
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


class _TaughtHand(NamedTuple):
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
