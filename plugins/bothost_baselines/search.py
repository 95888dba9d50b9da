"""Search players: information-set UCT over sampled full states with random playouts, the native search and no model.

What a network that only looks at the position should beat, and a measure of any game's depth: the strength of these
players grows with ``iterations`` alone.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import msgspec

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View, search


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the search; the same as ``bothost.rules.search`` takes, where they have one name."""

    iterations: int = 1000
    """Playouts per decision, each through a full state sampled anew from what the seat knows: as many determinizations
    as iterations, in one tree of information sets."""
    exploration: float = 1.0
    """C of UCT: v + C·sqrt(ln N / n), for utilities in [-1, 1]."""
    utility: Literal["sign", "points"] = "sign"
    """What the end of a hand is worth: win, draw or loss, or its points."""
    points_scale: float = 40.0
    """Points that are worth 1, where ``utility`` is "points"; more are worth no more."""

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise ValueError("iterations must be at least 1")
        if not 0.0 <= self.exploration <= 100.0:
            raise ValueError("exploration must be within 0 and 100")
        if not self.points_scale > 0.0:
            raise ValueError("points_scale must be positive")


class SearchPlayer(Player):
    """Searches anew at every decision: what it does depends on the table's seed and the view alone, and so replays."""

    def __init__(self, options: Options, seed: int) -> None:
        self.options = options
        self.seed = seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        if len(legal) == 1:
            return Decision(action=int(legal[0]))
        options = self.options
        tree = search(
            view,
            (self.seed ^ view.hash()) % 2**64,
            exploration=options.exploration,
            utility=options.utility,
            points_scale=options.points_scale,
        )
        left = budget.left_ms()
        tree.run(options.iterations, None if math.isinf(left) else left)
        found = tree.root_actions
        action, _, value = max(found, key=lambda root: root[1:])
        visits = sum(visits for _, visits, _ in found)
        share = {action: n / visits for action, n, _ in found}
        return Decision(
            action=action,
            policy=[share[int(action)] for action in legal],
            value=value,
            stats={"iterations": tree.iterations, "nodes": tree.nodes},
        )

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=int(legal[0]))


class SearchPairing(Strategy):
    """Plays the four-colour pairing game by tree search alone."""

    name = "search-pairing"
    version = "1"
    games = ("pairing",)
    execution = "thread"  # some milliseconds a decision
    Options: ClassVar[type[msgspec.Struct]] = Options

    def player(self, table: Table) -> SearchPlayer:
        return SearchPlayer(self.options, table.seed)
