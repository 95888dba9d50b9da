"""mahjong-ppo: Chinese Official mahjong by PPO with look-ahead features and hidden information that vanishes."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from bothost_mahjong_ppo.decide import MahjongPpo

    return [MahjongPpo]
