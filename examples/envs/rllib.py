"""Train RLlib's PPO with action masks at Othello against a strategy, and measure it on deals that it did not train on.

    pip install "bothost[envs,train]" "ray[rllib]"
    python examples/envs/rllib.py --iterations 10

The same works for any game: ``SeatEnv("pairing", "rule-pairing")``.
"""

from __future__ import annotations

import argparse
import math
import statistics
from typing import Any

import gymnasium
import numpy as np
import ray
import torch
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

from bothost.envs import SeatEnv


class MaskedObservations(gymnasium.ObservationWrapper):
    """The form that RLlib's module with masks takes: a dict of a flat observation and the mask, both float32."""

    def __init__(self, env: SeatEnv) -> None:
        super().__init__(env)
        self.observation_space = spaces.Dict(
            {
                "observations": spaces.Box(-np.inf, np.inf, (math.prod(env.observation_space.shape),), np.float32),
                "action_mask": spaces.Box(0.0, 1.0, (int(env.action_space.n),), np.float32),
            }
        )

    def observation(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        mask = self.env.unwrapped.action_masks().astype(np.float32)
        # After the end no action is legal. RLlib asks for none there, but takes the logarithm of the mask.
        return {
            "observations": observation.reshape(-1).astype(np.float32),
            "action_mask": mask if mask.any() else np.ones_like(mask),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="othello")
    parser.add_argument("--opponent", default="random", help="address of the strategy in the other seats")
    parser.add_argument("--iterations", type=int, default=10, help="of 4,000 decisions each")
    parser.add_argument("--env-runners", type=int, default=0, help="processes that play; 0: this one")
    parser.add_argument("--hands", type=int, default=200, help="hands of the measurement")
    args = parser.parse_args()

    def make(_config: Any = None) -> MaskedObservations:
        return MaskedObservations(SeatEnv(args.game, args.opponent, seat=None))

    ray.init(num_cpus=args.env_runners + 1, include_dashboard=False, log_to_driver=False)
    register_env("bothost", make)
    config = (
        PPOConfig()
        .environment("bothost")
        .env_runners(num_env_runners=args.env_runners, num_envs_per_env_runner=8)
        .training(train_batch_size=4000, minibatch_size=500, num_epochs=5, lr=3e-4, gamma=1.0, entropy_coeff=0.01)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule,
                model_config={"head_fcnet_hiddens": [128, 128], "head_fcnet_activation": "relu"},
            )
        )
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    before = measure(algorithm.get_module(), make(), args.hands)
    for _ in range(args.iterations):
        algorithm.train()
    print(f"before: {before}\nafter:  {measure(algorithm.get_module(), make(), args.hands)}")
    algorithm.stop()
    ray.shutdown()


@torch.no_grad()
def measure(module: ActionMaskingTorchRLModule, env: MaskedObservations, hands: int) -> str:
    """Mean score of the most probable actions with its 95 % interval; the same hands for equal ``hands``."""
    scores = []
    for hand in range(hands):
        observation, _ = env.reset(seed=1_000_000 + hand)
        ended = False
        while not ended:
            batch = {"obs": {key: torch.as_tensor(part)[None] for key, part in observation.items()}}
            action = module.forward_inference(batch)["action_dist_inputs"].argmax().item()
            observation, reward, ended, _, _ = env.step(action)
        scores.append(float(reward))
    mean, half = statistics.mean(scores), 1.96 * statistics.stdev(scores) / math.sqrt(hands)
    return f"mean score {mean:.2f}, 95 % {mean - half:.2f} … {mean + half:.2f}, {hands} hands"


if __name__ == "__main__":
    main()
