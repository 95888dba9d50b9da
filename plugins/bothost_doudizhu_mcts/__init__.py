"""doudizhu-mcts: Dou Dizhu by information-set tree search, optionally with a network."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from bothost_doudizhu_mcts.decide import DoudizhuMcts

    return [DoudizhuMcts]
