"""Expert iteration: the network imitates decisions that playouts improved.

Both seats of self-play are the network. Playouts by the rule player value every action of some of its choices, and the
network moves towards the better ones. The rule player has no seat, but the values assume that both seats go on like it.
So a network that learned from them has seen the rule player's policy.

Source of the method: Anthony, Tian, Barber, "Thinking Fast and Slow with Deep Learning and Tree Search",
arXiv:1705.08439 (2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor

from bothost.rules import FloatArray, Game
from bothost.rules.pairing import rule_returns
from bothost.training.loop import Iteration, Learner, Outcome, set_learning_rate
from bothost.training.ppo import Model, clip_gradients, masked_log_probs
from bothost.training.rollout import draw
from bothost_phase_ppo.encode import ACTIONS, BLOCKS, SIZES, WIN_POINTS, Symmetries, masks
from bothost_phase_ppo.model import PhaseNet


class ImproveOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of expert iteration."""

    hands: int = 256
    """Hands of self-play in each iteration."""
    share: float = 0.3
    """Share of the choices that playouts value. Choices of one hand are alike."""
    deals: int = 8
    """Playouts of each action. They are noisy, but the loss is linear in them, so noise averages out over positions."""
    temperature: float = 1.0
    """Points of value that are worth one nat of divergence from the policy at the beginning."""
    passes: int = 3
    """Samples learned from for each sample collected. They are drawn from the newest ``memory``."""
    memory: int = 200_000
    minibatch: int = 2048
    learning_rate: float = 5e-4
    """At the beginning. It falls linearly to 0 at the end."""

    def __post_init__(self) -> None:
        for name in ("hands", "deals", "passes", "memory", "minibatch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if not 0.0 < self.share <= 1.0 or not self.temperature > 0.0 or not self.learning_rate > 0.0:
            raise ValueError("share must be within 0 and 1, temperature and learning_rate positive")


class Improved(NamedTuple):
    """n choices, and what playouts said about them."""

    observations: Tensor
    """(n, size) float16: inputs are small numbers."""
    masks: Tensor
    """(n, 58) bool."""
    gains: Tensor
    """(n, 58): points by which an action is better than the policy at the beginning. 0 where illegal."""
    log_probs: Tensor
    """(n, 58): of the policy at the beginning."""
    values: Tensor
    """(n,): of the network at the beginning."""


class ExpertLearner(Learner):
    """Learns from playouts at positions of self-play."""

    plotted: ClassVar[tuple[str, ...]] = ("gain", "divergence", "value", "entropy")

    def __init__(
        self, options: ImproveOptions, game: Game, build: Callable[[], PhaseNet], version: int, seed: int
    ) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.options, self.game, self.block, self.size = options, game, BLOCKS[version], SIZES[version]
        self.model, self.first = build(), build()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate, eps=1e-5)
        self.symmetries, self.rotations = Symmetries(24, version), Symmetries(4, version)
        self.memory: list[Improved] = []

    def collect(self, iteration: Iteration) -> Improved:
        """Play hands, and value some of their choices."""
        iteration.pool.load(0, self.first)
        rng, options = iteration.rng, self.options
        states = [self.game.new_state(int(seed)) for seed in rng.integers(2**63, size=options.hands)]
        parts = []
        while states:
            views = [state.view(state.to_act[0]) for state in states]
            legal = [view.legal() for view in views]
            observations = np.empty((len(views), self.size), np.float32)
            for row, view in zip(observations, views, strict=True):
                view.encode(self.block, row)
            allowed = torch.from_numpy(masks(legal))
            with torch.inference_mode():
                logits, _ = self.model(torch.from_numpy(observations))
                actions = draw(masked_log_probs(logits, allowed), rng).tolist()
            choices = np.array([len(ids) > 1 for ids in legal])
            rows = np.flatnonzero(choices & (rng.random(len(views)) < options.share))
            if len(rows):
                worth = np.zeros((len(rows), ACTIONS), np.float32)
                for out, i in zip(worth, rows, strict=True):
                    leads = rule_returns(views[i], deals=options.deals, seed=int(rng.integers(2**63)))
                    out[legal[i]] = (leads + WIN_POINTS * np.sign(leads)).mean(axis=0)
                parts.append(self._improved(observations[rows], allowed[rows], torch.from_numpy(worth)))
            for state, action in zip(states, actions, strict=True):
                state.apply(state.to_act[0], action)
            states = [state for state in states if not state.terminal]
        return joined(parts)

    def _improved(self, observations: FloatArray, allowed: Tensor, worth: Tensor) -> Improved:
        count = len(self.rotations.actions)
        with torch.inference_mode():
            logits, values = self.first(torch.from_numpy(self.rotations.rename(observations)))
        back = torch.from_numpy(self.rotations.name_back(logits.numpy()))
        log_probs = torch.stack([masked_log_probs(back[:, s], allowed) for s in range(count)]).mean(dim=0)
        log_probs = masked_log_probs(log_probs, allowed)
        gains = (worth - (log_probs.exp() * worth).sum(dim=1, keepdim=True)) * allowed
        seen = torch.from_numpy(observations).half()
        return Improved(seen, allowed, gains, log_probs, values.reshape(-1, count).mean(dim=1))

    def update(self, iteration: Iteration, collected: Improved) -> Outcome:
        """Fit the network to what it remembers."""
        options, rng = self.options, iteration.rng
        self.memory.append(collected)
        while sum(len(part.values) for part in self.memory[1:]) >= options.memory:
            self.memory.pop(0)
        memory = joined(self.memory)
        rate = options.learning_rate * (1.0 - iteration.part_done)
        set_learning_rate(self.optimizer, rate)
        samples = len(collected.values)
        steps = max(1, options.passes * samples // options.minibatch)
        sums = np.zeros(4)
        for _ in range(steps):
            index = torch.from_numpy(rng.integers(len(memory.values), size=options.minibatch))
            batch = Improved(*(field.index_select(0, index) for field in memory))
            terms = losses(self.model, self._renamed(batch, int(rng.integers(24))), options.temperature)
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(terms[0])
            clip_gradients(self.model.parameters(), 0.5)
            self.optimizer.step()
            sums += [float(term.detach()) for term in terms[1:]]
        names = ("gain", "divergence", "value", "entropy")
        return Outcome(dict(zip(names, (sums / steps).tolist(), strict=True)), samples)

    def _renamed(self, batch: Improved, number: int) -> Improved:
        """The batch after a permutation of the colours."""
        features = torch.from_numpy(self.symmetries.features[number])
        order = torch.from_numpy(np.argsort(self.symmetries.actions[number]))
        return batch._replace(
            observations=batch.observations.float()[:, features],
            masks=batch.masks[:, order],
            gains=batch.gains[:, order],
            log_probs=batch.log_probs[:, order],
        )

    def note(self, figures: Any) -> str:
        """See ``Learner``."""
        return f"{figures['gain']:+.2f} points a choice by the playouts"


def losses(model: Model, batch: Improved, temperature: float) -> tuple[Tensor, ...]:
    """The loss, and its terms: gain in points, divergence and entropy in nats, squared error of the value.

    Its minimum is the first policy times exp(gain / temperature), normalised. It is linear in the gains.
    """
    logits, values = model(batch.observations)
    log_probs = masked_log_probs(logits, batch.masks)
    probs = log_probs.exp()
    gain = (probs * batch.gains).sum(dim=1).mean()
    divergence = (probs * (log_probs - batch.log_probs).clamp(-20.0, 20.0)).sum(dim=1).mean()
    value = (values - batch.values).square().mean()
    entropy = -(probs * log_probs).sum(dim=1).mean()
    return divergence - gain / temperature + value, gain, divergence, value, entropy


def joined(parts: list[Improved]) -> Improved:
    """All choices of the parts."""
    return Improved(*(torch.cat(fields) for fields in zip(*parts, strict=True)))
