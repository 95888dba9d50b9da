"""MaskablePPO of sb3-contrib on the pairing game, with the network of ``bothost bench ppo``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from bothost import rules

FEATURES, ACTIONS = 384, 58


class Body(BaseFeaturesExtractor):
    """The two hidden layers, shared by policy and value."""

    def __init__(self, observation_space: gymnasium.Space[Any]) -> None:
        super().__init__(observation_space, 256)
        self.layers = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())

    def forward(self, observations: Tensor) -> Tensor:
        out: Tensor = self.layers(observations)
        return out


class PairingEnv(VecEnv):
    """Our batch environment for Stable-Baselines3. The learner makes every decision of both seats."""

    def __init__(self, n: int) -> None:
        space = gymnasium.spaces.Box(0.0, 1.0, (FEATURES,), np.float32)
        self.env = rules.vec_env(rules.game("pairing"), n, seed=1)
        self.infos: list[dict[str, Any]] = [{} for _ in range(n)]
        super().__init__(n, space, gymnasium.spaces.Discrete(ACTIONS))

    def observe(self) -> np.ndarray:
        out = np.empty((self.num_envs, FEATURES), np.float32)
        self.env.encode("features", out)
        return out

    def reset(self) -> np.ndarray:
        return self.observe()

    def step_async(self, actions: np.ndarray) -> None:
        self.seats = self.env.seat.copy()
        self.env.step(actions.astype(np.int32))

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        rewards = self.env.returns[np.arange(self.num_envs), self.seats]
        return self.observe(), rewards.copy(), self.env.done.copy(), self.infos

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """``action_masks`` alone: (n, 58)."""
        masks = np.empty((self.num_envs, ACTIONS), np.bool_)
        self.env.legal_mask(masks)
        return list(masks)

    def has_attr(self, attr_name: str) -> bool:
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        return None

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def close(self) -> None:
        return None


def maskable_ppo(environments: int, horizon: int, minibatch: int, epochs: int) -> Callable[[], object]:
    """A function that plays one rollout and trains on it."""
    torch.set_num_threads(1)
    learner = MaskablePPO(
        "MlpPolicy",
        PairingEnv(environments),
        n_steps=horizon,
        batch_size=minibatch,
        n_epochs=epochs,
        policy_kwargs={"features_extractor_class": Body, "net_arch": []},
        device="cpu",
        verbose=0,
    )
    return lambda: learner.learn(environments * horizon, reset_num_timesteps=False)
