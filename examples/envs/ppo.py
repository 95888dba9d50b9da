"""PPO with action masks in one file, in the style of CleanRL: a network learns a game against random opponents.

    pip install "bothost[envs,train]"
    python examples/envs/ppo.py --total-timesteps 300000

``BatchEnv`` steps the hands, so no Python code runs per hand. The measurement plays deals that the training never sees.
Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017); Huang and Ontañón, "A Closer Look at Invalid
Action Masking in Policy Gradient Algorithms" (2022).
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from bothost.envs import BatchEnv


@dataclass
class Args:
    game: str = "othello"
    """game to learn"""
    opponents: str = "random"
    """who plays the other seats: random, or rule where the game has a native rule player"""
    total_timesteps: int = 300_000
    """decisions of the learner"""
    num_envs: int = 64
    """hands at once"""
    num_steps: int = 128
    """decisions of each environment between two updates"""
    learning_rate: float = 5e-4
    """of Adam, falling to zero"""
    gae_lambda: float = 0.95
    """of generalized advantage estimation; rewards are not discounted, as each hand ends with one score"""
    update_epochs: int = 4
    """passes over a rollout"""
    num_minibatches: int = 8
    """parts of a pass"""
    clip_coef: float = 0.2
    """PPO's clipping of the probability ratio"""
    ent_coef: float = 0.01
    """weight of the entropy"""
    vf_coef: float = 0.5
    """weight of the value loss"""
    max_grad_norm: float = 0.5
    """clipping of the gradient"""
    evaluations: int = 5
    """measurements during the training, after the one before it"""
    hands: int = 1000
    """hands of a measurement"""
    plot: str = ""
    """file of a picture of the win rate over time, such as wins.png; empty: none"""
    seed: int = 1
    """of deals, actions and weights"""


class Agent(nn.Module):
    """Two networks: the policy's logits, and the value of a position."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, actions)
        )
        self.critic = nn.Sequential(
            nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1)
        )
        nn.init.orthogonal_(self.actor[-1].weight, 0.01)

    def policy(self, observation: torch.Tensor, mask: torch.Tensor) -> Categorical:
        """The distribution over the legal actions."""
        return Categorical(logits=self.actor(observation).masked_fill(~mask, -1e9), validate_args=False)

    def value(self, observation: torch.Tensor) -> torch.Tensor:
        return self.critic(observation).squeeze(-1)


def tensors(observation: np.ndarray, info: dict) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.as_tensor(observation).flatten(1), torch.as_tensor(info["action_mask"])


@torch.no_grad()
def measure(agent: Agent, args: Args) -> tuple[float, float]:
    """Win rate of the learner's most probable actions with half the width of its 95 % interval; a draw is half a win.

    Every environment plays equally many hands: the first ones to end would be the short ones.
    """
    env = BatchEnv(args.game, args.num_envs, args.opponents)
    each = math.ceil(args.hands / args.num_envs)
    played, wins = np.zeros(args.num_envs, int), []
    observation, mask = tensors(*env.reset(seed=args.seed + 1_000_000))
    while played.min() < each:
        actions = agent.policy(observation, mask).probs.argmax(1)
        position, rewards, done, _, info = env.step(actions.numpy())
        wins += (np.sign(rewards[done & (played < each)]) / 2 + 0.5).tolist()
        played += done
        observation, mask = tensors(position, info)
    return float(np.mean(wins)), 1.96 * float(np.std(wins, ddof=1)) / math.sqrt(len(wins))


def advantages_of(
    rewards: torch.Tensor, dones: torch.Tensor, values: torch.Tensor, following: torch.Tensor, gae_lambda: float
) -> torch.Tensor:
    """Generalized advantage estimation, (steps, envs). ``following``, (envs,): the values after the last step.

    A hand that ended has no value behind it.
    """
    advantages, advantage = torch.zeros_like(rewards), torch.zeros_like(following)
    for step in reversed(range(len(rewards))):
        goes_on = 1.0 - dones[step]
        delta = rewards[step] + following * goes_on - values[step]
        advantages[step] = advantage = delta + gae_lambda * goes_on * advantage
        following = values[step]
    return advantages


def update(agent: Agent, optimizer: torch.optim.Optimizer, rollout: list[torch.Tensor], args: Args) -> None:
    """Learn from a rollout: observations, masks, actions, log probabilities, advantages and returns, one row each."""
    for _ in range(args.update_epochs):
        for rows in torch.randperm(len(rollout[0])).chunk(args.num_minibatches):
            seen, legal, taken, old, gained, target = (part[rows] for part in rollout)
            policy = agent.policy(seen, legal)
            ratio = (policy.log_prob(taken) - old).exp()
            gained = (gained - gained.mean()) / (gained.std() + 1e-8)
            clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
            policy_loss = -torch.min(gained * ratio, gained * clipped).mean()
            value_loss = 0.5 * (agent.value(seen) - target).square().mean()
            loss = policy_loss - args.ent_coef * policy.entropy().mean() + args.vf_coef * value_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()


def train(args: Args) -> list[tuple[int, float, float]]:
    """Train, and print a line for each measurement. Returns (decisions, win rate, half its interval) of each."""
    torch.manual_seed(args.seed)
    env = BatchEnv(args.game, args.num_envs, args.opponents)
    inputs = int(np.prod(env.single_observation_space.shape))
    agent = Agent(inputs, env.action_set.n)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    curve: list[tuple[int, float, float]] = []

    def evaluate(decisions: int) -> None:
        wins, half = measure(agent, args)
        curve.append((decisions, wins, half))
        low, high = max(0.0, wins - half), min(1.0, wins + half)
        print(f"{decisions:>9,} decisions: wins {wins:.1%}, 95 % {low:.1%} … {high:.1%}", flush=True)

    evaluate(0)
    shape = (args.num_steps, args.num_envs)
    observations, masks = torch.zeros(*shape, inputs), torch.zeros(*shape, env.action_set.n, dtype=torch.bool)
    actions, logprobs = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
    rewards, dones, values = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    observation, mask = tensors(*env.reset(seed=args.seed))
    batch = args.num_steps * args.num_envs
    updates = max(1, args.total_timesteps // batch)
    measured_after = {updates * part // args.evaluations for part in range(1, args.evaluations + 1)}
    for nth in range(updates):
        optimizer.param_groups[0]["lr"] = (1.0 - nth / updates) * args.learning_rate
        for step in range(args.num_steps):
            observations[step], masks[step] = observation, mask
            with torch.no_grad():
                policy = agent.policy(observation, mask)
                actions[step] = policy.sample()
                logprobs[step], values[step] = policy.log_prob(actions[step]), agent.value(observation)
            position, reward, done, _, info = env.step(actions[step].numpy())
            rewards[step], dones[step] = torch.as_tensor(reward, dtype=torch.float32), torch.as_tensor(done)
            observation, mask = tensors(position, info)

        with torch.no_grad():
            advantages = advantages_of(rewards, dones, values, agent.value(observation), args.gae_lambda)
        rollout = (observations, masks, actions, logprobs, advantages, advantages + values)
        update(agent, optimizer, [part.flatten(0, 1) for part in rollout], args)
        if nth + 1 in measured_after:
            evaluate((nth + 1) * batch)
    return curve


def draw(curve: list[tuple[int, float, float]], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    decisions, wins, halves = zip(*curve, strict=True)
    axes.errorbar(decisions, [100 * rate for rate in wins], yerr=[100 * half for half in halves], fmt="o-", capsize=4)
    axes.set(xlabel="decisions", ylabel="wins, %, with 95 % intervals")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for field in fields(Args):
        parser.add_argument("--" + field.name.replace("_", "-"), type=type(field.default), default=field.default)
    args = Args(**vars(parser.parse_args()))
    curve = train(args)
    if args.plot:
        draw(curve, args.plot)


if __name__ == "__main__":
    main()
