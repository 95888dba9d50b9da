"""Trivial players of any game: uniformly random, and always the first legal action."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bothost import Budget, Decision, Player, Request, Strategy, Table
from bothost.rules import ActionArray, View


class RandomPlayer(Player):
    """Draws uniformly from the legal actions, with its own generator."""

    __slots__ = ("draw",)

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed).random

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        return Decision(action=int(legal[int(self.draw() * len(legal))]))

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=int(legal[int(self.draw() * len(legal))]))


class Random(Strategy):
    """Plays uniformly at random. Its decisions have no policy, because it is uniform by definition."""

    name = "random"
    version = "1"
    games = ("*",)

    def player(self, table: Table) -> RandomPlayer:
        return RandomPlayer(table.seed)

    def decide_many(self, requests: Sequence[Request]) -> list[Decision]:
        """The same choices as ``decide``, without a call per table, because benchmarks of hosts use this strategy."""
        return [
            Decision(action=int(legal[int(r.player.draw() * len(legal))]))  # type: ignore[attr-defined]
            for r in requests
            for legal in (r.legal,)
        ]


class FirstLegalPlayer(Player):
    """Chooses the legal action with the smallest id."""

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        return Decision(action=int(legal[0]))

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=int(legal[0]))


class FirstLegal(Strategy):
    """Plays the first legal action, as a host does if all else fails. A strategy to compare with."""

    name = "first-legal"
    version = "1"
    games = ("*",)

    def player(self, table: Table) -> FirstLegalPlayer:
        return FirstLegalPlayer()
