"""Play rounds in this process or in many, on this machine or on a Ray cluster.

What worker w plays in round i depends only on (seed, i, w) and the networks. A worker that died plays its part again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from msgspec import Meta

from bothost.errors import UsageError
from bothost.rules import game
from bothost.training.action_values import NativeActionValues
from bothost.training.distributed import shares
from bothost.training.loop import LoopOptions
from bothost.training.processes import PendingCall, Process, Processes, retry_on_death
from bothost.training.runners import Runner, processes_of
from bothost_deep_mc.branches import merged_roles, play_round
from bothost_deep_mc.encode import ROLES
from bothost_deep_mc.model import DeepMcNet, Sizes
from bothost_deep_mc.selfplay import Nets, PlayOptions, Round

PRESET, BIDDING = "rlcard", "bidding"
"""Presets of the rules without and with bidding."""

Parameters = Mapping[str, npt.NDArray[Any]]


class EngineOptions(LoopOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where self-play runs."""

    runner: Runner = "local"
    """Where processes run: on this machine (local) or on a Ray cluster (ray)."""
    workers: Annotated[int, Meta(ge=0)] = 0
    """Processes that play, each a part of a round's hands. 0: do everything in this process."""
    ray_address: str | None = None
    """Address of the Ray cluster, such as auto. None: start Ray on this machine and stop it at the end."""
    timeout_s: Annotated[float, Meta(gt=0)] = 600.0
    """A process that takes longer for a round counts as dead."""


class Setup(msgspec.Struct, frozen=True):
    """The data that every process that plays is built from."""

    sizes: Sizes
    play: PlayOptions
    device: Literal["cpu"] = "cpu"
    timeout_s: float = 600.0


class Order(NamedTuple):
    """A part of a round to play."""

    seeds: tuple[int, int]
    """Seeds of the hands without and with bidding."""
    hands: tuple[int, int]
    """Numbers of hands without and with bidding."""
    expert_share: float
    imitate: bool
    keep_expert: bool
    branches: int


def play(order: Order, nets: Nets, setup: Setup) -> Round:
    """Play the order. The result depends only on the order and the networks."""
    # Calls are learned against players of equal strength: a bidder that met weaker ones would call too high.
    play_options = {PRESET: setup.play, BIDDING: msgspec.structs.replace(setup.play, habits=0.0)}
    parts = [
        play_round(
            game("doudizhu", preset=preset),
            nets,
            play_options[preset],
            hands=hands,
            seed=seed,
            seen=setup.sizes.seen,
            expert_share=order.expert_share,
            imitate=order.imitate,
            keep_expert=order.keep_expert,
            branches=order.branches,
        )
        for preset, hands, seed in zip((PRESET, BIDDING), order.hands, order.seeds, strict=True)
        if hands
    ]
    return merged(parts)


def merged(parts: Sequence[Round]) -> Round:
    """Merge the parts of a round."""
    return Round(
        merged_roles(part.decisions for part in parts),
        merged_roles(part.pairs for part in parts),
        sum(part.hands for part in parts),
        sum(part.asked for part in parts),
        float(np.mean([part.agreement for part in parts])),
    )


def _whole(answer: PendingCall) -> Round:
    """The part of a round that a worker played. Raises WorkerDied."""
    answer.receive()
    found: Round = answer.fetch()
    return found


class SelfPlayRole:
    """The role of a process that plays."""

    def __init__(self, setup: Setup) -> None:
        torch.set_num_threads(1)
        self._setup = setup
        self._model = DeepMcNet(setup.sizes)
        self._nets = {role: NativeActionValues(self._model.of(role)) for role in ROLES}

    def play(self, parameters: Parameters, order: Order) -> tuple[int, Round]:
        """Play the part of a round that these arguments determine. The receipt is its number of hands."""
        self._model.load_state_dict({name: torch.tensor(array) for name, array in parameters.items()})
        for net in self._nets.values():
            net.load()
        played = play(order, self._nets, self._setup)
        return played.hands, played


class Engine:
    """Plays rounds in this process or in workers, as the options ask."""

    def __init__(self, options: EngineOptions, setup: Setup, model: DeepMcNet, nets: Nets) -> None:
        """Raises UsageError for contradictory options."""
        if options.runner == "ray" and not options.workers:
            raise UsageError("--runner ray needs workers", advice="give --workers N")
        self._setup, self._model, self._nets = setup, model, nets
        self._processes: Processes | None = None
        self.workers: list[Process] = []
        if options.workers:
            self._processes = processes_of(options.runner, options.ray_address, cores=options.workers, device="cpu")
            self.workers = [self._processes.start(SelfPlayRole, setup) for _ in range(options.workers)]

    def play(self, order: Order, rng: np.random.Generator) -> Round:
        """Play a round. The hands depend on the number of workers."""
        if not self.workers:
            return play(order, self._nets, self._setup)
        orders = [
            order._replace(hands=hands, seeds=(int(rng.integers(2**63)), int(rng.integers(2**63))))
            for hands in zip(*(map(len, shares(hands, len(self.workers))) for hands in order.hands), strict=True)
        ]
        parameters = {name: tensor.cpu().numpy().copy() for name, tensor in self._model.state_dict().items()}
        asks = [
            (worker, partial(worker.ask, "play", parameters, part))
            for worker, part in zip(self.workers, orders, strict=True)
            if any(part.hands)  # with fewer hands than workers, some have none
        ]
        answers = [ask() for _, ask in asks]
        played = zip(asks, answers, strict=True)
        return merged([retry_on_death(worker, answer, ask, _whole) for (worker, ask), answer in played])

    def __enter__(self) -> Self:
        if self._processes is not None:
            self._processes.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._processes is not None:
            self._processes.__exit__(*error)
