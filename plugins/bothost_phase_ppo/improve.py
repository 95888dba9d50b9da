"""Expert iteration: the network imitates decisions that playouts improved.

The first part of the training plays hands, with the network on both seats. Playouts by the rule player value the
actions that the network does not rule out, as at the table. The rest fits the network to all these values. The rule
player has no seat, but the values assume that both seats continue like it. So a network that learned from them has seen
the rule player's policy.

Source of the method: Anthony, Tian, Barber, "Thinking Fast and Slow with Deep Learning and Tree Search",
arXiv:1705.08439 (2017).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor

from bothost.errors import UsageError
from bothost.inference import legal_masks
from bothost.rules import Game, View
from bothost.rules.pairing import rule_returns
from bothost.training.limits import Count, Positive, Share
from bothost.training.loop import Iteration, Learner, Outcome, set_learning_rate
from bothost.training.ppo import clip_gradients
from bothost.training.rollout import draw
from bothost_phase_ppo.encode import ACTIONS, CANDIDATE, POSITION, WIN_POINTS, Symmetries, encode
from bothost_phase_ppo.model import CandidateNet, listed

HELD_OUT = 1
"""The first iterations, whose choices are not learned from: they measure the network."""


class ImproveOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of expert iteration. It trains the network with inputs per action."""

    collecting: Share = 0.7
    """Part of the training that collects choices. The rest learns from all of them. 1: collect for the option
    ``choices`` of other trainings; no version is written."""
    choices: str | None = None
    """Folder ``choices`` of another training from the same start. Then nothing is collected."""
    hands: Count = 256
    """Hands of self-play in an iteration that collects."""
    deals: Count = 24
    """Playouts of each action. They are noisy, but the loss is linear in them, so noise averages out over positions."""
    least_odds: Share = 0.005
    """Actions with less than this part of the first one's probability get no playouts."""
    others: Share = 0.2
    """Share kept of the choices with one such action. The network keeps its policy there."""
    temperature: Positive | None = 0.1
    """Points of value that are worth one nat of divergence from the policy at the beginning. null: imitate that policy
    alone, as a fresh network must before playouts improve it."""
    steps: Count = 100
    """Gradient steps in an iteration that learns."""
    minibatch: Count = 1024
    """Choices in a gradient step."""
    learning_rate: Positive = 1e-3
    """When learning begins. It falls linearly to 0 at the end."""


class Choices(NamedTuple):
    """n choices with m legal actions in all, and what playouts said about them."""

    positions: Tensor
    """(n, 400) float16: inputs are small numbers."""
    legal: Tensor
    """(n, 58) bool."""
    values: Tensor
    """(n,) float32: of the network at the beginning."""
    candidates: Tensor
    """(m, 32) float16: inputs of the legal actions, choice by choice."""
    gains: Tensor
    """(m,) float32: points by which an action is better than the policy at the beginning; 0 without playouts."""
    log_probs: Tensor
    """(m,) float32: of the policy at the beginning."""

    def save(self, file: Path) -> None:
        """Write them into a compressed file of NumPy arrays, all or nothing."""
        file.parent.mkdir(parents=True, exist_ok=True)
        building = file.with_name(f"{file.name}.part")
        with building.open("wb") as stream:
            np.savez_compressed(stream, **{name: field.numpy() for name, field in self._asdict().items()})
        building.replace(file)

    @classmethod
    def load(cls, file: Path) -> Choices:
        """Read what ``save`` wrote. Raises UsageError for any other file."""
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                return cls(*(torch.from_numpy(arrays[name]) for name in cls._fields))
        except (OSError, EOFError, ValueError, LookupError, TypeError, zipfile.BadZipFile, zlib.error) as error:
            raise UsageError(f"{file} holds no choices: {error}", advice="remove it, or name another folder") from error


class Seen(NamedTuple):
    """What the network sees of n choices with m legal actions in all."""

    positions: Tensor
    """(n, 400) float32."""
    rows: Tensor
    """(m,): to which choice each action belongs."""
    actions: Tensor
    """(m,)."""
    candidates: Tensor
    """(m, 32) float32."""

    def renamed(self, symmetries: Symmetries, number: int) -> Seen:
        """The same after a permutation of the colours."""
        inputs = torch.from_numpy(symmetries.features[number, :POSITION])
        actions = torch.from_numpy(symmetries.actions[number])[self.actions]
        return self._replace(positions=self.positions[:, inputs], actions=actions)


class Batch(NamedTuple):
    """n choices with m legal actions in all, to learn from."""

    seen: Seen
    values: Tensor
    """(n,)."""
    gains: Tensor
    """(m,)."""
    log_probs: Tensor
    """(m,)."""


class Memory:
    """All choices of several parts, in one piece."""

    def __init__(self, parts: Sequence[Choices]) -> None:
        self.all = Choices(*(torch.cat(fields) for fields in zip(*parts, strict=True)))
        counts = self.all.legal.sum(dim=1)
        self.begin = counts.cumsum(0) - counts

    def __len__(self) -> int:
        return len(self.begin)

    def batch(self, index: Tensor) -> Batch:
        """The choices at ``index`` (n,)."""
        chosen = self.all
        rows, actions, at = listed(chosen.legal, self.begin, index)
        seen = Seen(chosen.positions[index].float(), rows, actions, chosen.candidates[at].float())
        return Batch(seen, chosen.values[index], chosen.gains[at], chosen.log_probs[at])


class ExpertLearner(Learner):
    """Collects what playouts say about choices of self-play, then learns it."""

    model: CandidateNet
    plotted: ClassVar[tuple[str, ...]] = ("gain", "learned_gain", "divergence", "entropy")

    def __init__(
        self,
        options: ImproveOptions,
        game: Game,
        out: Path,
        seed: int,
        build: Callable[[], CandidateNet] = CandidateNet,
    ) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.options, self.game = options, game
        self.model, self.first = build(), build()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate, eps=1e-5, fused=True)
        self.symmetries, self.rotations = Symmetries(24), Symmetries(4)
        self.folder = out / "choices" if options.choices is None else Path(options.choices)
        self.collecting = options.collecting if options.choices is None else 0.0
        self.memory: tuple[Memory, Memory] | None = None

    def iterate(self, iteration: Iteration) -> Outcome:
        """Collect in the first part of the training, learn in the rest."""
        if iteration.part_done >= self.collecting:
            return self.update(iteration, None)
        found = self.collect(iteration)
        found.save(self.folder / f"{iteration.number:06d}.npz")
        return Outcome({"choices": len(found.values)}, 0)

    def collect(self, iteration: Iteration) -> Choices:
        """Play hands, and value the choices of both seats."""
        iteration.pool.load(0, self.first)
        rng = iteration.rng
        states = [self.game.new_state(int(seed)) for seed in rng.integers(2**63, size=self.options.hands)]
        parts = []
        while states:
            views = [state.view(state.to_act[0]) for state in states]
            ids = [view.legal() for view in views]
            actions = np.array([legal[0] for legal in ids])
            open_ = np.array([i for i, legal in enumerate(ids) if len(legal) > 1], np.int64)
            if len(open_):
                asked = [views[i] for i in open_]
                allowed = torch.from_numpy(legal_masks([ids[i] for i in open_], ACTIONS))
                observations = torch.from_numpy(encode(asked))
                found, log_probs = self.valued(asked, observations, allowed, rng)
                parts.append(found)
                actions[open_] = draw(log_probs, rng)
            for state, action in zip(states, actions.tolist(), strict=True):
                state.apply(state.to_act[0], action)
            states = [state for state in states if not state.terminal]
        return Memory(parts).all

    def valued(
        self, views: Sequence[View], observations: Tensor, allowed: Tensor, rng: np.random.Generator
    ) -> tuple[Choices, Tensor]:
        """The choices that are kept, with the gains of their actions; and the policy's log probabilities (n, 58)."""
        rows, actions = allowed.nonzero(as_tuple=True)
        candidates = observations[:, POSITION:].view(-1, ACTIONS, CANDIDATE)[allowed]
        seen = Seen(observations[:, :POSITION], rows, actions, candidates)
        log_probs, values = averaged(self.first, seen, self.rotations)
        probs = log_probs.exp()
        likely = allowed & (probs >= self.options.least_odds * probs.amax(dim=1, keepdim=True))
        contested = likely.sum(dim=1) > 1
        gains = torch.zeros(allowed.shape)
        for i in contested.nonzero()[:, 0].tolist():
            tried = likely[i].nonzero()[:, 0]
            seed = int(rng.integers(2**63))
            leads = rule_returns(views[i], deals=self.options.deals, seed=seed, actions=tried.int().numpy())
            worth = torch.from_numpy((leads + WIN_POINTS * np.sign(leads)).mean(axis=0))
            odds = probs[i, tried]
            gains[i, tried] = worth - (odds * worth).sum() / odds.sum()
        kept = contested | torch.from_numpy(rng.random(len(views)) < self.options.others)
        among = kept[rows]
        choices = Choices(
            seen.positions[kept].half(),
            allowed[kept],
            values[kept],
            candidates[among].half(),
            gains[rows, actions][among],
            log_probs[rows, actions][among],
        )
        return choices, log_probs

    def memories(self) -> tuple[Memory, Memory]:
        """The choices to learn from, and those held out. Raises UsageError if there are too few."""
        if self.memory is None:
            parts = [Choices.load(file) for file in sorted(self.folder.glob("*.npz"))]
            if len(parts) <= HELD_OUT:
                raise UsageError(
                    f"{self.folder} has choices of {len(parts)} iterations, and {HELD_OUT + 1} are needed",
                    advice="give a larger improve.collecting, or with improve.choices the folder of a longer training",
                )
            self.memory = Memory(parts[HELD_OUT:]), Memory(parts[:HELD_OUT])
            if not all(map(len, self.memory)):
                raise UsageError(
                    f"{self.folder} has too few choices that playouts value",
                    advice="lower improve.least_odds, or raise improve.others or improve.hands",
                )
        return self.memory

    def update(self, iteration: Iteration, collected: None) -> Outcome:
        """Make gradient steps on minibatches of all choices."""
        options, rng = self.options, iteration.rng
        memory, _ = self.memories()
        left = (1.0 - iteration.part_done) / (1.0 - self.collecting)
        set_learning_rate(self.optimizer, options.learning_rate * left)
        sums = np.zeros(3)
        for _ in range(options.steps):
            index = torch.from_numpy(rng.integers(len(memory), size=options.minibatch))
            batch = memory.batch(index)
            batch = batch._replace(seen=batch.seen.renamed(self.symmetries, int(rng.integers(24))))
            terms = losses(self.model, batch, options.temperature)
            self.optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(terms[0])
            clip_gradients(self.model.parameters(), 0.5)
            self.optimizer.step()
            sums += [float(term.detach()) for term in terms[1:]]
        figures = dict(zip(("learned_gain", "divergence", "entropy"), (sums / options.steps).tolist(), strict=True))
        return Outcome(figures, options.steps * options.minibatch)

    def evaluate(self, iteration: Iteration, *, last: bool) -> dict[str, float]:
        """Mean gain of the most probable action over choices that were not learned from."""
        if iteration.part_done < self.collecting:
            return {}
        _, held_out = self.memories()
        batch = held_out.batch(torch.arange(len(held_out)))
        return {"gain": float(chosen_gains(self.model, batch, self.rotations).mean())}

    def note(self, figures: Mapping[str, float]) -> str:
        """See ``Learner``."""
        if "choices" in figures:
            return f"{figures['choices']:.0f} choices collected"
        return f"{figures['gain']:+.3f} points a choice by playouts that it has not seen"


def losses(model: CandidateNet, batch: Batch, temperature: float | None) -> tuple[Tensor, ...]:
    """The loss, and its terms: gain in points, divergence and entropy in nats.

    Its minimum is the first policy times exp(gain / temperature), normalised. It is linear in the gains. Without a
    temperature it is the cross-entropy, whose minimum is the first policy. The divergence would leave actions out that
    a fresh network finds unlikely. The squared error of the value is a part of either.
    """
    log_probs, values = model.among(*batch.seen)
    probs, choices = log_probs.exp(), len(batch.values)
    gain = (probs * batch.gains).sum() / choices
    divergence = (probs * (log_probs - batch.log_probs).clamp(-20.0, 20.0)).sum() / choices
    entropy = -(probs * log_probs).sum() / choices
    if temperature is None:
        policy = -(batch.log_probs.exp() * log_probs).sum() / choices
    else:
        policy = divergence - gain / temperature
    value = (values - batch.values).square().mean()
    return policy + value, gain, divergence, entropy


@torch.inference_mode()
def averaged(model: CandidateNet, seen: Seen, symmetries: Symmetries) -> tuple[Tensor, Tensor]:
    """Log probabilities (n, 58), -1e9 for illegal actions, and values (n,): means over permutations, as in play."""
    sums, values = torch.zeros(len(seen.actions)), torch.zeros(len(seen.positions))
    count = len(symmetries.actions)
    for number in range(count):
        log_probs, found = model.among(*seen.renamed(symmetries, number))
        sums += log_probs
        values += found
    none = torch.full((len(values), ACTIONS), -1e9)
    return none.index_put((seen.rows, seen.actions), sums / count).log_softmax(dim=1), values / count


@torch.inference_mode()
def chosen_gains(model: CandidateNet, batch: Batch, rotations: Symmetries) -> Tensor:
    """Gains (n,) of the most probable actions."""
    policy, _ = averaged(model, batch.seen, rotations)
    gains = torch.zeros_like(policy).index_put((batch.seen.rows, batch.seen.actions), batch.gains)
    return gains.gather(1, policy.argmax(dim=1, keepdim=True))[:, 0]
