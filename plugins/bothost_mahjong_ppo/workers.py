"""Training of mahjong-ppo in several processes. Each plays hands and learns from them, in step with the others.

What process w plays in iteration i depends only on (seed, i, w) and the network. Every gradient step is that of all
processes' samples (``bothost.training.distributed``).
"""

from __future__ import annotations

import time
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import torch

from bothost.training import distributed, roles
from bothost.training.loop import Iteration, Outcome
from bothost.training.ppo import Float, PpoOptions
from bothost.training.processes import Processes
from bothost.training.roles import Tensors
from bothost.training.trainers import Trainers
from bothost_mahjong_ppo.learn import MahjongLearner
from bothost_mahjong_ppo.options import Options
from bothost_mahjong_ppo.selfplay import CURRICULUM, Opponents, play


class Setup(msgspec.Struct, frozen=True):
    """The data that every process is built from."""

    options: Options
    device: Literal["cpu"] = "cpu"
    timeout_s: float = 600.0


class Order(NamedTuple):
    """One iteration of a process."""

    stage: int
    part_done: float
    seed: int
    order_seed: int
    """For the order of the samples."""
    hidden_share: float
    ppo: PpoOptions
    past: Tensors | None
    """Parameters of the past version among the opponents."""


class Learned(NamedTuple):
    """The receipt of an iteration."""

    figures: dict[str, float]
    """Of all processes together."""
    digest: str
    """sha256 of parameters and optimizer, equal for all processes."""
    scores: Float
    """Of this process's hands."""


class RolloutWorker(roles.Member):
    """The role of a process: plays and learns."""

    def __init__(self, setup: Setup) -> None:
        self._learner = MahjongLearner(setup.options, seed=0)  # a state is restored before it plays
        super().__init__(self._learner.model, self._learner.optimizer, setup.device, setup.timeout_s)

    def iterate(self, order: Order) -> tuple[Learned, roles.State | None]:
        """Play hands and make the update. The first process's payload is the new state."""
        began, learner = time.perf_counter(), self._learner
        if order.past is not None:
            learner.past.load_state_dict(roles.tensors(order.past))
        learner.set_rate(order.part_done)
        played = play(
            learner.game,
            learner.model,
            Opponents(CURRICULUM[order.stage], learner.past),
            learner.options.hands,
            order.seed,
            order.ppo,
            order.hidden_share,
            learner.buffer,
        )
        generator = torch.Generator().manual_seed(order.order_seed)
        figures = distributed.update(
            learner.model, learner.optimizer, [played.batch], order.ppo, [generator], self._group
        )
        receipt, state = self.updated(figures, began)
        return Learned(figures, receipt.digest, played.scores), state


class SharedLearner(MahjongLearner):
    """Gives the processes their tasks, and has a copy of their model."""

    def __init__(self, options: Options, seed: int, processes: Processes) -> None:
        super().__init__(options, seed)
        setup = Setup(options, timeout_s=options.timeout_s)
        self.trainers = Trainers(processes, RolloutWorker, setup, options.workers, self.model, self.optimizer)

    def iterate(self, iteration: Iteration) -> Outcome:
        """See ``Learner``. If a process died, repeat it from the same state."""
        seats, part_done = CURRICULUM[self.stage], iteration.part_done
        past = None
        if "past" in seats:
            iteration.pool.load(iteration.pool.draw(iteration.rng, self.options.newest_share), self.past)
            past = roles.arrays(self.past.state_dict())
        orders = []
        for worker in range(self.options.workers):
            rng = np.random.default_rng([self.seed, iteration.number, worker])
            seeds = int(rng.integers(2**62)), int(rng.integers(2**63))
            share = self.hidden_share(part_done)
            orders.append(Order(self.stage, part_done, *seeds, share, self._ppo.at(part_done), past))
        receipts: list[Any] = self.trainers.repeated(
            lambda: self.trainers.update("iterate", [(order,) for order in orders])
        )
        figures = dict(receipts[0].figures)
        samples = int(figures.pop("batch"))
        return self.outcome(iteration, figures, np.concatenate([of.scores for of in receipts]), samples)
