"""A rule player of Chinese Official mahjong.

It measures its hand against the families of hands that reach eight points by themselves or nearly so (all pungs, the
flushes, three chows in step, all types, seven pairs, …), discards what keeps the most worth, claims only what brings it
clearly nearer, and takes every win. It does not defend. The thinking is native (``cpp/mahjong/policy.h``).
"""

from __future__ import annotations

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, View, mahjong


class RuleMahjongPlayer(Player):
    """Deterministic; keeps nothing between decisions."""

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action, reason, worth = mahjong.rule_choice(view)
        if action not in legal:  # the lobby has refused it here
            return Decision(action=int(legal[0]), stats={"reason": "what is left"})
        return Decision(action=action, stats={"reason": reason, "worth": round(worth, 3)})

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return self.decide(view, legal, Budget(deadline=float("inf")))


class RuleMahjong(Strategy):
    """The simple rule player: fallback at the table, opponent in self-play."""

    name = "rule-mahjong"
    version = "1"
    games = ("mahjong",)

    def player(self, table: Table) -> RuleMahjongPlayer:
        return RuleMahjongPlayer()
