"""The RHCP player of Dou Dizhu: the rule engine that learning players of this game have been measured against.

Recursive Hand Cards Partition: a hand is worth the best sum, over its partitions into plays, of what the plays are
worth less seven for every turn that they take, and a move is worth what the hand that it leaves is worth. It leads what
rids it of its lowest card, answers where that leaves a better hand than passing, leaves its partner's plays alone, and
keeps bombs for when they decide. It counts no cards. The thinking is native (``native/games/doudizhu/rhcp.h``).

Source of the idea: You, Li, Guo, Wang, Lu, "Combinational Q-Learning for Dou Di Zhu" (2019), where RHCP is the
opponent; the play is written anew from it.
"""

from __future__ import annotations

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, Game, View, doudizhu


class RhcpDoudizhuPlayer(Player):
    """Deterministic; keeps nothing between decisions."""

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action, reason = doudizhu.rhcp_choice(view)
        if view.phase == "bid":
            return Decision(action=action, stats={"reason": reason})
        hand = view.to_json()["hand"]
        partition = [view.notation(play) for play in doudizhu.best_partition(hand)]
        stats = {"reason": reason, "partition": partition, "worth": doudizhu.hand_value(hand)}
        return Decision(action=action, stats=stats)

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=doudizhu.rhcp_choice(view)[0])


class RhcpDoudizhu(Strategy):
    """The rule engine of the literature: an opponent to measure against."""

    name = "rhcp-doudizhu"
    version = "1"
    games = ("doudizhu",)

    @classmethod
    def supports(cls, game: Game) -> bool:
        return game.name == "doudizhu"

    def player(self, table: Table) -> RhcpDoudizhuPlayer:
        return RhcpDoudizhuPlayer()
