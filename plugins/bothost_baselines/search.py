"""Search players: information-set UCT over sampled full states with random playouts, without a model.

They are a baseline for networks without search. Their strength depends on ``iterations`` alone.
"""

from __future__ import annotations

import math
import time
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View, search

SHARE_OF_BUDGET = 0.8
"""Share of the remaining time that the search uses."""
STEP = 1000
"""Playouts between two moments at which Ctrl-C can end a search: native code does not notice it."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the search. Those with the same name are options of ``bothost.rules.search``."""

    iterations: Annotated[int, Meta(ge=1)] = 1000
    """Playouts per decision. Each uses a new determinization, and all grow one tree of information sets."""
    exploration: Annotated[float, Meta(ge=0, le=100)] = 1.0
    """C of UCT: v + C·sqrt(ln N / n), for utilities in [-1, 1]."""
    utility: Literal["sign", "points"] = "sign"
    """Utility of the end of a hand: its sign (win, draw or loss), or its points."""
    points_scale: Annotated[float, Meta(gt=0)] = 40.0
    """Points that count as 1 if ``utility`` is "points". More points also count as 1."""


class SearchPlayer(Player):
    """Starts a new search for every decision. It depends on the table's seed and the view only, so it replays."""

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
        ends = time.monotonic() + SHARE_OF_BUDGET * budget.left_ms() / 1000.0
        while (more := options.iterations - tree.iterations) > 0 and (left_s := ends - time.monotonic()) > 0:
            tree.run(min(more, STEP), None if math.isinf(left_s) else 1000.0 * left_s)
        found = [root for root in tree.root_actions if root[0] in legal]  # others were refused by the lobby
        visits = sum(visits for _, visits, _ in found)
        if not visits:  # there was no time
            return self.quick(view, legal)
        action, _, value = max(found, key=lambda root: root[1:])
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
    """Plays the four-colour pairing game by tree search without a model."""

    name = "search-pairing"
    version = "1"
    games = ("pairing",)
    execution = "thread"  # some milliseconds a decision
    Options: ClassVar[type[msgspec.Struct]] = Options

    def player(self, table: Table) -> SearchPlayer:
        return SearchPlayer(self.options, table.seed)
