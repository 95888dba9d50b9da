"""How strong the shipped models are: a broken one does no better than random play, and each level beats the last.

The levels of mahjong-ppo are tested with that strategy.
"""

from itertools import pairwise
from typing import Any

import pytest

from bothost.arena.run import run_match
from bothost.arena.spec import MatchSpec
from bothost.cli.arena import build
from bothost_deep_mc.decide import DeepMc
from bothost_phase_ppo.decide import PhasePpo

GAMES = {DeepMc: "doudizhu", PhasePpo: "pairing"}
ALONE: dict[type, dict[str, Any]] = {DeepMc: {}, PhasePpo: {"playouts": 0}}
"""Options with which the network alone decides."""
LEVELS = [(strategy, level) for strategy in GAMES for level in strategy.levels]
STEPS = [(strategy, *step) for strategy in GAMES for step in pairwise(strategy.levels)]


def match(game: str, one: str, other: str, deals: int, options: Any = ({}, {})) -> dict[str, Any]:
    """The figures of the first contestant on duplicate deals."""
    spec = MatchSpec(game=game, rules={}, contestants=(one, other), options=options, deals=deals, seed=1701)
    return run_match(spec, build)


@pytest.mark.parametrize(("strategy", "level"), LEVELS, ids=[f"{cls.name}:{level}" for cls, level in LEVELS])
def test_every_level_beats_random_play_by_far(strategy: Any, level: str) -> None:
    figures = match(GAMES[strategy], f"{strategy.name}:{level}", "random", 20, (ALONE[strategy], {}))
    assert figures["wp"] > 0.75 and not any(figures["illegal"].values())


@pytest.mark.parametrize(
    ("address", "game", "options"), [("doudizhu-mcts", "doudizhu", {"cnn": "only"}), ("fm-clone", "doudizhu", {})]
)
def test_other_champions_beat_random_play_by_far(address: str, game: str, options: dict[str, Any]) -> None:
    figures = match(game, address, "random", 20, (options, {}))
    assert figures["wp"] > 0.75 and not any(figures["illegal"].values())


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "weaker", "stronger"), STEPS, ids=[f"{cls.name}:{upper}" for cls, _, upper in STEPS]
)
def test_levels_are_strictly_ordered(strategy: Any, weaker: str, stronger: str) -> None:
    contestants = (f"{strategy.name}:{stronger}", f"{strategy.name}:{weaker}")
    options = (ALONE[strategy], ALONE[strategy])
    assert match(GAMES[strategy], *contestants, 600, options)["ci95"][0] > 0.5
