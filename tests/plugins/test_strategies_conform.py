"""Every strategy that comes with bothost passes the conformance kit in every game that it plays."""

from __future__ import annotations

import pytest

from bothost import rules
from bothost.plugins import Plugins
from bothost.testing.check_strategy import check_strategy

PLUGINS = Plugins.load()
PAIRS = [
    (name, game)
    for name, strategy in PLUGINS.strategies.items()
    if name
    not in ("exec", "llm-player")  # they play what programs and endpoints play: test_exec.py, test_llm_player.py
    for game in (rules.games(plugins=False) if "*" in strategy.games else strategy.games)
    if ":" not in game
]
OPTIONS: dict[str, dict[str, object]] = {
    "doudizhu-mcts": {"iterations": 30, "belief": 20},
    "search-pairing": {"iterations": 50},
    "rule-othello": {"depth": 3, "solve_from": 8},
}
"""Of strategies that would think too long for a test."""


@pytest.mark.parametrize(("name", "game"), PAIRS)
def test_strategy_conforms(name: str, game: str) -> None:
    options = OPTIONS.get(name)
    check_strategy(name, games=[game], hands=2, budget_ms=5000.0, options=options, plugins=PLUGINS).require()


def test_every_game_has_a_rule_player_to_fall_back_on() -> None:
    for game in rules.games(plugins=False):
        assert f"rule-{game}" in PLUGINS.strategies
