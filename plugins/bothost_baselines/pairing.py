"""A rule player of the four-colour pairing game: the native one.

It weighs each pair that it could collect by what the two cards add to its library now (points and completed sets), by
how far they bring unfinished sets, and by what the pool card would have been worth to the opponent. Skills are spent
when they pay: a forced pair on a second rich card of the pool or instead of a lost one, a replacement on a poor card.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View
from bothost.rules.pairing import rule_choice


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the rule player, in points of the game."""

    deny: float = 0.6
    """Of what a pool card would be worth to the opponent."""
    keep: float = 0.8
    """Of what the hand card is worth: it would probably be collected later anyway."""
    promise: float = 0.35
    """Of a set's bonus, times the square of how far it is complete."""
    force_from: float = 16.0
    """Worth from which a pair of any colours deserves skill B."""


class RulePairingPlayer(Player):
    """Decides anew at every step of a turn: the same position gives the same plan."""

    def __init__(self, options: Options) -> None:
        self.weights = msgspec.structs.asdict(options)

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action, reason = rule_choice(view, **self.weights)
        return Decision(action=action, stats={"reason": reason})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=int(legal[-1]))


class RulePairing(Strategy):
    """Collects what is worth most to it and to the opponent."""

    name = "rule-pairing"
    version = "1"
    games = ("pairing",)
    Options: ClassVar[type[msgspec.Struct]] = Options

    def player(self, table: Table) -> RulePairingPlayer:
        return RulePairingPlayer(self.options)
