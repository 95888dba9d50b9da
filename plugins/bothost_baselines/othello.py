"""A rule player of Othello: the native alpha-beta search over mobility, corners, edges and frontier."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View
from bothost.rules.othello import SearchResult, choose


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the rule player's search."""

    depth: Annotated[int, msgspec.Meta(ge=1, le=30)] = 6
    """Plies of the heuristic search."""
    solve_from: Annotated[int, msgspec.Meta(ge=0, le=24)] = 12
    """Solve the game exactly with at most this many empty squares."""
    nodes: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] = 120_000
    """Stop the search after this many positions, and use the best move so far. A million takes 0.1 to 0.2 s."""


class RuleOthelloPlayer(Player):
    """Keeps nothing between decisions."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        options = self.options
        found = choose(view, depth=options.depth, solve_from=options.solve_from, nodes=options.nodes)
        return self.decision(view, legal, found)

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return self.decision(view, legal, choose(view, depth=2, solve_from=0, nodes=2_000))

    def decision(self, view: View, legal: ActionArray, found: SearchResult) -> Decision:
        if found.action not in legal:  # the lobby has refused it here
            return Decision(action=int(legal[0]), stats={"reason": "what is left"})
        worth = f"ends with {found.score:+.0f} discs" if found.exact else f"rated {found.score:+.1f}"
        stats = {
            "reason": f"{worth}, {found.depth} plies ahead",
            "depth": found.depth,
            "exact": found.exact,
            "nodes": found.nodes,
        }
        return Decision(action=found.action, value=exact_return(view, found), stats=stats)


def exact_return(view: View, found: SearchResult) -> float | None:
    """The hand's return under best play; None if the game is not solved."""
    if not found.exact:
        return None
    if view.game.rules["score"] == "discs":
        return found.score
    return float((found.score > 0) - (found.score < 0))


class RuleOthello(Strategy):
    """Alpha-beta search with a hand-written evaluation. It plays the endgame perfectly."""

    name = "rule-othello"
    version = "1"
    games = ("othello",)
    Options: ClassVar[type[msgspec.Struct]] = Options

    def player(self, table: Table) -> RuleOthelloPlayer:
        return RuleOthelloPlayer(self.options)
