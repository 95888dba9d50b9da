"""PPO in self-play with a critic that sees all cards, on a GPU or a CPU.

The critic sees the other hand and the order of the deck. So it knows some of the luck that is still to come, and
advantages are less noisy. They stay unbiased: the policy does not see those cards. Source of the idea: Pinto et al.,
"Asymmetric Actor Critic for Image-Based Robot Learning", arXiv:1710.06542 (2017).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import torch
from msgspec import Meta
from torch import Tensor, nn

from bothost.errors import UsageError
from bothost.training import ppo
from bothost.training.checkpoint import load_model
from bothost.training.devices import Device, check_device
from bothost.training.limits import Count
from bothost.training.loop import Iteration, Learner, Outcome, set_learning_rate
from bothost.training.model_pool import ModelPool
from bothost.training.rollout import RolloutTask, SelfPlayOptions, rollout_figures
from bothost_phase_ppo.model import ActorCritic, CandidateNet, Critic, listed
from bothost_phase_ppo.selfplay import DeviceSelfPlay, Samples


class OracleOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the method ``oracle``, beside those of self-play and PPO."""

    device: Device = "cpu"
    """Where the networks play and learn. cuda gives equal results only within rounding."""
    threads: Count = 1
    """Threads that play, each ``environments`` hands at once."""
    critic: Annotated[tuple[Count, ...], Meta(min_length=1)] = (1024, 1024)
    """Sizes of the critic's hidden layers. Only the training has a critic."""
    warm_up: Annotated[int, Meta(ge=0)] = 5
    """First iterations, in which only the critic learns."""


class OracleLearner(Learner):
    """Plays and learns on one device."""

    model: ActorCritic
    plotted: ClassVar[tuple[str, ...]] = ("start_win_rate", "entropy", "approx_kl", "explained_variance")

    def __init__(
        self,
        options: SelfPlayOptions,
        own: OracleOptions,
        task: RolloutTask,
        seed: int,
        build: Callable[[], CandidateNet] = CandidateNet,
    ) -> None:
        check_device(own.device)
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.options, self.own, self.task = options, own, task
        torch.backends.cuda.matmul.allow_tf32 = True  # precise enough for logits, and several times as fast
        self.device = torch.device(own.device)
        self.model = ActorCritic(build(), Critic(own.critic)).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.learning_rate, eps=1e-5, fused=True)
        self.self_play = DeviceSelfPlay(task, options, own.threads, self.device)
        self.opponents: dict[int, CandidateNet] = {}

    def load_start(self, file: Path) -> None:
        """Begin with the actor in a safetensors file."""
        load_model(file, self.model.actor)

    def copy(self) -> ActorCritic:
        """The networks in memory of the processor."""
        return copy.deepcopy(self.model).cpu()

    def collect(self, iteration: Iteration) -> tuple[Samples, dict[str, float]]:
        """Play. The first thread's hands are against the version at the beginning, to show the progress."""
        rng, pool, threads = iteration.rng, iteration.pool, self.own.threads
        drawn = [pool.draw(rng, self.options.newest_share) for _ in range(1, threads)]
        past = [0, *(version if version != pool.versions[-1] else None for version in drawn)]
        opponents = [None if version is None else self._opponent(version, pool) for version in past]
        began = time.monotonic()
        samples, leads = self.self_play.play(
            self.model, opponents, [int(seed) for seed in rng.integers(2**63, size=threads)]
        )
        seconds = time.monotonic() - began
        played = rollout_figures(leads, samples.actions.numel() / seconds)
        figures = {"start_lead": played["mean_lead"], "start_win_rate": played["win_rate"], "rollout_s": seconds}
        return samples, figures

    def _opponent(self, version: int, pool: ModelPool) -> CandidateNet:
        """An earlier version on the device. The first one is kept there, with some others."""
        if version not in self.opponents:
            if len(self.opponents) > self.own.threads:
                self.opponents = {0: self.opponents[0]}
            found = copy.deepcopy(self.model)
            pool.load(version, found)
            self.opponents[version] = found.actor
        return self.opponents[version]

    def update(self, iteration: Iteration, collected: tuple[Samples, dict[str, float]]) -> Outcome:
        """Make several epochs of gradient steps."""
        samples, figures = collected
        options = self.options.ppo.at(iteration.part_done)
        set_learning_rate(self.optimizer, self.options.learning_rate * (1.0 - iteration.part_done))
        known = samples.known.nonzero()[:, 0]
        if not len(known):
            raise UsageError("no seat chose twice in a rollout", advice="give a larger horizon, such as 128")
        gains = samples.advantages[known]
        figures["explained_variance"] = ppo.explained_variance(gains, samples.returns[known])
        samples = samples._replace(advantages=samples.advantages.index_put((known,), ppo.normalized(gains)))
        counts = samples.legal.sum(dim=1)
        begin = counts.cumsum(0) - counts
        generator = torch.Generator(self.device).manual_seed(int(iteration.rng.integers(2**63)))
        sums, steps, began = torch.zeros(6, device=self.device), 0, time.monotonic()
        for _ in range(options.epochs):
            order = known[torch.randperm(len(known), generator=generator, device=self.device)]
            for index in torch.split(order, options.minibatch):
                sums += self._descend(samples, begin, index, options, learning=iteration.number > self.own.warm_up)
                steps += 1
        names = ("policy", "value", "entropy", "approx_kl", "clip_fraction", "critic")
        figures |= dict(zip(names, (sums / steps).tolist(), strict=True))
        figures["update_s"] = time.monotonic() - began
        return Outcome(figures, len(known))

    def _descend(
        self, samples: Samples, begin: Tensor, index: Tensor, options: ppo.PpoOptions, *, learning: bool
    ) -> Tensor:
        """A gradient step on the choices at ``index``. Returns the terms of the losses."""
        positions = samples.positions[index].float()
        rows, actions, at = listed(samples.legal, begin, index)
        with ppo.precision(options.bf16, self.device.type):
            log_probs, values = self.model.actor.policy(positions, rows, actions, samples.candidates[at].float())
            judged = self.model.critic(positions, samples.hidden[index].float())
        log_ratio = log_probs.gather(1, samples.actions[index][:, None])[:, 0] - samples.log_probs[index]
        policy = ppo.clipped_policy_loss(log_ratio, samples.advantages[index], options.clip)
        value = ppo.value_loss(values, samples.returns[index] - samples.leads[index])
        entropy = ppo.entropy(log_probs).mean()
        critic = ppo.value_loss(judged, samples.returns[index])
        total = policy + options.value_coef * value - options.entropy_coef * entropy
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(total + critic if learning else critic)
        nn.utils.clip_grad_norm_(self.model.actor.parameters(), options.max_grad_norm)
        nn.utils.clip_grad_norm_(self.model.critic.parameters(), 1.0)
        self.optimizer.step()
        clipped = ((log_ratio.exp() - 1.0).abs() > options.clip).float().mean()
        return torch.stack([policy, value, entropy, ppo.approximate_kl(log_ratio), clipped, critic]).detach()

    def note(self, figures: Mapping[str, float]) -> str:
        """See ``Learner``."""
        return f"{figures['start_win_rate']:.1%} of hands won over the beginning"
