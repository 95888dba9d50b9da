"""The networks of the roles, and how they learn from a round of self-play."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bothost.rules import Game
from bothost.training.action_values import NativeActionValues
from bothost_deep_mc.encode import ROLES
from bothost_deep_mc.experts import searched
from bothost_deep_mc.losses import difference_loss, experience_regularizer, reduction_loss, self_play_loss
from bothost_deep_mc.model import seeded
from bothost_deep_mc.options import Options
from bothost_deep_mc.selfplay import Decisions, Nets, Pairs


class Networks:
    """The networks and their optimizer. Hands are played by native copies on the processor."""

    def __init__(self, options: Options, seed: int) -> None:
        self.options = options
        self.model = seeded(options.sizes, seed).to(options.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate, eps=1e-5, fused=True)
        self.nets: Nets = {role: NativeActionValues(self.model.of(role)) for role in ROLES}

    def load(self) -> None:
        """Copy the present parameters to the native networks."""
        for net in self.nets.values():
            net.load()

    def learn(
        self,
        decisions: Mapping[str, Decisions],
        pairs: Mapping[str, Pairs],
        expert_weight: float,
        rng: np.random.Generator,
    ) -> dict[str, float]:
        """Learn from decisions and pairs of moves, by role. Returns the mean of each loss."""
        sums: dict[str, list[Tensor]] = {}
        for _ in range(self.options.epochs):
            for role in ROLES:
                if role not in decisions:
                    continue
                singles, both = Samples.of(decisions[role], self.options.device), None
                if role in pairs:
                    both = Samples.of(pairs[role], self.options.device).repeated(self.options.pair_epochs)
                for batch in minibatches(singles, both, self.options.minibatch, rng):
                    for name, value in self._step(role, batch, expert_weight, rng).items():
                        sums.setdefault(name, []).append(value)
        return {name: float(torch.stack(values).double().mean()) for name, values in sums.items()}

    def search(self, table: Game, seed: int) -> dict[str, Decisions]:
        """Decisions of the networks, with the moves of a search as the expert's."""
        options = self.options
        return searched(
            table,
            self.nets,
            options.searched_hands,
            options.search_iterations,
            others=options.play.others,
            seen=options.seen,
            seed=seed,
        )

    def _step(self, role: str, batch: Batch, expert_weight: float, rng: np.random.Generator) -> dict[str, Tensor]:
        options, net = self.options, self.nets[role]
        singles, pairs = batch
        if expert_weight == 0:  # only the moves that were played count
            singles = singles._replace(moves=singles.moves[:, :1])
        n, k = singles.moves.shape[:2]
        positions, moves = [singles.positions], [singles.moves.flatten(0, 1)]
        offsets = np.arange(0, n * k + 1, k)
        if pairs is not None:
            positions.append(pairs.positions)
            moves.append(pairs.moves.flatten(0, 1))
            offsets = np.concatenate([offsets, n * k + 2 * np.arange(1, len(pairs.returns) + 1)])
        values, representations = net(torch.cat(positions).float(), torch.cat(moves).float(), torch.from_numpy(offsets))
        own, returns = values[: n * k].view(n, k), singles.returns
        parts = {"loss": self_play_loss(own[:, 0], returns)}
        total: Tensor = parts["loss"]
        if pairs is not None:
            both, gained = values[n * k :].view(-1, 2), pairs.returns
            parts["difference"] = difference_loss(both[:, 0], both[:, 1], gained[:, 0], gained[:, 1])
            total = total + options.difference_weight * parts["difference"]
        if expert_weight > 0 and k > 1:
            parts["regularizer"] = experience_regularizer(
                own, own[:, 1], expert_margins(singles.moves, options.expert_margin)
            )
            total = total + expert_weight * parts["regularizer"]
        if options.reduction_weight > 0:
            played = representations[: n * k].view(n, k, -1)[:, 0]
            partners = torch.from_numpy(rng.integers(n, size=n)).to(returns.device)
            parts["reduction"] = reduction_loss(played, returns, partners, options.beta)
            total = total + options.reduction_weight * parts["reduction"]
        total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(net.net.parameters(), options.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        net.learned()
        return {name: part.detach() for name, part in parts.items()}


def expert_margins(moves: Tensor, margin: float) -> Tensor | float:
    """Margins (n, k) of moves (n, k, cells): 0 for the expert's move, which is in second place, else ``margin``."""
    if margin == 0.0:
        return 0.0
    return (moves != moves[:, 1:2]).any(dim=2).float() * margin


class Samples(NamedTuple):
    """``Decisions`` or ``Pairs`` on the device that learns."""

    positions: Tensor
    moves: Tensor
    returns: Tensor

    @classmethod
    def of(cls, found: Decisions | Pairs, device: str) -> Self:
        """Copy them to the device."""
        return cls(*(torch.from_numpy(field).to(device) for field in found))

    def take(self, rows: npt.NDArray[np.int64]) -> Samples:
        """Those of ``rows``, in this order."""
        index = torch.from_numpy(rows).to(self.returns.device)
        return Samples(*(field[index] for field in self))

    def repeated(self, times: int) -> Samples:
        """All of them, ``times`` times."""
        return self.take(np.tile(np.arange(len(self.returns)), times))


class Batch(NamedTuple):
    """A minibatch."""

    singles: Samples
    pairs: Samples | None


def minibatches(singles: Samples, pairs: Samples | None, size: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Split both into equal parts of about ``size`` decisions, in random order."""
    n = len(singles.returns)
    parts = max(1, round(n / size))
    order = np.array_split(rng.permutation(n), parts)
    others = np.array_split(rng.permutation(len(pairs.returns)), parts) if pairs is not None else [None] * parts
    for rows, more in zip(order, others, strict=True):
        found = None if pairs is None or more is None or not len(more) else pairs.take(more)
        yield Batch(singles.take(rows), found)
