"""doudizhu-mcts: Dou Dizhu by information-set tree search, optionally with a network."""

from __future__ import annotations

from bothost import LazyClass, hookimpl


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass("doudizhu-mcts", "bothost_doudizhu_mcts.decide:DoudizhuMcts")]
