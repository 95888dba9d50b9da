"""mahjong-ppo: Chinese Official mahjong by PPO with look-ahead features and hidden information that vanishes."""

from __future__ import annotations

from bothost import LazyClass, hookimpl


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass("mahjong-ppo", "bothost_mahjong_ppo.decide:MahjongPpo")]
