"""Baselines: random and rule players, as opponents, as fallbacks, and for the first steps of curricula.

The rule player of a game G is named ``rule-G``. The host uses that name for its default fallback.
"""

from __future__ import annotations

from bothost import LazyClass, hookimpl

STRATEGIES = {
    "random": "random:Random",
    "first-legal": "random:FirstLegal",
    "rule-doudizhu": "doudizhu:RuleDoudizhu",
    "rhcp-doudizhu": "rhcp:RhcpDoudizhu",
    "rule-mahjong": "mahjong:RuleMahjong",
    "simple-mahjong": "mahjong:SimpleMahjong",
    "rule-othello": "othello:RuleOthello",
    "rule-pairing": "pairing:RulePairing",
    "search-pairing": "search:SearchPairing",
    "styled-doudizhu": "styled_doudizhu:StyledDoudizhu",
    "styled-othello": "styled_othello:StyledOthello",
}
"""Name → module of this package, and class."""


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass(name, f"{__name__}.{place}") for name, place in STRATEGIES.items()]
