"""Baselines: random and rule players, as opponents, as fallbacks, and for the first steps of curricula.

The rule player of a game G is named ``rule-G``. The host uses that name for its default fallback.
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
"""(module, class). They are imported when the hook is called."""


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    return [getattr(importlib.import_module(f"{__name__}.{module}"), name) for module, name in STRATEGIES]
