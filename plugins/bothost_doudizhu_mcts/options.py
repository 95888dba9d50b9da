"""Options of play, and of the search that plays."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bothost.rules import Game


class PlayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of play. A search stops when the time is over or the iterations are done, whichever comes first."""

    iterations: Annotated[int, Meta(ge=0, le=10**9)] = 0
    """Most iterations of a decision; 0: as many as the time allows, and 1,000 where there is no clock."""
    max_ms: Annotated[float, Meta(ge=1, le=3_600_000)] = 2000.0
    """Most time for a decision, whatever the table's clock allows, in ms."""
    exploration: Annotated[float, Meta(ge=0, le=100)] = 0.6
    """C of UCT, for utilities in [-1, 1]."""
    playout: Literal["rule", "random"] = "rule"
    """Who plays hands to the end: the rule player, which errs by chance, or a player of random moves."""
    noise: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Chance that a step of a rule playout errs."""
    others: Literal["policy", "tree"] = "policy"
    """Who chooses for the other seats within the tree: the rule player, by the cards of the deal, or UCT."""
    belief: Annotated[int, Meta(ge=0, le=100_000)] = 5000
    """Most deals that a decision samples and weighs by how well they explain the others' play; 0: all weigh the same.
    A third of the time at most; without a clock, one for each iteration."""
    widening: Annotated[float, Meta(ge=0, le=1000)] = 1.0
    """A node of n visits considers the widening x sqrt(n + 1) actions that the rule player likes best; 0: all."""
    cnn: Literal["on", "off", "only"] = "on"
    """What the network does. On: its values of moves are the tree's priors and leaf values. Only: its best move is
    played without a search, in a millisecond. Off: the leaves are playouts. Bids are always searched with playouts."""
    evaluator: str = ""
    """Address of a strategy that values the leaves in place of the network, as in "deep-mc"; "": none. Neither is asked
    with the utility ``points`` or with several ``threads``."""
    player_model: Literal["on", "off"] = "on"
    """Whether the others may also be players as the version's model of players describes them, if it has one."""
    leaf_moves: Annotated[int, Meta(ge=0, le=100_000)] = 20
    """Most moves of a leaf that are valued: those that the rule player likes best; 0: all."""
    leaf_batch: Annotated[int, Meta(ge=1, le=4096)] = 16
    """Leaves of one inference."""
    mixing: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Part of a position's value that a playout gives, where the evaluator gives the rest."""
    prior_visits: Annotated[float, Meta(ge=0, le=1e6)] = 20.0
    """Visits that the value of a move counts for, the evaluator's or the network's."""
    utility: Literal["win", "points"] = "win"
    """What is searched for: to win the hand, or points (with bombs and spring). Bids are searched for points."""
    threads: Annotated[int, Meta(ge=1, le=64)] = 1
    """Trees grown side by side, one core each."""
    reuse: bool = True
    """Keep the part of the tree below the moves that were played."""
    ponder: bool = False
    """Search on while others move, on a thread of its own: one more core for each table."""

    def evaluates(self, phase: str) -> bool:
        """Whether leaves are valued, by the network or an evaluator, in a decision of this phase."""
        return phase == "play" and self.utility == "win" and self.threads == 1

    def of_search(self, game: Game, phase: str, *, evaluated: bool = False) -> dict[str, Any]:
        """Options of :func:`bothost.rules.search` for a decision of this phase; ``evaluated``: by an evaluator."""
        points = game.rules["scoring"] == "points" and (self.utility == "points" or phase == "bid")
        return {
            "leaf": "evaluator" if evaluated else "rollout",
            "mixing": self.mixing,
            "leaf_moves": self.leaf_moves,
            "leaf_batch": self.leaf_batch,
            "exploration": self.exploration,
            "playout": self.playout,
            "playout_noise": self.noise,
            "others": self.others,
            "belief": self.belief,
            "widening": self.widening,
            "prior_visits": self.prior_visits,
            "utility": "points" if points else "sign",
            "points_scale": POINTS_SCALE * float(game.rules["base"]) if points else 1.0,
            "threads": self.threads,
            "max_nodes": MAX_NODES,
        }


POINTS_SCALE = 12.0
"""Points, in units of the base, that count as the utility 1; more are cut off."""
MAX_NODES = 1 << 18
"""Nodes of a tree: about 100 MB at most."""
DEFAULT_ITERATIONS = 1000
"""Of a decision without a clock."""
