"""Self-play for method ``oracle``: threads step the hands, and a GPU or the processor computes the networks.

Both seats of a hand learn, or an earlier version has one of them. What was played stays on the device. Games release
the GIL while they step and encode, so threads do that; one thread calls torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bothost.rules import VecEnv, vec_env
from bothost.training import ppo
from bothost.training.rollout import RolloutTask, SelfPlayOptions
from bothost_phase_ppo.encode import ACTIONS, CANDIDATE, CARDS, POSITION
from bothost_phase_ppo.model import ActorCritic, CandidateNet

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


class Samples(NamedTuple):
    """k choices with m legal actions in all, on the device."""

    positions: Tensor
    """(k, 400) float16."""
    hidden: Tensor
    """(k, 104) float16."""
    legal: Tensor
    """(k, 58) bool."""
    candidates: Tensor
    """(m, 32) float16: inputs of the legal actions, choice by choice."""
    actions: Tensor
    """(k,) int64."""
    log_probs: Tensor
    """(k,) float32: of the actions when they were taken."""
    leads: Tensor
    """(k,) float32: the seat's scaled lead at the start of its turn. The network's value counts from there."""
    advantages: Tensor
    """(k,) float32."""
    returns: Tensor
    """(k,) float32: targets of the critic, λ-returns."""
    known: Tensor
    """(k,) bool: whether the seat chose again or the hand ended before the rollout did. Others teach nothing."""


class Step(NamedTuple):
    """What k choices of one step need for their advantages, in memory of the processor."""

    owners: Rows
    """(k,): 2 · hand + seat."""
    values: Floats
    ended: Rows
    """Hands that ended with this step."""
    counts: Floats
    """(len(ended), 2): how they count for each seat, scaled."""


def advantages(steps: Sequence[Step], hands: int, gae_lambda: float) -> list[tuple[Floats, npt.NDArray[np.bool_]]]:
    """Generalized advantages of each step's choices, and whether they are known.

    Only the end of a hand is rewarded, by how it counts, and nothing is discounted.
    """
    value, following = np.zeros(2 * hands, np.float32), np.zeros(2 * hands, np.float32)
    known = np.zeros(2 * hands, np.bool_)
    found = []
    for step in reversed(steps):
        over = (2 * step.ended[:, None] + np.arange(2)).reshape(-1)
        value[over], following[over], known[over] = step.counts.reshape(-1), 0.0, True
        owners = step.owners
        gained = value[owners] - step.values + gae_lambda * following[owners]
        found.append((gained, known[owners]))
        following[owners] = np.where(known[owners], gained, 0.0)
        value[owners], known[owners] = step.values, True
    return found[::-1]


class HandsAtOnce:
    """Many hands, which threads step and encode. Arrays have a row for each hand."""

    def __init__(self, task: RolloutTask, threads: int, each: int, *, pinned: bool) -> None:
        self.task, self.each, self.count = task, each, threads * each
        self.parts = [slice(i * each, (i + 1) * each) for i in range(threads)]
        self.threads = ThreadPoolExecutor(threads)
        self.envs: list[VecEnv] = []
        widths = {"observations": task.observation_size, "hidden": 2 * CARDS, "scores": 2}
        self.tensors = {name: torch.zeros((self.count, width), pin_memory=pinned) for name, width in widths.items()}
        self.tensors["legal"] = torch.zeros((self.count, ACTIONS), dtype=torch.bool, pin_memory=pinned)
        self.arrays: dict[str, npt.NDArray[Any]] = {name: tensor.numpy() for name, tensor in self.tensors.items()}
        self.seats, self.choice = np.zeros(self.count, np.int64), np.zeros(self.count, np.bool_)
        self.actions = np.zeros(self.count, np.int32)
        """What ``step`` does; ``look`` writes the only legal action where there is no choice."""
        self.done, self.returns = np.zeros(self.count, np.bool_), np.zeros((self.count, 2), np.float32)

    def deal(self, seeds: Sequence[int]) -> None:
        """Begin new hands."""
        self.envs = list(self.threads.map(lambda seed: vec_env(self.task.game, self.each, seed), seeds))

    def look(self) -> None:
        """Write what the asked seats see, and what the critic sees."""
        list(self.threads.map(self._look, self.envs, self.parts))

    def step(self) -> None:
        """Do ``actions``. Hands that end begin anew."""
        list(self.threads.map(self._step, self.envs, self.parts))

    def turns(self, rows: Rows) -> Floats:
        """Finished turns, scaled, of hands ``rows``."""
        found: Floats = self.arrays["observations"][rows, self.task.turns]
        return found

    def leads(self, rows: Rows) -> Floats:
        """Leads of the asked seats in hands ``rows``, as rewards count them."""
        scores = self.arrays["scores"][rows]
        found: Floats = np.float32(self.task.lead_weight) * (scores[:, 0] - scores[:, 1])
        return found

    def _look(self, env: VecEnv, part: slice) -> None:
        env.encode(self.task.observation, self.arrays["observations"][part])
        env.encode(self.task.scores, self.arrays["scores"][part])
        env.encode_oracle("hidden", self.arrays["hidden"][part].reshape(-1, 2, CARDS))
        env.legal_mask(self.arrays["legal"][part])
        self.seats[part], self.choice[part] = env.seat, np.diff(env.legal_offsets) > 1
        self.actions[part] = env.legal_ids[env.legal_offsets[:-1]]

    def _step(self, env: VecEnv, part: slice) -> None:
        env.step(self.actions[part])
        self.done[part], self.returns[part] = env.done, env.returns


class Inputs(NamedTuple):
    """The first four fields of ``Samples``."""

    positions: Tensor
    hidden: Tensor
    legal: Tensor
    candidates: Tensor

    def draw(self, actor: CandidateNet, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Actions (k,) drawn from the policy, and their log probabilities (k,)."""
        rows, actions = self.legal.nonzero(as_tuple=True)
        log_probs, _ = actor.policy(self.positions.float(), rows, actions, self.candidates.float())
        # The largest sum with noise of Gumbel's distribution is a draw.
        noise = torch.empty_like(log_probs).exponential_(generator=generator).clamp_(min=1e-20)
        chosen = (log_probs - noise.log()).argmax(dim=1)
        return chosen, log_probs.gather(1, chosen[:, None])[:, 0]


class DeviceSelfPlay:
    """Plays hands with networks on a device."""

    def __init__(self, task: RolloutTask, options: SelfPlayOptions, threads: int, device: torch.device) -> None:
        self.task, self.options, self.device = task, options, device
        self.hands = HandsAtOnce(task, threads, options.environments, pinned=device.type == "cuda")

    @torch.inference_mode()
    def play(
        self, model: ActorCritic, opponents: Sequence[CandidateNet | None], seeds: Sequence[int]
    ) -> tuple[Samples, Floats]:
        """Play ``horizon`` decisions of every hand. Returns the choices, and the leads of the first part's learner.

        In part i of the hands ``opponents[i]`` has a seat: seat 1 of those with even numbers, 0 of the others. Without
        an opponent both seats learn, and the leads are those of seat 0.
        """
        hands, scale = self.hands, np.float32(self.task.reward_scale)
        hands.deal(seeds)
        generator = torch.Generator(self.device).manual_seed(seeds[0] % 2**63)
        facing = np.repeat([net is not None for net in opponents], hands.each)
        own = facing * (np.arange(hands.count) % 2)
        turns = TurnLeads(hands.count)
        choices: list[tuple[Tensor, ...]] = []
        steps: list[Step] = []
        leads: list[Floats] = []
        with ppo.precision(self.options.ppo.bf16, self.device.type):
            for _ in range(self.options.horizon):
                hands.look()
                seen = {name: there.to(self.device, non_blocking=True) for name, there in hands.tensors.items()}
                others = hands.choice & facing & (hands.seats != own)
                self._answer(seen, opponents, others, generator)
                rows = np.flatnonzero(hands.choice & ~others)
                choice, values = self._choose(seen, model, rows, generator)
                owners = 2 * rows + hands.seats[rows]
                began = scale * turns.at(owners, hands.turns(rows), hands.leads(rows))
                choices.append((*choice, torch.from_numpy(began).to(self.device)))
                hands.step()
                ended = np.flatnonzero(hands.done)
                turns.forget(ended)
                leads.append(hands.returns[ended, own[ended]][ended < hands.each])
                steps.append(Step(owners, values, ended, scale * self.task.final(hands.returns[ended])))
        return self._samples(choices, steps), np.concatenate(leads)

    def _answer(
        self,
        seen: Mapping[str, Tensor],
        opponents: Sequence[CandidateNet | None],
        asked: npt.NDArray[np.bool_],
        generator: torch.Generator,
    ) -> None:
        """Let the opponents choose in hands where ``asked``."""
        for net, part in zip(opponents, self.hands.parts, strict=True):
            rows = part.start + np.flatnonzero(asked[part])
            if net is not None and len(rows):
                chosen, _ = self._inputs(seen, rows).draw(net, generator)
                self.hands.actions[rows] = chosen.cpu().numpy()

    def _choose(
        self, seen: Mapping[str, Tensor], model: ActorCritic, rows: Rows, generator: torch.Generator
    ) -> tuple[tuple[Tensor, ...], Floats]:
        """Let the learner choose in hands ``rows``. Returns the first six fields of ``Samples``, and the values."""
        inputs = self._inputs(seen, rows)
        chosen, log_probs = inputs.draw(model.actor, generator)
        values = model.critic(inputs.positions.float(), inputs.hidden.float())
        self.hands.actions[rows], valued = torch.stack([chosen.float(), values]).cpu().numpy()
        return (*inputs, chosen, log_probs), valued

    def _inputs(self, seen: Mapping[str, Tensor], rows: Rows) -> Inputs:
        """What the networks see in hands ``rows``."""
        index = torch.from_numpy(rows).to(self.device)
        observations, legal = seen["observations"][index], seen["legal"][index]
        candidates = observations[:, POSITION:].view(-1, ACTIONS, CANDIDATE)[legal]
        return Inputs(observations[:, :POSITION].half(), seen["hidden"][index].half(), legal, candidates.half())

    def _samples(self, choices: Sequence[tuple[Tensor, ...]], steps: Sequence[Step]) -> Samples:
        *played, began = (torch.cat(field) for field in zip(*choices, strict=True))
        gained, known = zip(*advantages(steps, self.hands.count, self.options.ppo.gae_lambda), strict=True)
        gains = np.concatenate(gained)
        targets = gains + np.concatenate([step.values for step in steps])
        estimated = (torch.from_numpy(array).to(self.device) for array in (gains, targets, np.concatenate(known)))
        return Samples._make((*played, began, *estimated))


class TurnLeads:
    """The lead of each seat of many hands at the start of its turn."""

    def __init__(self, hands: int) -> None:
        self._turn, self._lead = np.full(2 * hands, -1.0, np.float32), np.zeros(2 * hands, np.float32)

    def at(self, owners: Rows, turns: Floats, leads: Floats) -> Floats:
        """Those of seats ``owners`` (k,) that now decide in ``turns`` (k,) with ``leads`` (k,)."""
        new = turns != self._turn[owners]
        self._turn[owners[new]], self._lead[owners[new]] = turns[new], leads[new]
        return self._lead[owners]

    def forget(self, hands: Rows) -> None:
        """These hands ended."""
        self._turn[2 * hands], self._turn[2 * hands + 1] = -1.0, -1.0
