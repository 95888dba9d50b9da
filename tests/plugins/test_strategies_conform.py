"""Every strategy that comes with bothost passes the conformance kit in every game that it plays."""

from __future__ import annotations

import math

import pytest

from bothost import Budget, Table, rules
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
    "phase-ppo": {"playouts": 32},
    "search-pairing": {"iterations": 50},
    "rule-othello": {"depth": 3, "solve_from": 8},
}
"""Of strategies that would think too long for a test."""
HANDS = {("fm-clone", "othello"): 1}
"""Fewer hands, where a decision takes long. Tables of one strategy are kept apart in its other games."""


@pytest.mark.parametrize(("name", "game"), PAIRS)
def test_strategy_conforms(name: str, game: str) -> None:
    options = OPTIONS.get(name)
    hands = HANDS.get((name, game), 2)
    check_strategy(name, games=[game], hands=hands, budget_ms=5000.0, options=options, plugins=PLUGINS).require()


REFUSED = [*PAIRS, ("openspiel-mcts", "openspiel:tic_tac_toe")]


@pytest.mark.parametrize(("name", "game"), REFUSED)
def test_an_action_that_the_lobby_has_refused_is_not_played_again(name: str, game: str) -> None:
    if name not in PLUGINS.strategies:
        pytest.skip("its extra is not installed")
    played, made = rules.game(game), PLUGINS.resolve(name, OPTIONS.get(name)).make()
    state = played.new_state(1)
    for _ in range(8):
        seat = state.to_act[0]
        view, legal = state.view(seat), state.legal(seat)
        player = made.player(Table(lobby="test", table="1", game=played, seat=seat, seed=1))
        action = player.decide(view, legal, Budget(math.inf)).action
        rest = legal[legal != action]
        if len(rest):
            quick = player.quick(view, rest)
            assert player.decide(view, rest, Budget(math.inf)).action in rest
            assert quick is None or quick.action in rest
        player.close()
        state.apply(seat, int(legal[0]))
        if state.terminal:
            break
    made.close()


def test_every_game_has_a_rule_player_to_fall_back_on() -> None:
    for game in rules.games(plugins=False):
        assert f"rule-{game}" in PLUGINS.strategies


@pytest.mark.parametrize(
    ("name", "game"),
    [("deep-mc", "doudizhu"), ("fm-clone", "othello"), ("mahjong-ppo", "mahjong"), ("phase-ppo:level-1", "pairing")],
)
def test_a_move_that_was_drawn_is_drawn_again_whatever_the_options_are(name: str, game: str) -> None:
    played, state = rules.game(game), rules.game(game).new_state(3)
    drawing, best = (PLUGINS.resolve(name, {"temperature": heat}).make() for heat in (2.0, 0.0))
    drawn = []
    for number in range(12):
        seat = state.to_act[0]
        view, legal = state.view(seat), state.legal(seat)
        table = Table(lobby="test", table="1", game=played, seat=seat, seed=number)
        logged = drawing.player(table).decide(view, legal, Budget(math.inf))
        again = best.player(table).replay(view, legal, logged.stats or {})
        assert again is not None and (again.action, again.stats) == (logged.action, logged.stats)
        drawn.append(logged.action != best.player(table).decide(view, legal, Budget(math.inf)).action)
        state.apply(seat, logged.action)
    assert any(drawn)
