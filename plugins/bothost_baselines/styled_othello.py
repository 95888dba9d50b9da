"""Players of Othello with a style: the rule player's evaluation with other weights, and a shallower search."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View
from bothost.rules.othello import WEIGHTS, judge
from bothost_baselines.style import StyleOptions

STYLES: Mapping[str, Mapping[str, float]] = {
    "steady": {},
    "greedy": {"greed": 20.0, "mobility": 0.2, "frontier": 0.0, "depth": 1},
    "corners-first": {"corners": 3.0, "stability": 2.0, "danger": 2.0, "mobility": 0.4},
    "mobile": {"mobility": 2.5, "frontier": 0.4},
    "quiet": {"frontier": 3.0, "mobility": 0.6},
    "edges-first": {"edges": 2.0, "danger": 0.3},
    "careless": {"danger": 0.0, "corners": 0.3, "depth": 1},
    "deep": {"depth": 4, "solve_from": 10},
    "novice": {"depth": 1, "danger": 0.3, "temperature": 2.0},
}
"""Name → its weights. ``steady`` is the rule player."""

Weight = Annotated[float, msgspec.Meta(ge=-10, le=10)] | None


class Options(StyleOptions, frozen=True, forbid_unknown_fields=True):
    """A style, and weights that override it."""

    STYLES: ClassVar[Mapping[str, Mapping[str, Any]]] = STYLES

    mobility: Weight = None
    """Weight of the share of moves. This and the next four are multiples of the rule player's weights."""
    frontier: Weight = None
    """Penalty for the share of discs beside empty squares."""
    corners: Weight = None
    """Weight of own corners, less the enemy's."""
    stability: Weight = None
    """Weight of edge discs that can never be flipped."""
    danger: Weight = None
    """Penalty for discs beside empty corners."""
    edges: Weight = None
    """Value of a disc on an edge, in discs."""
    greed: Annotated[float, msgspec.Meta(ge=-100, le=100)] | None = None
    """Value of having all the discs now, in discs."""
    depth: Annotated[int, msgspec.Meta(ge=1, le=8)] | None = None
    """Search depth in plies. Default: 2."""
    solve_from: Annotated[int, msgspec.Meta(ge=0, le=16)] | None = None
    """Solve the game with at most this many empty squares. Default: 6."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    """Temperature of the softmax over its evaluations, in discs. 0: always the best action."""

    def settled(self) -> dict[str, float]:
        """All weights by name."""
        plain = {"mobility": 1.0, "frontier": 1.0, "corners": 1.0, "stability": 1.0, "danger": 1.0}
        plain |= {"edges": 0.0, "greed": 0.0, "depth": 2, "solve_from": 6, "temperature": 0.0}
        return plain | self.habits()


class StyledOthelloPlayer(Player):
    """Keeps nothing between decisions. They depend on the table's seed and the view only, so they replay."""

    def __init__(self, settled: Mapping[str, float], seed: int) -> None:
        self.depth, self.solve_from = int(settled["depth"]), int(settled["solve_from"])
        self.temperature = settled["temperature"]
        self.weights = {
            name: round(settled[name] * (100 if name in ("edges", "greed") else usual))
            for name, usual in WEIGHTS.items()
        }
        self.seed = seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        judged = judge(view, depth=self.depth, solve_from=self.solve_from, weights=self.weights)
        among = [(action, judged[action]) for action in legal.tolist() if action in judged]
        if not among:  # a pass
            return Decision(action=int(legal[0]), stats={"reason": "only a pass is legal"})
        best = max(score for _, score in among)
        action, score = max(among, key=lambda one: one[1])
        if self.temperature > 0:
            draw = random.Random(self.seed ^ view.hash())
            weights = [math.exp((score - best) / self.temperature) for _, score in among]
            action, score = draw.choices(among, weights)[0]
        return Decision(action=action, stats={"reason": f"about {score:+.1f} discs, the best {best:+.1f}"})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return self.decide(view, legal, Budget(math.inf))


class StyledOthello(Strategy):
    """One of many players with distinguishable styles."""

    name = "styled-othello"
    version = "1"
    games = ("othello",)
    Options: ClassVar[type[msgspec.Struct]] = Options

    def __init__(self, options: Any, model: Any = None) -> None:
        super().__init__(options, model)
        self.settled = options.settled()

    def player(self, table: Table) -> StyledOthelloPlayer:
        return StyledOthelloPlayer(self.settled, table.seed)
