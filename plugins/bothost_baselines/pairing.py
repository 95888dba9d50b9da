"""The native rule player of the four-colour pairing game.

It rates each pair that it could collect by the value of the two cards (points and completed sets), by the progress of
unfinished sets, and by the pool card's value to the opponent. It uses skills when they pay: a forced pair for a second
valuable card of the pool or instead of a lost one, a replacement for a poor card.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View
from bothost.rules.pairing import rule_choice

Weight = Annotated[float, msgspec.Meta(ge=-1000, le=1000)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the rule player, in points of the game."""

    deny: Weight = 0.6
    """Weight of a pool card's value to the opponent."""
    keep: Weight = 0.8
    """Weight of the hand card's value, which would probably be collected later anyway."""
    promise: Weight = 0.35
    """Weight of a set's bonus, times the square of its completed share."""
    force_from: Weight = 16.0
    """Use skill B for a pair of any colours that is worth at least this."""


class RulePairingPlayer(Player):
    """Plans again at every step of a turn. The same position gives the same plan."""

    def __init__(self, options: Options) -> None:
        self.weights = msgspec.structs.asdict(options)

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action, reason = rule_choice(view, **self.weights)
        if action not in legal:  # the lobby has refused it here
            return Decision(action=int(legal[0]), stats={"reason": "what is left"})
        return Decision(action=action, stats={"reason": reason})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=int(legal[-1]))


class RulePairing(Strategy):
    """Collects the cards that are worth most to it and to the opponent."""

    name = "rule-pairing"
    version = "1"
    games = ("pairing",)
    Options: ClassVar[type[msgspec.Struct]] = Options

    def player(self, table: Table) -> RulePairingPlayer:
        return RulePairingPlayer(self.options)
