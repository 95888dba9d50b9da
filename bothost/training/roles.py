"""The three roles of a training in many processes: worker, trainer and model pool.

Each role is an object in its own process. The coordinator (:mod:`bothost.training.fleet`) calls its methods, which
return a receipt and a payload. The receipt is small and goes to the coordinator; the payload goes where it is needed.
Results depend only on arguments and restored state, so a process that died costs time but changes no result.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch._C._distributed_c10d import FileStore, Store, TCPStore

from bothost.training import checkpoint, distributed, ppo
from bothost.training.devices import Device
from bothost.training.loop import set_learning_rate
from bothost.training.packing import PackedRollout, pack, unpack
from bothost.training.ppo import Batch
from bothost.training.rollout import Build, RolloutTask, SelfPlay, SelfPlayOptions

Tensors = Mapping[str, npt.NDArray[Any]]
"""Parameters, or an optimizer's state, by name."""


class Setup(msgspec.Struct, frozen=True):
    """The data that every process of a training is built from."""

    task: RolloutTask
    build: Build
    """Importable by name, because other processes call it."""
    options: SelfPlayOptions
    device: Device = "cpu"
    timeout_s: float = 600.0
    """Seconds that trainers wait for each other."""


class State(NamedTuple):
    """The state that a trainer keeps between updates."""

    model: Tensors
    optimizer: Tensors


def state_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """A copy of the state of model and optimizer."""
    return State(arrays(model.state_dict()), arrays(checkpoint.optimizer_tensors(optimizer)))


def restore(state: State, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Restore model and optimizer."""
    model.load_state_dict(tensors(state.model))
    checkpoint.restore_optimizer(optimizer, tensors(state.optimizer))


class Played(NamedTuple):
    """Receipt of a rollout."""

    steps: int
    """Decisions of both sides."""
    seconds: float
    nbytes: int
    """Bytes of the packed rollout."""
    final_leads: npt.NDArray[np.float32]


class RolloutWorker:
    """Plays the learner against an opponent."""

    def __init__(self, setup: Setup) -> None:
        torch.set_num_threads(1)
        self._setup = setup
        self._learner, self._opponent = setup.build(), setup.build()
        self._play = SelfPlay(setup.task, setup.options.environments, setup.options.horizon)

    def play(self, seed: int, learner: Tensors, opponent: Tensors) -> tuple[Played, PackedRollout]:
        """Play the rollout that these arguments determine."""
        began = time.perf_counter()
        self._learner.load_state_dict(tensors(learner))
        self._opponent.load_state_dict(tensors(opponent))
        with ppo.precision(self._setup.options.ppo.bf16):
            rollout = self._play.collect(self._learner, self._opponent, seed)
        packed = pack(rollout)
        receipt = Played(rollout.steps, time.perf_counter() - began, packed.nbytes, packed.final_leads)
        return receipt, packed


class Updated(NamedTuple):
    """Receipt of an update."""

    figures: dict[str, float]
    digest: str
    """sha256 of parameters and optimizer, equal for all trainers."""
    seconds: float


class Member:
    """A process with model and optimizer that makes each update together with others."""

    def __init__(
        self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, device: Device, timeout_s: float
    ) -> None:
        self._model, self._optimizer = model, optimizer
        self._device, self._timeout_s = device, timeout_s
        self._group = distributed.Group()
        self._rank = 0
        self._store: Store | None = None

    def host(self, address: str) -> tuple[tuple[str, int], None]:
        """Open a store where members meet, at an address of this machine. Returns the address and its port."""
        self._store = TCPStore(address, 0, is_master=True, wait_for_workers=False)
        return (address, self._store.port), None

    def join(self, rank: int, size: int, meeting: Path | tuple[str, int] | None) -> tuple[None, None]:
        """Join the other members, by a new file that all can see or by the store of the first member."""
        store = self._store
        if isinstance(meeting, Path):
            store = FileStore(str(meeting), size)
        elif meeting is not None and rank > 0:
            store = TCPStore(*meeting, is_master=False)
        self._group = distributed.join(rank, size, store, self._device, self._timeout_s)
        self._rank = rank
        return None, None

    def restore(self, state: State) -> tuple[None, None]:
        """Set model and optimizer to ``state``."""
        restore(state, self._model, self._optimizer)
        return None, None

    def updated(self, figures: dict[str, float], began: float) -> tuple[Updated, State | None]:
        """Receipt and payload of an update that started at that ``perf_counter``. The first member's payload is the new
        state."""
        state = state_of(self._model, self._optimizer)
        receipt = Updated(figures, _digest(state), time.perf_counter() - began)
        return receipt, state if self._rank == 0 else None


class Trainer(Member):
    """Improves the model on its share of the rollouts, in step with the other trainers."""

    def __init__(self, setup: Setup) -> None:
        torch.set_num_threads(1)
        self._setup = setup
        model = setup.build().to(setup.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=setup.options.learning_rate, eps=1e-5, fused=True)
        super().__init__(model, optimizer, setup.device, setup.timeout_s)

    def update(
        self, part_done: float, seeds: list[int], others: list[Tensors], *rollouts: PackedRollout
    ) -> tuple[Updated, State | None]:
        """Update the model from this share of the rollouts.

        ``part_done``: part of the training that is done, within 0 and 1. ``seeds``: for the order of each rollout's
        samples. ``others``: extra samples for each rollout, as ``arrays``.
        """
        began = time.perf_counter()
        set_learning_rate(self._optimizer, self._setup.options.learning_rate * (1.0 - part_done))
        options = self._setup.options.ppo.at(part_done)
        batches = [unpack(rollout).batch(options) for rollout in rollouts]
        if others:
            beside = [Batch(**tensors(other)) for other in others]
            batches = [ppo.joined(batch, other) for batch, other in zip(batches, beside, strict=True)]
        batches = [Batch(*(field.to(self._setup.device) for field in batch)) for batch in batches]
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        figures = distributed.update(self._model, self._optimizer, batches, options, generators, self._group)
        return self.updated(figures, began)


class Pool:
    """Receives models from the coordinator and passes them to the workers."""

    def __init__(self, setup: Setup) -> None:
        self._expected = {name: tensor.shape for name, tensor in setup.build().state_dict().items()}

    def publish(self, version: int, parameters: Tensors) -> tuple[int, Tensors]:
        """Publish a version. Raises ValueError if the parameters are of another model or not finite."""
        for name, shape in self._expected.items():
            if name not in parameters or parameters[name].shape != shape or not np.isfinite(parameters[name]).all():
                raise ValueError(f"version {version} of the model is broken at {name}")
        return version, parameters


def arrays(named: Mapping[str, torch.Tensor]) -> Tensors:
    """Copies of tensors, to send to another process."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in named.items()}


def tensors(named: Tensors) -> dict[str, torch.Tensor]:
    """The inverse of ``arrays``."""
    return {name: torch.tensor(array) for name, array in named.items()}


def _digest(state: State) -> str:
    digest = hashlib.sha256()
    for part in state:
        for name in sorted(part):
            digest.update(name.encode() + part[name].tobytes())
    return digest.hexdigest()
