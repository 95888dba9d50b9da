"""Baselines: random and rule players. They are opponents, fallbacks and the first steps of curricula.

A rule player of game G is named ``rule-G``: the host falls back on it by that name.
"""

from __future__ import annotations

import importlib

from bothost import Strategy, hookimpl

STRATEGIES = (
    ("random", "Random"),
    ("random", "FirstLegal"),
    ("doudizhu", "RuleDoudizhu"),
    ("rhcp", "RhcpDoudizhu"),
    ("mahjong", "RuleMahjong"),
    ("mahjong", "SimpleMahjong"),
    ("othello", "RuleOthello"),
    ("pairing", "RulePairing"),
    ("search", "SearchPairing"),
    ("styled_doudizhu", "StyledDoudizhu"),
    ("styled_othello", "StyledOthello"),
)
"""(module, class), imported only when the strategies are asked for."""


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    return [getattr(importlib.import_module(f"{__name__}.{module}"), name) for module, name in STRATEGIES]
